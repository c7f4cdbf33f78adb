#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "renderer/cstyle/cuda_matrix.h"
#include "renderer/cstyle/prelude.h"
#include "renderer/cstyle/value.h"

// NVRTC has mathematics built in; what it has in headers only, narrow floats and vectors of them, is written here by instructions of PTX.
namespace tinygrad::renderer::cstyle {
namespace {

// Of a half, arithmetic is that of its instructions; comparisons, quotients and roots are those of float, which round the same.
constexpr std::string_view kHalf =
    "struct half {\n"
    "  unsigned short bits;\n"
    "  half() = default;\n"
    "  __device__ half(float x) { asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x)); }\n"
    "  __device__ operator float() const { float x; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(bits)); return x; }\n"
    "};\n"
    "#define HALF_OPERATOR(op, name) \\\n"
    "  static __device__ half operator op(half a, half b) { half c; asm(name \".f16 %0, %1, %2;\" : \"=h\"(c.bits) : \"h\"(a.bits), "
    "\"h\"(b.bits)); return c; }\n"
    "HALF_OPERATOR(+, \"add.rn\")\nHALF_OPERATOR(-, \"sub.rn\")\nHALF_OPERATOR(*, \"mul.rn\")\n"
    "static __device__ half operator/(half a, half b) { return half((float)a / (float)b); }\n"
    "static __device__ half operator-(half a) { a.bits ^= 0x8000; return a; }\n"
    "static __device__ half sqrt(half a) { return half(sqrtf(a)); }\n"
    "static __device__ half trunc(half a) { return half(truncf(a)); }";

constexpr Definition kDefinitions[] = {
    {"uchar", "typedef unsigned char uchar;"},
    {"ushort", "typedef unsigned short ushort;"},
    {"uint", "typedef unsigned int uint;"},
    {"ulong", "typedef unsigned long ulong;"},
    {"half", kHalf},
    {"bf16", "struct bf16 { unsigned short bits; };"},
    {"fp8e4m3", "struct fp8e4m3 { unsigned char bits; };"},
    {"fp8e5m2", "struct fp8e5m2 { unsigned char bits; };"},
    {"INFINITY", "#define INFINITY __int_as_float(0x7f800000)"},
    {"NAN", "#define NAN __int_as_float(0x7fc00000)"},
    {"abs", "", "fabs"},
    {"inlined", "#define inlined static __device__ __forceinline__"},
    // What an item knows of a tensor core's memory: its part, the rows of its warp, what tells that products are done, whether it begins
    // them.
    {"Sums", "struct Sums { unsigned int place, lane, phase; unsigned long done; bool starts; };"},
    {"LONG_MIN", "#define LONG_MIN (-0x7fffffffffffffffl - 1)"},
};

/// The language's own vectors have other names for lanes and end at four. One instruction takes what is aligned as a whole.
std::string vector_type(std::string_view element, int lanes, int itemsize) {
  return fmt::format("struct __align__({2}) {0}_{1} {{ {0} at[{1}]; }};\n#define {0}{1} {0}_{1}", element, lanes,
                     std::bit_floor(unsigned(std::min(lanes * itemsize, 16))));
}
std::string vector(std::string_view type, std::string_view lanes) { return fmt::format("{}{{{}}}", type, lanes); }
std::string lane(std::string_view vector, int64_t at) { return fmt::format("{}.at[{}]", vector, at); }

bool is_bits(DType d) { return d == DType::bfloat16 || is_fp8(d); }
bool is_wrapped(DType d) { return is_bits(d) || d == DType::float16; }

/// A type that wraps its bits has them as a member.
std::string bits(Prelude& prelude, std::string_view x, DType from, DType to) {
  if (is_wrapped(from)) return fmt::format("({})({}).bits", prelude.type(to), x);
  if (is_bits(to)) return fmt::format("{}{{({}){}}}", prelude.type(to), itemsize(to) == 1 ? "unsigned char" : "unsigned short", x);
  if (to == DType::float16) {
    prelude.function(fmt::format("{} half_of_bits(unsigned short x) {{ half h; h.bits = x; return h; }}", prelude.type(to)));
    return fmt::format("half_of_bits({})", x);
  }
  const std::string f = prelude.type(from), t = prelude.type(to);
  prelude.function(fmt::format("{0} {1}_as_{0}({1} x) {{ {0} y; memcpy(&y, &x, sizeof y); return y; }}", t, f));
  return fmt::format("{}_as_{}({})", f, t, x);
}

std::string from_float(Prelude& prelude, std::string_view x, DType to) {
  const std::string t = prelude.type(to);
  if (to == DType::bfloat16) {
    prelude.function("bf16 to_bf16(float x) { bf16 y; asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x)); return y; }");
    return fmt::format("to_bf16({})", x);
  }
  // The instruction saturates; what is at least half a step beyond the largest number is infinity, or NaN.
  const bool has_infinity = to == DType::fp8e5m2;
  prelude.function(
      fmt::format("{0} to_{0}(float x) {{\n  unsigned short y;\n"
                  "  asm(\"cvt.rn.satfinite.{1}x2.f32 %0, %1, %2;\" : \"=h\"(y) : \"f\"(0.0f), \"f\"(x));\n"
                  "  return {0}{{(unsigned char)(fabs(x) {2} ? (y & 0x80) | {3} : y)}};\n}}",
                  t, has_infinity ? "e5m2" : "e4m3", has_infinity ? ">= 61440.0f" : "> 464.0f", has_infinity ? "0x7c" : "0x7f"));
  return fmt::format("to_{}({})", t, x);
}

std::string to_float(Prelude& prelude, std::string_view x, DType from) {
  const std::string t = prelude.type(from);
  if (from == DType::bfloat16) {
    prelude.function("float from_bf16(bf16 x) { return __uint_as_float((unsigned int)x.bits << 16); }");
  } else {
    prelude.function(
        fmt::format("float from_{0}({0} x) {{\n  unsigned int two;\n  float y;\n"
                    "  asm(\"cvt.rn.f16x2.{1}x2 %0, %1;\" : \"=r\"(two) : \"h\"((unsigned short)x.bits));\n"
                    "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"((unsigned short)two));\n  return y;\n}}",
                    t, from == DType::fp8e4m3 ? "e4m3" : "e5m2"));
  }
  return fmt::format("from_{}({})", t, x);
}

