#include "renderer/ptx/mma.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

namespace tinygrad::renderer::ptx {
namespace {

using Registers = std::vector<std::string>;

/// What the instruction calls a type of its factors or sums.
std::string_view element_name(DType d, bool is_factor) {
  switch (d) {
    case DType::int8: return "s8";
    case DType::uint8: return "u8";
    case DType::int32: return "s32";
    case DType::fp8e4m3: return "e4m3";
    case DType::fp8e5m2: return "e5m2";
    case DType::float16: return "f16";
    case DType::bfloat16: return "bf16";
    case DType::float32: return is_factor ? "tf32" : "f32";
    case DType::float64: return "f64";
    default: throw InternalError(fmt::format("PTX: no tensor core has elements of {}", repr(d)));
  }
}

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
  Registers apart;
  for (const std::string& pair : result) {
    const std::string low = out.fresh(RegisterKind::bits16), high = out.fresh(RegisterKind::bits16);
    out.line(fmt::format("mov.b32 {{{}, {}}}, {};", low, high, pair));
    apart.insert(apart.end(), {low, high});
  }
  return apart;
}

}  // namespace tinygrad::renderer::ptx
