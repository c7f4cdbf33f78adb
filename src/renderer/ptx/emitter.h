#pragma once
/// The text of a PTX kernel as it grows, and what single instructions look like.

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/scalar.h"
#include "uop/op.h"

namespace tinygrad::renderer::ptx {

/// The kinds of registers, by what PTX tells apart. Integers of 8 bits are held in 16, extended by their sign or by zeros; bools are
/// predicates, and a float that is only converted is its bits.
enum class RegisterKind : uint8_t { predicate, bits16, bits32, bits64, float32, float64 };
inline constexpr int register_kinds = 6;
RegisterKind kind_of(DType dtype);

/// What instructions call a type in a register: "f32", "s16", "u64"; a float that is only converted is "b16".
std::string_view type_name(DType dtype);
/// The same by its bits: "b32", "pred".
std::string_view bits_name(DType dtype);
/// The same in memory, where it may be narrower: "s8", "b16".
std::string_view memory_name(DType dtype);

/// One number: a register, or a literal where instructions take one.
struct Operand {
  std::string text;
  DType dtype = DType::void_;
  const Scalar* constant = nullptr;
};

class Emitter {
 public:
  void line(std::string_view text);
  void label(std::string_view name);
  /// A line in front of everything else.
  void entry_line(std::string_view text);
  std::string fresh(RegisterKind kind);
  std::string fresh_label(std::string_view hint);

  /// `instruction REGISTER, operands;` with a new register for a value of the dtype.
  std::string define(DType dtype, std::string_view instruction, std::string_view operands);
  /// The operand in a register.
  std::string in_register(const Operand& x);
  /// A literal in a register that holds it throughout the kernel.
  std::string constant(const Scalar& value);

  /// Declarations of all registers.
  std::string declarations() const;
  const std::string& entry() const { return entry_; }
  const std::string& body() const { return body_; }

 private:
  std::string entry_, body_;
  std::array<int, register_kinds> used_{};
  std::map<Scalar, std::string> constants_;
  int labels_ = 0;
};

/// "1", "0f3F800000", "0x3C00"
std::string literal(const Scalar& value);
/// A constant as an operand: the literal, or a register for types of which instructions take none.
Operand constant_operand(Emitter& out, const Scalar& value);

/// The value of an ALU node on these scalars.
std::string emit_alu(Emitter& out, Op op, DType dtype, std::span<const Operand> sources);
/// By the rules of Scalar::cast.
std::string emit_cast(Emitter& out, const Operand& x, DType dtype);
std::string emit_bitcast(Emitter& out, const Operand& x, DType dtype);

}  // namespace tinygrad::renderer::ptx