/// Into halves from what is wider than float, or an integer that float does not hold: once, by its instruction.
std::string to_half(Prelude& prelude, std::string_view x, DType from) {
  const bool is_real = is_float(from);
  const int width = std::max(bitsize(from), 32);
  const std::string_view constraint = is_real ? "d" : width == 64 ? "l" : "r";
  const std::string type = fmt::format("{}{}", is_real ? 'f' : is_signed(from) ? 's' : 'u', width), t = prelude.type(from);
  prelude.type(DType::float16);
  prelude.function(
      fmt::format("half {0}_to_half({0} x) {{ half h; asm(\"cvt.rn.f16.{1} %0, %1;\" : \"=h\"(h.bits) : \"{2}\"(x)); return h; }}", t, type,
                  constraint));
  return fmt::format("{}_to_half({})", t, x);
}

/// Floats that are bits only go through float, which holds all of them.
std::string cast(Prelude& prelude, std::string_view x, DType from, DType to) {
  if (is_bits(from)) {
    std::string wide = to_float(prelude, x, from);
    if (to == DType::float32) return wide;
    const std::string special = cast(prelude, wide, DType::float32, to);
    return special.empty() ? fmt::format("({}){}", prelude.type(to), wide) : special;
  }
  if (is_bits(to) && from == DType::float32) return from_float(prelude, x, to);
  if (is_bits(to) && bitsize(from) <= 16) return from_float(prelude, fmt::format("(float)({})", x), to);
  if (to == DType::float16 && (from == DType::float64 || bitsize(from) >= 32) && from != DType::float32) return to_half(prelude, x, from);
  return {};
}

