#pragma once
/// The numbers that GGUF has for types of values and of elements.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include <tinygrad/formats.h>

#include "frontend/gguf/header.h"

namespace tinygrad::frontend {

/// Types of metadata.
enum class GgufValue : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
inline constexpr uint32_t gguf_value_types = 13;
inline constexpr std::string_view alignment_key = "general.alignment";
inline constexpr uint64_t default_alignment = 32;
inline constexpr size_t most_gguf_axes = 4;

/// A type of elements; one that the format has no more is monostate.
struct GgufTypeRow {
  std::string_view name;
  std::variant<std::monostate, DType, formats::BlockFormat> type;
};
/// The row of a number; null for one that none has.
const GgufTypeRow* gguf_type_row(uint32_t id);
/// The number of a type; nothing for a dtype that the format lacks.
std::optional<uint32_t> gguf_type_id(const ElementType& type);
/// Elements and bytes of what cannot be divided: a block, or one element.
formats::BlockLayout gguf_layout(const ElementType& type);

}  // namespace tinygrad::frontend
