#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "renderer/cstyle/lanes.h"
#include "renderer/cstyle/value.h"
#include "target/tensor_cores/registers.h"

namespace tinygrad::renderer::cstyle {
namespace {

constexpr Definition kDefinitions[] = {
    {"uchar", "typedef unsigned char uchar;"},
    {"ushort", "typedef unsigned short ushort;"},
    {"uint", "typedef unsigned int uint;"},
    {"ulong", "typedef unsigned long ulong;"},
    {"half", "typedef _Float16 half;"},
    {"INFINITY", "#define INFINITY __builtin_inff()"},
    {"NAN", "#define NAN __builtin_nanf(\"\")"},
    {"abs", "#define abs __builtin_elementwise_abs"},
    {"max", "#define max __builtin_elementwise_max"},
    {"sqrt", "#define sqrt __builtin_elementwise_sqrt"},
    {"trunc", "#define trunc __builtin_elementwise_trunc"},
    {"rint", "#define rint __builtin_elementwise_roundeven"},
    {"signbit", "#define signbit __builtin_signbit"},
    {"convert", "#define convert __builtin_convertvector"},
    {"shuffle", "#define shuffle __builtin_shufflevector"},
    {"inlined", "#define inlined static inline __attribute__((always_inline, overloadable))"},
    {"vdpbf16ps",
     "typedef __bf16 bf16_lanes __attribute__((vector_size(64)));\n"
     "#define vdpbf16ps(a, b, c) (float16) __builtin_ia32_dpbf16ps_512(c, (bf16_lanes)in_all_lanes(a), (bf16_lanes)(b))"},
    {"vpdpbusd_u8_s8", "#define vpdpbusd_u8_s8(a, b, c) (int16) __builtin_ia32_vpdpbusd512(c, in_all_lanes(a), (int16)(b))"},
    {"vpdpbusd_s8_u8", "#define vpdpbusd_s8_u8(a, b, c) (int16) __builtin_ia32_vpdpbusd512(c, (int16)(b), in_all_lanes(a))"},
    {"vpdpwssd", "#define vpdpwssd(a, b, c) (int16) __builtin_ia32_vpdpwssd512(c, in_all_lanes(a), (int16)(b))"},
    {"vpdpbusd_u8_s8_256", "#define vpdpbusd_u8_s8_256(a, b, c) (int8) __builtin_ia32_vpdpbusd256(c, in_all_lanes(a), (int8)(b))"},
    {"vpdpbusd_s8_u8_256", "#define vpdpbusd_s8_u8_256(a, b, c) (int8) __builtin_ia32_vpdpbusd256(c, (int8)(b), in_all_lanes(a))"},
    {"vpdpbssd_256", "#define vpdpbssd_256(a, b, c) (int8) __builtin_ia32_vpdpbssd256(c, in_all_lanes(a), (int8)(b))"},
    {"vpdpbuud_256", "#define vpdpbuud_256(a, b, c) (int8) __builtin_ia32_vpdpbuud256(c, in_all_lanes(a), (int8)(b))"},
    {"vpdpwssd_256", "#define vpdpwssd_256(a, b, c) (int8) __builtin_ia32_vpdpwssd256(c, in_all_lanes(a), (int8)(b))"},
    {"neon", "typedef signed char neon __attribute__((neon_vector_type(16)));"},
    {"sdot", "#define sdot(a, b, c) (int4) __builtin_neon_vdotq_s32((neon)(c), (neon)in_all_lanes(a), (neon)(b), 34)"},
    {"udot", "#define udot(a, b, c) (int4) __builtin_neon_vdotq_u32((neon)(c), (neon)in_all_lanes(a), (neon)(b), 50)"},
    {"usdot_u8_s8", "#define usdot_u8_s8(a, b, c) (int4) __builtin_neon_vusdotq_s32((neon)(c), (neon)in_all_lanes(a), (neon)(b), 34)"},
    {"usdot_s8_u8", "#define usdot_s8_u8(a, b, c) (int4) __builtin_neon_vusdotq_s32((neon)(c), (neon)(b), (neon)in_all_lanes(a), 34)"},
    {"bfdot", "#define bfdot(a, b, c) (float4) __builtin_neon_vbfdotq_f32((neon)(c), (neon)in_all_lanes(a), (neon)(b), 41)"},
    {"smmla", "#define smmla(a, b, c) (int4) __builtin_neon_vmmlaq_s32((neon)(c), rows(a), columns(b), 34)"},
    {"ummla", "#define ummla(a, b, c) (int4) __builtin_neon_vmmlaq_u32((neon)(c), rows(a), columns(b), 50)"},
    {"usmmla_u8_s8", "#define usmmla_u8_s8(a, b, c) (int4) __builtin_neon_vusmmlaq_s32((neon)(c), rows(a), columns(b), 34)"},
    {"usmmla_s8_u8", "#define usmmla_s8_u8(a, b, c) (int4) __builtin_neon_vusmmlaq_s32((neon)(c), columns(b), rows(a), 34)"},
    {"bfmmla", "#define bfmmla(a, b, c) (float4) __builtin_neon_vbfmmlaq_f32((neon)(c), rows(a), columns(b), 41)"},
    {"vpmaddwd_256",
     "typedef short words_256 __attribute__((vector_size(32)));\n"
     "#define vpmaddwd_256(a, b, c) ((c) + (int8)__builtin_ia32_pmaddwd256((words_256)in_all_lanes(a), (words_256)(b)))"},
    {"vpmaddwd_512",
     "typedef short words_512 __attribute__((vector_size(64)));\n"
     "#define vpmaddwd_512(a, b, c) ((c) + (int16)__builtin_ia32_pmaddwd512((words_512)in_all_lanes(a), (words_512)(b)))"},
    {"begin_tiles", "#define begin_tiles(configuration) __builtin_ia32_tile_loadconfig(configuration)"},
    {"end_tiles", "#define end_tiles() __builtin_ia32_tilerelease()"},
    {"clear_tile", "#define clear_tile(t) __builtin_ia32_tilezero(t)"},
    {"load_tile", "#define load_tile(t, from) __builtin_ia32_tileloadd64(t, from, 64)"},
    {"store_tile", "#define store_tile(t, to) __builtin_ia32_tilestored64(t, to, 64)"},
    {"tdpbf16ps", "#define tdpbf16ps(c, a, b) __builtin_ia32_tdpbf16ps(c, a, b)"},
    {"tdpbssd", "#define tdpbssd(c, a, b) __builtin_ia32_tdpbssd(c, a, b)"},
    {"tdpbsud", "#define tdpbsud(c, a, b) __builtin_ia32_tdpbsud(c, a, b)"},
    {"tdpbusd", "#define tdpbusd(c, a, b) __builtin_ia32_tdpbusd(c, a, b)"},
    {"tdpbuud", "#define tdpbuud(c, a, b) __builtin_ia32_tdpbuud(c, a, b)"},
    {"tdpfp16ps", "#define tdpfp16ps(c, a, b) __builtin_ia32_tdpfp16ps(c, a, b)"},
    {"LONG_MIN", "#define LONG_MIN (-0x7fffffffffffffffl - 1)"},
};

/// Aligned like an element, as data in memory is.
std::string vector_type(std::string_view element, int lanes, int itemsize) {
  return fmt::format("typedef {0} {0}{1} __attribute__((ext_vector_type({1}), aligned({2})));", element, lanes, itemsize);
}

std::string vector(std::string_view type, std::string_view lanes) { return fmt::format("({}){{{}}}", type, lanes); }

std::string bits(Prelude& prelude, std::string_view x, DType from, DType to) {
  const std::string t = prelude.type(to);
  prelude.function(fmt::format("{0} as_{0}({1} x) {{ {0} y; __builtin_memcpy(&y, &x, sizeof y); return y; }}", t, prelude.type(from)));
  return fmt::format("as_{}({})", t, x);
}

/// A row that all lanes share, in each of them.
void define_in_all_lanes(Prelude& prelude, const Value& row, int lanes) {
  prelude.function(
      fmt::format("{0} in_all_lanes({1} x) {{\n  int bits;\n  __builtin_memcpy(&bits, &x, sizeof(bits));\n  return ({0})bits;\n}}",
                  prelude.type(DType::int32, lanes), prelude.type(row.dtype, row.lanes)));
}

/// Each element of a factor that is held in several lanes once.
void define_each_once(Prelude& prelude, std::string_view name, const Value& factor, const TensorCore& core,
                      const TensorCore::Layout& layout) {
  prelude.function(fmt::format("neon {}({} x) {{ return (neon)__builtin_shufflevector(x, x, {}); }}", name,
                               prelude.type(factor.dtype, factor.lanes), fmt::join(distinct_elements(core, layout), ", ")));
}

/// Dot products in lanes.
Expr matrix_product(Prelude& prelude, const WmmaArg& arg, const Value& a, const Value& b, const Value& c) {
  const TensorCore& core = *find_tensor_core(arg.name);
  if (core.items == 4) prelude.word("neon");  // of ARM alone
  if (core.m == 1) {
    define_in_all_lanes(prelude, a, c.lanes);
  } else {
    define_each_once(prelude, "rows", a, core, core.a);
    define_each_once(prelude, "columns", b, core, core.b);
  }
  return {fmt::format("{}(({}), ({}), ({}))", prelude.word(arg.name.str()), a.expr.text, b.expr.text, c.expr.text)};
}

std::string declaration(const Parameter& p) {
  return fmt::format("{}{} {}{}", p.type, p.is_memory ? "*" : "", p.is_restricted ? "restrict " : "", p.name);
}

/// Past the caches, where the place is aligned: views may begin anywhere.
std::string stream(Prelude& prelude, std::string_view pointer, const Value& x) {
  const std::string element = prelude.type(x.dtype), vector = prelude.type(x.dtype, x.lanes);
  prelude.function(
      fmt::format("void stream({0}* p, {1} x) {{\n"
                  "  typedef {0} line __attribute__((ext_vector_type({2}), aligned({3})));\n"
                  "  if ((unsigned long)p % {3})\n    *({1}*)p = x;\n"
                  "  else\n    __builtin_nontemporal_store((line)x, (line*)p);\n}}",
                  element, vector, x.lanes, std::min(64, x.lanes * int(itemsize(x.dtype)))));
  return fmt::format("stream({}, {});", pointer, x.expr.text);
}

std::string prefetch(std::string_view pointer, bool is_written) {
  return fmt::format("__builtin_prefetch({}, {});", pointer, is_written ? "1, 3" : "0, 2");
}

/// A fence makes stores past the caches visible to others.
std::string kernel(const KernelText& text) { return cpu_kernel(text, "long", text.streams ? "  __builtin_ia32_sfence();\n" : ""); }

}  // namespace

// The body is a function of its own: only parameters of functions can be `restrict`.
std::string cpu_kernel(const KernelText& text, std::string_view number, std::string_view behind) {
  std::vector<std::string> declared, given;
  for (const Parameter& p : text.parameters) declared.push_back(declaration(p));
  for (const KernelParam& p : text.info.params) given.push_back(fmt::format("bufs[{}]", p.slot));
  for (const UOp& v : text.variables) {
    const auto at = std::find(text.info.variables.begin(), text.info.variables.end(), v.arg_as<VarArg>().name);
    given.push_back(fmt::format("vars[{}]", at - text.info.variables.begin()));
  }
  if (text.in_chunks) given.insert(given.end(), {"begin", "end"});
  for (int64_t offset : text.scratch) given.push_back(offset ? fmt::format("scratch + {}", offset) : "scratch");
  return fmt::format(
      "static inline void run({}) {{\n{}{}}}\n\n"
      "void {}(void* const* bufs, const {}* vars, {} begin, {} end, void* scratch) {{\n  run({});\n}}\n",
      fmt::join(declared, ", "), text.body, behind, kernel_symbol(text.info.name), number, number, number, fmt::join(given, ", "));
}

const Dialect& clang_dialect() {
  static const Dialect dialect = {
      .name = "C",
      .types = {"void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "", "", "half", "", "float", "double",
                ""},
      .literal_suffixes = {"", "", "", "", "", "", "", "u", "l", "ul", "", "", "f16", "", "f", "", ""},
      .literal_prefixes = {},
      .definitions = kDefinitions,
      .helper = "inlined",
      .restricted = "restrict ",
      .fuses_halves = false,
      .vector_type = vector_type,
      .vector = vector,
      .lane = numbered_lane,
      .bits = bits,
      .cast = nullptr,
      .stream = stream,
      .prefetch = prefetch,
      .matrix_product = matrix_product,
      .kernel = kernel,
  };
  return dialect;
}

}  // namespace tinygrad::renderer::cstyle