std::string id(AxisKind kind, int dim) {
  return fmt::format("(int){}.{}", kind == AxisKind::global ? "blockIdx" : "threadIdx", "xyz"[dim]);
}

std::string kernel(const KernelText& text) {
  std::vector<std::string> parameters;
  for (const Parameter& p : text.parameters)
    parameters.push_back(p.is_memory ? fmt::format("{}* {}{}", p.type, p.is_restricted ? "__restrict__ " : "", p.name)
                                     : fmt::format("{} {}", p.type, p.name));
  std::string arrays;
  if (text.is_memory_given) arrays += fmt::format("  extern __shared__ __align__({}) unsigned char given[];\n", text.memory_alignment);
  for (const GroupArray& a : text.arrays)
    arrays += text.is_memory_given ? fmt::format("  {0}* const {1} = ({0}*)(given + {2});\n", a.type, a.name, a.place)
                                   : fmt::format("  __shared__ __align__({}) {} {}[{}];\n", a.alignment, a.type, a.name, a.size);
  const std::string bounds = text.items == 0 ? "" : fmt::format("__launch_bounds__({}) ", text.items);
  return fmt::format("extern \"C\" __global__ void {}{}({}) {{\n{}{}}}\n", bounds, kernel_symbol(text.info.name),
                     fmt::join(parameters, ", "), arrays, text.body);
}

std::string fetch(Prelude& prelude, std::string_view to, std::string_view from, int bytes, std::string_view valid) {
  prelude.function(
      fmt::format("void fetch{0}(void* to, const void* from, bool valid) {{\n"
                  "  asm volatile(\"{{\\n.reg .u64 near, far;\\ncvta.to.shared.u64 near, %0;\\ncvta.to.global.u64 far, %1;\\n\"\n"
                  "               \"cp.async.{1}.shared.global [near], [far], {0}, %2;\\n}}\"\n"
                  "               : : \"l\"(to), \"l\"(from), \"r\"(valid ? {0} : 0) : \"memory\");\n}}",
                  bytes, bytes == 16 ? "cg" : "ca"));
  return fmt::format("fetch{}({}, {}, {});", bytes, to, from, valid);
}
std::string commit() { return "asm volatile(\"cp.async.commit_group;\" : : : \"memory\");"; }
std::string wait(int pending) { return fmt::format("asm volatile(\"cp.async.wait_group {};\" : : : \"memory\");", pending); }

std::unique_ptr<AsyncProducts> products(Prelude& prelude, Names& names, const KernelInfo& info, const TensorCore& core) {
  return core.tensor_memory ? tensor_memory_products(prelude, names, info) : warpgroup_products(prelude, names);
}

constexpr GroupDialect kGroups = {
    .device_memory = "",
    .group_memory = "",
    .private_memory = "",
    .barrier = "__syncthreads();",
    .load_vector = nullptr,
    .store_vector = nullptr,
    .fetch = fetch,
    .commit = commit,
    .wait = wait,
    .products = products,
    .id = id,
};

}  // namespace

const Dialect& cuda_dialect() {
  static const Dialect dialect = {
      .name = "CUDA",
      .types = {"void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "fp8e4m3", "fp8e5m2", "half", "bf16",
                "float", "double", ""},
      .literal_suffixes = {"", "", "", "", "", "", "", "u", "l", "ul", "", "", "f", "", "f", "", ""},
      .literal_prefixes = {"", "", "", "", "", "", "", "", "", "", "", "", "(half)", "", "", "", ""},
      .definitions = kDefinitions,
      .helper = "inlined",
      .restricted = "__restrict__ ",
      .wraps = false,
      .calls_fma = true,
      .vector_type = vector_type,
      .vector = vector,
      .lane = lane,
      .bits = bits,
      .cast = cast,
      .only_converts = is_bits,
      .matrix_product = warp_product,
      .kernel = kernel,
      .groups = &kGroups,
  };
  return dialect;
}

}  // namespace tinygrad::renderer::cstyle
