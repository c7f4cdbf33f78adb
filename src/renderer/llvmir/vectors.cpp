#include "renderer/llvmir/vectors.h"

#include <algorithm>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "target/tensor_cores/registers.h"

namespace tinygrad::renderer::llvmir {
namespace {

std::string vector_type(const std::string& element, int64_t lanes) { return fmt::format("<{} x {}>", lanes, element); }

/// The last operand of a shufflevector.
std::string lane_numbers(std::span<const int64_t> lanes) {
  std::vector<std::string> numbers;
  for (int64_t lane : lanes) numbers.push_back(fmt::format(FMT_COMPILE("i32 {}"), lane));
  return fmt::format("<{} x i32> <{}>", lanes.size(), fmt::join(numbers, ", "));
}
std::string lane_numbers(int64_t first, int64_t count) {
  std::vector<int64_t> lanes;
  for (int64_t lane = first; lane < first + count; ++lane) lanes.push_back(lane);
  return lane_numbers(lanes);
}

/// An instruction that adds, in each lane, the products of a few neighbours to a sum.
struct DotProduct {
  std::string_view name, intrinsic, packed;  ///< of the WMMA; of LLVM; the type of its factors, vectors of numbers of 32 bits if empty
  bool swapped = false;                      ///< whether it takes b before a
  bool adds = true;                          ///< whether the instruction adds to the sum; else an addition follows
};
constexpr DotProduct kDotProducts[] = {
    {"vdpbf16ps", "llvm.x86.avx512bf16.dpbf16ps.512", "<32 x bfloat>"},
    {"vpdpbusd_u8_s8", "llvm.x86.avx512.vpdpbusd.512", {}},
    {"vpdpbusd_s8_u8", "llvm.x86.avx512.vpdpbusd.512", {}, true},  // its first factor is the unsigned one
    {"vpdpwssd", "llvm.x86.avx512.vpdpwssd.512", {}},
    {"vpdpbusd_u8_s8_256", "llvm.x86.avx512.vpdpbusd.256", {}},
    {"vpdpbusd_s8_u8_256", "llvm.x86.avx512.vpdpbusd.256", {}, true},
    {"vpdpbssd_256", "llvm.x86.avx2.vpdpbssd.256", {}},
    {"vpdpbuud_256", "llvm.x86.avx2.vpdpbuud.256", {}},
    {"vpdpwssd_256", "llvm.x86.avx512.vpdpwssd.256", {}},
    {"sdot", "llvm.aarch64.neon.sdot.v4i32.v16i8", "<16 x i8>"},
    {"udot", "llvm.aarch64.neon.udot.v4i32.v16i8", "<16 x i8>"},
    {"usdot_u8_s8", "llvm.aarch64.neon.usdot.v4i32.v16i8", "<16 x i8>"},
    {"usdot_s8_u8", "llvm.aarch64.neon.usdot.v4i32.v16i8", "<16 x i8>", true},
    {"bfdot", "llvm.aarch64.neon.bfdot.v4f32.v8bf16", "<8 x bfloat>"},
    {"smmla", "llvm.aarch64.neon.smmla.v4i32.v16i8", "<16 x i8>"},
    {"ummla", "llvm.aarch64.neon.ummla.v4i32.v16i8", "<16 x i8>"},
    {"usmmla_u8_s8", "llvm.aarch64.neon.usmmla.v4i32.v16i8", "<16 x i8>"},
    {"usmmla_s8_u8", "llvm.aarch64.neon.usmmla.v4i32.v16i8", "<16 x i8>", true},
    {"bfmmla", "llvm.aarch64.neon.bfmmla", "<8 x bfloat>"},
    {"vpmaddwd_256", "llvm.x86.avx2.pmadd.wd", "<16 x i16>", false, false},
    {"vpmaddwd_512", "llvm.x86.avx512.pmaddw.d.512", "<32 x i16>", false, false},
};

const DotProduct& instruction_of(const WmmaArg& arg) {
  const auto* at = std::ranges::find(kDotProducts, arg.name.str(), &DotProduct::name);
  if (at == std::end(kDotProducts)) throw InternalError(fmt::format("LLVM IR: CPUs have no WMMA {}", arg.name.str()));
  return *at;
}

Value bits_as_int32(Emitter& out, const Value& v, int lanes) {
  const std::string type = type_name(DType::int32, lanes);
  return {.ref = out.define("bits", fmt::format("bitcast {} to {}", typed(v), type)), .dtype = DType::int32, .lanes = lanes};
}

/// A factor as the instruction reads it: what all lanes share in each of them, of others each element once.
Value for_lanes(Emitter& out, const Value& v, const TensorCore& core, const TensorCore::Layout& layout, int lanes) {
  const std::vector<int64_t> elements = distinct_elements(core, layout);
  if (int64_t(elements.size()) == layout.elements()) return splat(out, bits_as_int32(out, v, 1), lanes);
  return bits_as_int32(out, int64_t(elements.size()) == v.lanes ? v : shuffled(out, v, elements), lanes);
}

std::string factor(Emitter& out, const Value& v, std::string_view packed) {
  return packed.empty() ? typed(v) : fmt::format("{} {}", packed, out.define("packed", fmt::format("bitcast {} to {}", typed(v), packed)));
}

}  // namespace

std::string typed(const Value& v) { return type_name(v.dtype, v.lanes) + " " + v.ref; }

Value lane_of(Emitter& out, const Value& v, int64_t lane) {
  if (v.lanes == 1) return v;
  return {.ref = out.define("lane", fmt::format(FMT_COMPILE("extractelement {}, i64 {}"), typed(v), lane)), .dtype = v.dtype};
}

Value splat(Emitter& out, const Value& scalar, int lanes) {
  if (lanes == 1) return scalar;
  if (scalar.constant)
    return {.ref = splat_literal(*scalar.constant, lanes), .dtype = scalar.dtype, .lanes = lanes, .constant = scalar.constant};
  const std::string type = type_name(scalar.dtype, lanes);
  const std::string one = out.define("one", fmt::format(FMT_COMPILE("insertelement {} poison, {}, i64 0"), type, typed(scalar)));
  const auto all = fmt::format(FMT_COMPILE("shufflevector {} {}, {} poison, <{} x i32> zeroinitializer"), type, one, type, lanes);
  return {.ref = out.define("splat", all), .dtype = scalar.dtype, .lanes = lanes};
}

Value vector_of(Emitter& out, std::span<const Value> scalars, DType dtype) {
  const int lanes = static_cast<int>(scalars.size());
  if (std::ranges::all_of(scalars, [](const Value& v) { return v.constant != nullptr; })) {
    std::vector<std::string> literals;
    for (const Value& v : scalars) literals.push_back(typed(v));
    return {.ref = fmt::format("<{}>", fmt::join(literals, ", ")), .dtype = dtype, .lanes = lanes};
  }
  const std::string type = type_name(dtype, lanes);
  std::string vector = "poison";
  for (int i = 0; i < lanes; ++i)
    vector = out.define(
        "stack", fmt::format(FMT_COMPILE("insertelement {} {}, {}, i64 {}"), type, vector, typed(scalars[static_cast<size_t>(i)]), i));
  return {.ref = vector, .dtype = dtype, .lanes = lanes};
}

Value interleave(Emitter& out, std::span<const Value> vectors) {
  const int count = static_cast<int>(vectors.size()), each = vectors[0].lanes, lanes = each * count;
  const DType dtype = vectors[0].dtype;
  std::vector<std::string> parts;
  for (const Value& v : vectors) parts.push_back(v.ref);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < lanes; ++i) order.push_back(i % count * each + i / count);
  return shuffled(out, {.ref = concatenated(out, type_name(dtype), std::move(parts), each), .dtype = dtype, .lanes = lanes}, order);
}

