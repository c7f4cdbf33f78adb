#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "renderer/cstyle/lanes.h"
#include "renderer/cstyle/prelude.h"

namespace tinygrad::renderer::cstyle {
namespace {

constexpr Definition kDefinitions[] = {
    {"whole_texels", "__constant sampler_t whole_texels = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;"},
    {"abs", "", "fabs"},
    {"double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"},
    {"half", "#pragma OPENCL EXTENSION cl_khr_fp16 : enable"},
};

std::string vector_type(std::string_view, int, int) { return {}; }

std::string vector(std::string_view type, std::string_view lanes) { return fmt::format("({})({})", type, lanes); }

/// as_T takes what has the size of T: small integers, which arithmetic made ints of, are made small again.
std::string bits(Prelude& prelude, std::string_view x, DType from, DType to) {
  const std::string arg = bitsize(from) < 32 ? fmt::format("({})({})", prelude.type(from), x) : std::string(x);
  return prelude.type(from) == prelude.type(to) ? arg : fmt::format("as_{}({})", prelude.type(to), arg);
}

/// Devices without arithmetic on halves read and write them all the same. Such a half is its bits, which the language converts in memory.
std::string cast_of_stored_half(Prelude& prelude, std::string_view x, DType from, DType to) {
  if (from == DType::float16 && to == DType::float32) {
    prelude.function("float half_to_float(ushort x) { return vload_half(0, (const __private half*)&x); }");
    return fmt::format("half_to_float({})", x);
  }
  if (from == DType::float32 && to == DType::float16) {
    prelude.function("ushort float_to_half(float x) { ushort y; vstore_half_rte(x, 0, (__private half*)&y); return y; }");
    return fmt::format("float_to_half({})", x);
  }
  return {};
}

std::string id(AxisKind kind, int dim) { return fmt::format("{}({})", kind == AxisKind::global ? "get_group_id" : "get_local_id", dim); }

/// They begin at any element, which pointers to vectors must not.
std::string load_vector(std::string_view pointer, int lanes) { return fmt::format("vload{}(0, {})", lanes, without_parentheses(pointer)); }
std::string store_vector(std::string_view pointer, int lanes, std::string_view x) {
  return fmt::format("vstore{}({}, 0, {});", lanes, x, without_parentheses(pointer));
}

/// Outside of the image it is 0.
std::string read_texel(Prelude& prelude, std::string_view image, std::string_view x, std::string_view y) {
  return fmt::format("read_imagef({}, {}, (int2)({}, {}))", image, prelude.word("whole_texels"), x, y);
}
std::string write_texel(std::string_view image, std::string_view x, std::string_view y, std::string_view texel) {
  return fmt::format("write_imagef({}, (int2)({}, {}), {});", image, x, y, texel);
}

/// An OpenCL buffer has no address on the host, so a part of one is given by the buffer and where the part begins, in elements.
void declare(const Parameter& p, std::vector<std::string>& parameters, std::string& body) {
  if (!p.is_memory) return parameters.push_back(fmt::format("{} {}", p.type, p.name));
  parameters.push_back(fmt::format("__global {}* {}{}_buffer", p.type, p.is_restricted ? "restrict " : "", p.name));
  parameters.push_back(fmt::format("ulong {}_begin", p.name));
  body += fmt::format("  __global {0}* {1} = {1}_buffer + {1}_begin;\n", p.type, p.name);
}

/// Memory of the group is declared in the kernel's outermost block, and aligned for the widest vectors.
std::string kernel(const KernelText& text) {
  std::vector<std::string> parameters;
  std::string body;
  for (const Parameter& p : text.parameters) declare(p, parameters, body);
  for (const GroupArray& a : text.arrays)
    body += fmt::format("  __local {} {}[{}] __attribute__((aligned(16)));\n", a.type, a.name, a.size);
  const KernelInfo& info = text.info;
  const std::string size = text.items == 0 ? ""
                                           : fmt::format("__attribute__((reqd_work_group_size({}, {}, {}))) ", info.local[0].evaluate({}),
                                                         info.local[1].evaluate({}), info.local[2].evaluate({}));
  return fmt::format("__kernel {}void {}({}) {{\n{}{}}}\n", size, kernel_symbol(info.name), fmt::join(parameters, ", "), body, text.body);
}

constexpr GroupDialect kGroups = {
    .device_memory = "__global ",
    .group_memory = "__local ",
    .private_memory = "__private ",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
    .load_vector = load_vector,
    .store_vector = store_vector,
    .id = id,
    .read_image = "read_only image2d_t",
    .written_image = "write_only image2d_t",
    .read_texel = read_texel,
    .write_texel = write_texel,
};

Dialect make_dialect(bool has_half) {
  return {
      .name = "OpenCL C",
      .types = {"void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "", "", has_half ? "half" : "ushort",
                "", "float", "double", ""},
      .literal_suffixes = {"", "", "", "", "", "", "", "u", "l", "ul", "", "", "h", "", "f", "", ""},
      .literal_prefixes = {"", "", "(char)", "(uchar)", "(short)", "(ushort)", "", "", "", "", "", "", "", "", "", "", ""},
      .definitions = kDefinitions,
      .helper = "static",
      .restricted = "restrict ",
      .overloads = false,
      .wraps = false,
      .vector_type = vector_type,
      .vector = vector,
      .lane = numbered_lane,
      .bits = bits,
      .cast = has_half ? nullptr : cast_of_stored_half,
      .only_converts = has_half ? nullptr : +[](DType d) { return d == DType::float16; },
      .matrix_product = nullptr,
      .kernel = kernel,
      .groups = &kGroups,
  };
}

}  // namespace

const Dialect& opencl_dialect(bool has_half) {
  static const Dialect with_halves = make_dialect(true), without = make_dialect(false);
  return has_half ? with_halves : without;
}

}  // namespace tinygrad::renderer::cstyle
