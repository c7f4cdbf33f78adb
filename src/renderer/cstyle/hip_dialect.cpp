#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "renderer/cstyle/amd_matrix_product.h"
#include "renderer/cstyle/lanes.h"
#include "renderer/cstyle/prelude.h"
#include "renderer/cstyle/value.h"

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
    {"inlined", "#define inlined static inline __attribute__((device, always_inline))"},
    {"LONG_MIN", "#define LONG_MIN (-0x7fffffffffffffffl - 1)"},
    {"barrier();",
     "static inline __attribute__((device, always_inline)) void barrier() {\n"
     "  __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\");\n"
     "  __builtin_amdgcn_s_barrier();\n"
     "  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\");\n"
     "}"},
};

std::string vector_type(std::string_view element, int lanes, int itemsize) {
  return fmt::format("typedef {0} {0}{1} __attribute__((ext_vector_type({1}), aligned({2})));", element, lanes, itemsize);
}

std::string vector(std::string_view type, std::string_view lanes) { return fmt::format("({}){{{}}}", type, lanes); }

std::string bits(Prelude& prelude, std::string_view x, DType, DType to) {
  return fmt::format("__builtin_bit_cast({}, {})", prelude.type(to), x);
}

std::string id(AxisKind kind, int dim) {
  return fmt::format("__builtin_amdgcn_{}_id_{}()", kind == AxisKind::global ? "workgroup" : "workitem", "xyz"[dim]);
}

std::string declaration(const Parameter& p) {
  return p.is_memory ? fmt::format("{}* {}{}", p.type, p.is_restricted ? "__restrict " : "", p.name) : fmt::format("{} {}", p.type, p.name);
}

std::string kernel(const KernelText& text) {
  std::vector<std::string> parameters;
  for (const Parameter& p : text.parameters) parameters.push_back(declaration(p));
  std::string arrays;
  for (const GroupArray& a : text.arrays)
    arrays += fmt::format("  __attribute__((shared, aligned(16))) {} {}[{}];\n", a.type, a.name, a.size);
  // Without a known size it may be any.
  const std::string items = text.items == 0 ? "1, 1024" : fmt::format("{0}, {0}", text.items);
  return fmt::format("extern \"C\" __attribute__((global, amdgpu_flat_work_group_size({}))) void {}({}) {{\n{}{}}}\n", items,
                     kernel_symbol(text.info.name), fmt::join(parameters, ", "), arrays, text.body);
}

constexpr GroupDialect kGroups = {
    .device_memory = "",
    .group_memory = "",
    .private_memory = "",
    .barrier = "barrier();",
    .load_vector = nullptr,
    .store_vector = nullptr,
    .id = id,
};

}  // namespace

const Dialect& hip_dialect() {
  static const Dialect dialect = {
      .name = "HIP",
      .types = {"void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "", "", "half", "", "float", "double",
                ""},
      .literal_suffixes = {"", "", "", "", "", "", "", "u", "l", "ul", "", "", "f16", "", "f", "", ""},
      .literal_prefixes = {},
      .definitions = kDefinitions,
      .helper = "inlined",
      .restricted = "__restrict ",
      .vector_type = vector_type,
      .vector = vector,
      .lane = numbered_lane,
      .bits = bits,
      .cast = nullptr,
      .matrix_product = amd_matrix_product,
      .kernel = kernel,
      .groups = &kGroups,
  };
  return dialect;
}

}  // namespace tinygrad::renderer::cstyle
