#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "dtype/scalar.h"
#include "uop/op.h"

namespace tinygrad::renderer::llvmir {

/// A value in the text: a name or a literal, with its type.
struct Value {
  std::string ref;
  DType dtype = DType::void_;
  int lanes = 1;                     ///< 1: a scalar
  const Scalar* constant = nullptr;  ///< of every lane, where it is known
};

/// "float", "<8 x i1>": the type of a value in registers, where a bool is one bit.
std::string type_name(DType dtype, int lanes = 1);
/// The same in memory, where a bool is a byte.
std::string memory_type_name(DType dtype, int lanes = 1);
/// "1", "0x3FF0000000000000", "0xH3C00", "true".
std::string literal(const Scalar& value);
/// The literal of a vector with equal elements; of a scalar for one lane.
std::string splat_literal(const Scalar& value, int lanes);
/// The end of the name of an overloaded intrinsic: "f32", "v8f32".
std::string suffix(DType dtype, int lanes);

/// The body of the function as it grows, line by line.
class Emitter {
 public:
  /// `has_avx512`: of an x86, with all that its servers have of it. `has_halves`: what computes_halves() says.
  explicit Emitter(bool has_avx512 = false, bool has_halves = false) : has_avx512_(has_avx512), has_halves_(has_halves) {}
  bool has_avx512() const { return has_avx512_; }
  bool has_halves() const { return has_halves_; }

  /// Adds `%hintN = text` and returns "%hintN".
  std::string define(std::string_view hint, std::string_view text);
  void line(std::string_view text);
  /// A line in the entry block, before everything else.
  void entry_line(std::string_view text) { entry_.push_back("  " + std::string(text)); }
  /// Starts a block; the previous one must have ended with a branch.
  void block(std::string_view label);
  const std::string& current_block() const { return block_; }
  /// A fresh name, without the '%'.
  std::string fresh(std::string_view hint);

  /// Reserves a line that fill() writes later.
  size_t reserve();
  void fill(size_t reserved, std::string_view text);

  /// Calls an intrinsic whose arguments are given with their types, and declares it.
  std::string call(std::string_view hint, std::string_view result_type, std::string_view intrinsic,
                   const std::vector<std::string>& arguments);
  /// The same for one that gives nothing.
  void call_void(std::string_view intrinsic, const std::vector<std::string>& arguments);

  std::string body() const;
  std::string declarations() const;

 private:
  void declare(std::string_view result_type, std::string_view intrinsic, const std::vector<std::string>& arguments);

  bool has_avx512_, has_halves_;
  std::vector<std::string> entry_, lines_, declarations_;
  std::string block_ = "entry";
  int next_ = 0;
};

/// The value of an ALU node on these sources. `no_wrap`: the exact result of a sum, difference, product or shift of signed integers is
/// known to fit the dtype, so that LLVM need not think of wrapping.
Value emit_alu(Emitter& out, Op op, DType dtype, const std::vector<Value>& sources, bool no_wrap = false);
/// By the rules of Scalar::cast.
/// `is_small`: a float is known to be within int32, or NaN.
Value emit_cast(Emitter& out, const Value& x, DType dtype, bool is_small = false);
Value emit_bitcast(Emitter& out, const Value& x, DType dtype);

}  // namespace tinygrad::renderer::llvmir
