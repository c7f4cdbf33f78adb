#include "frontend/gguf/types.h"

namespace tinygrad::frontend {

using enum formats::BlockFormat;

namespace {

constexpr std::monostate removed{};

// By their numbers (ggml.h, ggml_type).
constexpr std::array<GgufTypeRow, 43> rows{{
    {"F32", DType::float32},
    {"F16", DType::float16},
    {"Q4_0", Q4_0},
    {"Q4_1", Q4_1},
    {"Q4_2", removed},
    {"Q4_3", removed},
    {"Q5_0", Q5_0},
    {"Q5_1", Q5_1},
    {"Q8_0", Q8_0},
    {"Q8_1", Q8_1},
    {"Q2_K", Q2_K},
    {"Q3_K", Q3_K},
    {"Q4_K", Q4_K},
    {"Q5_K", Q5_K},
    {"Q6_K", Q6_K},
    {"Q8_K", Q8_K},
    {"IQ2_XXS", IQ2_XXS},
    {"IQ2_XS", IQ2_XS},
    {"IQ3_XXS", IQ3_XXS},
    {"IQ1_S", IQ1_S},
    {"IQ4_NL", IQ4_NL},
    {"IQ3_S", IQ3_S},
    {"IQ2_S", IQ2_S},
    {"IQ4_XS", IQ4_XS},
    {"I8", DType::int8},
    {"I16", DType::int16},
    {"I32", DType::int32},
    {"I64", DType::int64},
    {"F64", DType::float64},
    {"IQ1_M", IQ1_M},
    {"BF16", DType::bfloat16},
    {"Q4_0_4_4", removed},
    {"Q4_0_4_8", removed},
    {"Q4_0_8_8", removed},
    {"TQ1_0", TQ1_0},
    {"TQ2_0", TQ2_0},
    {"IQ4_NL_4_4", removed},
    {"IQ4_NL_4_8", removed},
    {"IQ4_NL_8_8", removed},
    {"MXFP4", MXFP4},
    {"NVFP4", NVFP4},
    {"Q1_0", Q1_0},
    {"Q2_0", Q2_0},
}};

}  // namespace

const GgufTypeRow* gguf_type_row(uint32_t id) { return id < rows.size() ? &rows[id] : nullptr; }

std::optional<uint32_t> gguf_type_id(const ElementType& type) {
  for (uint32_t id = 0; id < rows.size(); ++id) {
    const auto& row = rows[id].type;
    const auto is_row = [&](const auto& t) {
      return std::holds_alternative<std::decay_t<decltype(t)>>(row) && std::get<std::decay_t<decltype(t)>>(row) == t;
    };
    if (std::visit(is_row, type)) return id;
  }
  return {};
}

formats::BlockLayout gguf_layout(const ElementType& type) {
  if (const auto* format = std::get_if<formats::BlockFormat>(&type)) return formats::layout_of(*format);
  const auto dtype = std::get<DType>(type);
  return {name(dtype), 1, int32_t(itemsize(dtype))};
}

}  // namespace tinygrad::frontend
