#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "renderer/cstyle/prelude.h"
#include "renderer/cstyle/value.h"

namespace tinygrad::renderer::cstyle {
namespace {

constexpr Definition kDefinitions[] = {
    {"inlined", "", "static inline"},
    {"sqrt", "", "precise::sqrt"},
    {"LONG_MIN", "", "(-0x7fffffffffffffffL - 1)"},
};

std::string vector_type(std::string_view, int, int) { return {}; }

std::string vector(std::string_view type, std::string_view lanes) { return fmt::format("{}({})", type, lanes); }

std::string lane(std::string_view vector, int64_t lane) { return fmt::format("{}[{}]", vector, lane); }

std::string bits(Prelude& prelude, std::string_view x, DType, DType to) { return fmt::format("as_type<{}>({})", prelude.type(to), x); }

std::string id(AxisKind kind, int dim) {
  return fmt::format("int({}.{})", kind == AxisKind::global ? "threadgroup_position_in_grid" : "thread_position_in_threadgroup",
                     "xyz"[dim]);
}

/// What simdgroup matrices hold where the dtypes of a value are bits.
struct Core {
  std::string_view name, factor, sum;
  bool from_bits = false;
};
constexpr Core kCores[] = {
    {"simdgroup_8x8x8_f32", "float", "float"},
    {"simdgroup_8x8x8_f16_f32", "half", "float"},
    {"simdgroup_8x8x8_bf16_f32", "bfloat", "float", true},
    {"simdgroup_8x8x8_f16_f16", "half", "half"},
};

Expr matrix_product(Prelude& prelude, const WmmaArg& arg, const Value& a, const Value& b, const Value& c) {
  const auto core = std::ranges::find(kCores, arg.name.str(), &Core::name);
  if (core == std::end(kCores)) throw InternalError(fmt::format("Metal: there is no tensor core {}", arg.name.str()));
  const auto set = [&](std::string_view matrix, std::string_view from, int lane, bool from_bits) {
    const std::string x = fmt::format("{}[{}]", from, lane);
    return fmt::format("  {}.thread_elements()[{}] = {};\n", matrix, lane, from_bits ? fmt::format("as_type<{}>({})", core->factor, x) : x);
  };
  std::string sets;
  for (int i = 0; i < 2; ++i) sets += set("p", "a", i, core->from_bits) + set("q", "b", i, core->from_bits) + set("sum", "c", i, false);
  const std::string factor = prelude.type(a.dtype, a.lanes), sum = prelude.type(c.dtype, c.lanes);
  prelude.function(
      fmt::format("{0} {1}({2} a, {2} b, {0} c) {{\n"
                  "  simdgroup_matrix<{3}, 8, 8> p, q;\n"
                  "  simdgroup_matrix<{4}, 8, 8> sum;\n{5}"
                  "  simdgroup_multiply_accumulate(sum, p, q, sum);\n"
                  "  return {0}(sum.thread_elements()[0], sum.thread_elements()[1]);\n}}",
                  sum, core->name, factor, core->factor, core->sum, sets));
  return {fmt::format("{}({}, {}, {})", core->name, a.expr.text, b.expr.text, c.expr.text)};
}

/// Variables are one array behind the memory, as a kernel takes 31 arguments at most.
std::string kernel(const KernelText& text) {
  std::vector<std::string> parameters;
  std::string variables, arrays;
  size_t count = 0;
  for (const Parameter& p : text.parameters) {
    if (p.is_memory) {
      parameters.push_back(fmt::format("device {}* {} [[buffer({})]]", p.type, p.name, parameters.size()));
    } else {
      variables += fmt::format("  const {} {} = variables[{}];\n", p.type, p.name, count++);
    }
  }
  if (count != 0) parameters.push_back(fmt::format("constant long* variables [[buffer({})]]", parameters.size()));
  for (const std::string_view position : {"threadgroup_position_in_grid", "thread_position_in_threadgroup"})
    parameters.push_back(fmt::format("uint3 {0} [[{0}]]", position));
  for (const GroupArray& a : text.arrays) arrays += fmt::format("  alignas(16) threadgroup {} {}[{}];\n", a.type, a.name, a.size);
  const std::string items = text.items == 0 ? "" : fmt::format("[[max_total_threads_per_threadgroup({})]] ", text.items);
  return fmt::format("{}kernel void {}({}) {{\n{}{}{}}}\n", items, kernel_symbol(text.info.name), fmt::join(parameters, ", "), arrays,
                     variables, text.body);
}

constexpr GroupDialect kGroups = {
    .device_memory = "device ",
    .group_memory = "threadgroup ",
    .private_memory = "thread ",
    .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);",
    .load_vector = nullptr,
    .store_vector = nullptr,
    .id = id,
};

}  // namespace

const Dialect& metal_dialect() {
  static const Dialect dialect = {
      .name = "Metal",
      .preamble = "#include <metal_stdlib>\nusing namespace metal;\n\n",
      .types = {"void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "", "", "half", "", "float", "", ""},
      .literal_suffixes = {"", "", "", "", "", "", "", "u", "L", "uL", "", "", "h", "", "f", "", ""},
      .literal_prefixes = {"", "", "(char)", "(uchar)", "(short)", "(ushort)", "", "", "", "", "", "", "", "", "", "", ""},
      .definitions = kDefinitions,
      .helper = "inlined",
      .restricted = "",
      .wraps = false,
      .calls_fma = true,
      .vector_type = vector_type,
      .vector = vector,
      .lane = lane,
      .bits = bits,
      .cast = nullptr,
      .matrix_product = matrix_product,
      .kernel = kernel,
      .groups = &kGroups,
  };
  return dialect;
}

}  // namespace tinygrad::renderer::cstyle