Value shuffled(Emitter& out, const Value& vector, std::span<const int64_t> order) {
  const std::string type = type_name(vector.dtype, vector.lanes);
  const auto text = fmt::format("shufflevector {} {}, {} poison, {}", type, vector.ref, type, lane_numbers(order));
  return {.ref = out.define("shuffled", text), .dtype = vector.dtype, .lanes = static_cast<int>(order.size())};
}

std::string run_of_lanes(Emitter& out, const std::string& element, const std::string& vector, int64_t lanes, int64_t first, int64_t count) {
  if (count == lanes) return vector;
  const std::string type = vector_type(element, lanes);
  return out.define("part", fmt::format("shufflevector {} {}, {} poison, {}", type, vector, type, lane_numbers(first, count)));
}

std::string concatenated(Emitter& out, const std::string& element, std::vector<std::string> vectors, int64_t lanes) {
  const auto wanted = static_cast<int64_t>(vectors.size()) * lanes;
  for (; vectors.size() > 1; lanes *= 2) {
    const std::string type = vector_type(element, lanes), all = lane_numbers(0, 2 * lanes);
    if (vectors.size() % 2 != 0) vectors.emplace_back("poison");
    std::vector<std::string> wider;
    for (size_t i = 0; i < vectors.size(); i += 2)
      wider.push_back(out.define("join", fmt::format("shufflevector {} {}, {} {}, {}", type, vectors[i], type, vectors[i + 1], all)));
    vectors = std::move(wider);
  }
  return run_of_lanes(out, element, vectors[0], lanes, 0, wanted);
}

