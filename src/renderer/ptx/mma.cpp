#include "renderer/ptx/mma.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "renderer/nvidia_matrix.h"

namespace tinygrad::renderer::ptx {
namespace {

using Registers = std::vector<std::string>;

/// Two neighbours of 8 bits in 16.
std::string byte_pair(Emitter& out, const std::string& low, const std::string& high) {
  const std::string shifted = out.define(DType::uint16, "shl.b16", high + ", 8");
  const std::string cut = out.define(DType::uint16, "and.b16", low + ", 255");
  return out.define(DType::uint16, "or.b16", fmt::format("{}, {}", cut, shifted));
}

/// Neighbours of 16 bits in registers of 32.
Registers pairs(Emitter& out, const Registers& x) {
  Registers packed;
  for (size_t i = 0; i + 1 < x.size(); i += 2)
    packed.push_back(out.define(DType::uint32, "mov.b32", fmt::format("{{{}, {}}}", x[i], x[i + 1])));
  return packed;
}

Registers packed(Emitter& out, DType d, const Registers& x, bool is_factor) {
  if (itemsize(d) == 8) return x;
  if (itemsize(d) == 2) return pairs(out, x);
  Registers result;
  if (itemsize(d) == 1) {
    for (size_t i = 0; i + 1 < x.size(); i += 2) result.push_back(byte_pair(out, x[i], x[i + 1]));
    return pairs(out, result);
  }
  if (!is_factor) return x;
  for (const std::string& v : x) result.push_back(out.define(DType::uint32, "cvt.rna.tf32.f32", v));
  return result;
}

/// Names for the halves of registers.
Registers halves_of(Emitter& out, const Registers& pairs) {
  Registers apart;
  for (size_t i = 0; i < 2 * pairs.size(); ++i) apart.push_back(out.fresh(RegisterKind::bits16));
  return apart;
}
void take_apart(Emitter& out, const Registers& pairs, const Registers& halves) {
  for (size_t i = 0; i < pairs.size(); ++i) out.line(fmt::format("mov.b32 {{{}, {}}}, {};", halves[2 * i], halves[2 * i + 1], pairs[i]));
}

/// What the product is added to is overwritten.
Registers copied(Emitter& out, DType d, const Registers& x) {
  Registers copies;
  for (const std::string& r : x) copies.push_back(out.define(d, d == DType::float32 ? "mov.f32" : "mov.b32", r));
  return copies;
}

std::string braced(const Registers& x) { return fmt::format("{{{}}}", fmt::join(x, ", ")); }

}  // namespace

Registers emit_mma(Emitter& out, const WmmaArg& core, const Registers& a, const Registers& b, const Registers& c) {
  const Registers first = packed(out, core.a, a, true), second = packed(out, core.b, b, true), sum = packed(out, core.out, c, false);
  const bool halves = itemsize(core.out) == 2;
  Registers result;
  for (size_t i = 0; i < sum.size(); ++i) result.push_back(out.fresh(halves ? RegisterKind::bits32 : kind_of(core.out)));
  const std::string_view type = element_name(core.out, false);
  out.line(fmt::format("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{} {}, {}, {}, {};", core.m, core.n, core.k, type,
                       element_name(core.a, true), element_name(core.b, true), type, braced(result), braced(first), braced(second),
                       braced(sum)));
  if (!halves) return result;
  const Registers apart = halves_of(out, result);
  take_apart(out, result, apart);
  return apart;
}

std::string matrix_place(Emitter& out, const TensorCore& core, int factor, const Place& place) {
  const std::string pieces = out.define(DType::uint64, "shr.u64", place.pointer + ", 4");
  const uint64_t descriptor = matrix_descriptor(core, factor) + uint64_t(place.offset / 16);
  return out.define(DType::uint64, "add.s64", fmt::format("{}, {}", pieces, descriptor));
}

Product begin_product(Emitter& out, const TensorCore& core, const Factor& a, const Factor& b, const Registers& c, const Product* before) {
  const auto factor = [&](const Factor& f, int number, DType dtype) {
    return f.place ? matrix_place(out, core, number, *f.place) : braced(packed(out, dtype, f.held, true));
  };
  const std::string first = factor(a, 0, core.a_type), second = factor(b, 1, core.b_type);
  const std::string adds = out.constant(Scalar::from_int(1, DType::bool_));
  Product p;
  if (before) {
    p = *before;
  } else {
    const bool halves = itemsize(core.out) == 2;
    p.registers = halves ? packed(out, core.out, c, false) : copied(out, core.out, c);
    p.sums = halves ? halves_of(out, p.registers) : p.registers;
    out.line("wgmma.fence.sync.aligned;");
  }
  out.line(wgmma_instruction(core, braced(p.registers), first, second, adds));
  return p;
}

void end_products(Emitter& out, std::span<const Product> products) {
  out.line("wgmma.commit_group.sync.aligned;");
  out.line("wgmma.wait_group.sync.aligned 0;");
  for (const Product& p : products)
    if (p.sums.size() != p.registers.size()) take_apart(out, p.registers, p.sums);
}

}  // namespace tinygrad::renderer::ptx
