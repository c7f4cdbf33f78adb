#include "renderer/ptx/emitter.h"

#include <bit>

#include <fmt/format.h>
#include <tinygrad/errors.h>

namespace tinygrad::renderer::ptx {
namespace {

struct KindNames {
  std::string_view type, prefix;
};
constexpr KindNames kKinds[register_kinds] = {{"pred", "%p"}, {"b16", "%h"}, {"b32", "%r"}, {"b64", "%rd"}, {"f32", "%f"}, {"f64", "%fd"}};

struct TypeNames {
  RegisterKind kind;
  std::string_view type, memory;
};

TypeNames names_of(DType dtype) {
  switch (dtype) {
    case DType::bool_: return {RegisterKind::predicate, "pred", "u8"};
    case DType::int8: return {RegisterKind::bits16, "s16", "s8"};
    case DType::uint8: return {RegisterKind::bits16, "u16", "u8"};
    case DType::int16: return {RegisterKind::bits16, "s16", "b16"};
    case DType::uint16: return {RegisterKind::bits16, "u16", "b16"};
    case DType::int32: return {RegisterKind::bits32, "s32", "b32"};
    case DType::uint32: return {RegisterKind::bits32, "u32", "b32"};
    case DType::int64: return {RegisterKind::bits64, "s64", "b64"};
    case DType::uint64: return {RegisterKind::bits64, "u64", "b64"};
    case DType::fp8e4m3:
    case DType::fp8e5m2: return {RegisterKind::bits16, "b16", "u8"};
    case DType::float16: return {RegisterKind::bits16, "f16", "b16"};
    case DType::bfloat16: return {RegisterKind::bits16, "b16", "b16"};
    case DType::float32: return {RegisterKind::float32, "f32", "f32"};
    case DType::float64: return {RegisterKind::float64, "f64", "f64"};
    default: throw InternalError(fmt::format("PTX: {} must be lowered before rendering", repr(dtype)));
  }
}

/// Types of which an instruction takes a literal.
bool has_literals(DType d) { return !is_bool(d) && (!is_float(d) || d == DType::float32 || d == DType::float64); }

}  // namespace

RegisterKind kind_of(DType dtype) { return names_of(dtype).kind; }
std::string_view type_name(DType dtype) { return names_of(dtype).type; }
std::string_view memory_name(DType dtype) { return names_of(dtype).memory; }
std::string_view bits_name(DType dtype) {
  switch (kind_of(dtype)) {
    case RegisterKind::float32: return "b32";
    case RegisterKind::float64: return "b64";
    default: return kKinds[int(kind_of(dtype))].type;
  }
}

void Emitter::line(std::string_view text) { body_.append("  ").append(text).append("\n"); }
void Emitter::label(std::string_view name) { body_.append(name).append(":\n"); }
void Emitter::entry_line(std::string_view text) { entry_.append("  ").append(text).append("\n"); }

std::string Emitter::fresh(RegisterKind kind) { return fmt::format("{}{}", kKinds[int(kind)].prefix, used_[size_t(kind)]++); }
std::string Emitter::fresh_label(std::string_view hint) { return fmt::format("${}{}", hint, labels_++); }

std::string Emitter::define(DType dtype, std::string_view instruction, std::string_view operands) {
  std::string name = fresh(kind_of(dtype));
  body_.append("  ").append(instruction).append(" ").append(name).append(", ").append(operands).append(";\n");
  return name;
}

std::string Emitter::in_register(const Operand& x) { return x.constant ? constant(*x.constant) : x.text; }

std::string Emitter::constant(const Scalar& value) {
  std::string& name = constants_[value];
  if (!name.empty()) return name;
  name = fresh(kind_of(value.dtype()));
  entry_line(is_bool(value.dtype()) ? fmt::format("setp.ne.b32 {}, {}, 0;", name, int(value.as_bool()))
                                    : fmt::format("mov.{} {}, {};", bits_name(value.dtype()), name, literal(value)));
  return name;
}

std::string Emitter::declarations() const {
  std::string out;
  for (int k = 0; k < register_kinds; ++k)
    if (used_[size_t(k)] > 0) out += fmt::format("  .reg .{} {}<{}>;\n", kKinds[k].type, kKinds[k].prefix, used_[size_t(k)]);
  return out;
}

std::string literal(const Scalar& value) {
  const DType d = value.dtype();
  if (d == DType::float32) return fmt::format("0f{:08X}", value.storage_bits());
  if (d == DType::float64) return fmt::format("0d{:016X}", value.storage_bits());
  if (is_float(d)) return fmt::format("0x{:04X}", value.storage_bits());
  if (d == DType::uint64) return fmt::format("0x{:X}", value.as_uint());
  // The least int64 is no literal with a sign in front.
  if (d == DType::int64 && value.as_int() == INT64_MIN) return "0x8000000000000000";
  return std::to_string(value.as_int());
}

Operand constant_operand(Emitter& out, const Scalar& value) {
  const DType d = value.dtype();
  return {.text = has_literals(d) ? literal(value) : out.constant(value), .dtype = d, .constant = &value};
}

}  // namespace tinygrad::renderer::ptx