bool adds_itself(const WmmaArg& arg) { return instruction_of(arg).adds; }

Value dot_product(Emitter& out, const WmmaArg& arg, const Value& a, uint32_t turned, const Value& b, const Value& c) {
  const DotProduct* at = &instruction_of(arg);
  const TensorCore& core = *find_tensor_core(arg.name);
  Value row = for_lanes(out, a, core, core.a, c.lanes);
  if (turned)
    row.ref = out.define("turned", fmt::format("xor {}, {}", typed(row), splat_literal(Scalar::from_uint(turned, row.dtype), row.lanes)));
  const Value columns = for_lanes(out, b, core, core.b, c.lanes);
  std::vector<std::string> arguments;
  if (at->adds) arguments.push_back(typed(c));
  arguments.push_back(factor(out, at->swapped ? columns : row, at->packed));
  arguments.push_back(factor(out, at->swapped ? row : columns, at->packed));
  const std::string type = type_name(c.dtype, c.lanes), dot = out.call("dot", type, at->intrinsic, arguments);
  return {.ref = at->adds ? dot : out.define("sum", fmt::format("add {}, {}", typed(c), dot)), .dtype = c.dtype, .lanes = c.lanes};
}

Value nearest(Emitter& out, const Value& x) {
  const std::string all = out.call("nearest", type_name(x.dtype, x.lanes), "llvm.roundeven." + suffix(x.dtype, x.lanes), {typed(x)});
  return {.ref = all, .dtype = x.dtype, .lanes = x.lanes};
}

std::string scaled(Emitter& out, const Value& x, const Value& n) {
  const int bits = bitsize(x.dtype), lanes = x.lanes, width = std::clamp(lanes, 128 / bits, 512 / bits);
  const std::string element = type_name(x.dtype), type = vector_type(element, width);
  const std::string intrinsic = fmt::format("llvm.x86.avx512.mask.scalef.p{}.{}", bits == 64 ? 'd' : 's', width * bits);
  const auto part = [&](const Value& v, int first) {
    if (lanes == 1) return splat(out, v, width).ref;
    if (lanes < width) return concatenated(out, element, std::vector<std::string>(size_t(width / lanes), v.ref), lanes);
    return run_of_lanes(out, element, v.ref, lanes, first, width);
  };
  std::vector<std::string> parts;
  for (int first = 0; first < lanes; first += width) {
    std::vector<std::string> arguments{type + " " + part(x, first), type + " " + part(n, first), type + " zeroinitializer",
                                       width > 8 ? "i16 -1" : "i8 -1"};
    if (width * bits == 512) arguments.emplace_back("i32 4");  // rounded as everything is
    parts.push_back(out.call("scaled", type, intrinsic, arguments));
  }
  if (lanes == 1) return out.define("scaled", fmt::format("extractelement {} {}, i32 0", type, parts[0]));
  return lanes < width ? run_of_lanes(out, element, parts[0], width, 0, lanes) : concatenated(out, element, parts, width);
}

bool has_greater(const Emitter& out, const Value& x) {
  const int bits = bitsize(x.dtype) * x.lanes;
  return out.has_avx512() && (x.dtype == DType::float32 || x.dtype == DType::float64) && (bits == 128 || bits == 256 || bits == 512);
}

std::string greater(Emitter& out, const Value& x, const Value& y) {
  const int bits = bitsize(x.dtype), all = bits * x.lanes;
  const std::string type = type_name(x.dtype, x.lanes), both = fmt::format("{} {}, {}", type, x.ref, y.ref);
  // Of the two numbers the greater (1) with its sign (1 << 2), so that 0.0 is more than -0.0. A NaN gives way to a number.
  std::vector<std::string> arguments{typed(x), typed(y), "i32 5", type + " zeroinitializer", x.lanes > 8 ? "i16 -1" : "i8 -1"};
  if (all == 512) arguments.emplace_back("i32 4");
  const std::string most = out.call("max", type, fmt::format("llvm.x86.avx512.mask.range.p{}.{}", bits == 64 ? 'd' : 's', all), arguments);
  const std::string has_nan = out.define("nan", "fcmp uno " + both), nan = out.define("nan", "fadd " + both);
  return out.define("max", fmt::format("select {} {}, {} {}, {} {}", type_name(DType::bool_, x.lanes), has_nan, type, nan, type, most));
}

}  // namespace tinygrad::renderer::llvmir
