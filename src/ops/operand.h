#pragma once
/// What builders take: nodes and C++ numbers, and the settings that fill in dtypes and devices.

#include <concepts>
#include <span>
#include <utility>

#include "dtype/scalar.h"
#include "shape/shape.h"
#include "uop/uop.h"

namespace tinygrad::ops {

/// The user's settings, passed down: builders do not read the environment.
struct OpsContext {
  DType default_float = DType::float32;
  DType default_int = DType::int32;
  Symbol device = {};  ///< where created values live; empty: decided by what they are used with
};

/// An operand: a node, or a number that takes the dtype of what it meets. An integer beside a bool is of the default int, a
/// floating-point number beside an integer or bool of the default float, a bool beside anything of that dtype. An integer that the dtype
/// it meets does not hold makes the result int64 (uint64 where only that holds it).
class Operand {
 public:
  Operand(const UOp& node) : node_(node) {}
  Operand(const Scalar& number) : number_(number) {}
  Operand(const SInt& size) : node_(size.known() ? UOp() : size.uop()) {
    if (size.known()) number_ = Scalar::of(size.value());
  }
  template <class T>
    requires(std::integral<T> || std::floating_point<T>)
  Operand(T number) : number_(Scalar::of(number)) {}

  /// A size as a number of Python or C++ is one: an integer that takes the dtype of what it meets.
  static Operand number_of(const SInt& size) {
    Operand out(size);
    if (size.known()) return out;
    out.weak_ = true;
    out.number_ = Scalar::of(int64_t{0});
    return out;
  }
  /// The operand marked as a number that the caller gave (ConstArg::given).
  Operand as_given() const {
    Operand out = *this;
    out.given_ = is_number();
    return out;
  }

  bool is_number() const { return !node_; }
  /// A number, or a size that counts as one.
  bool is_weak() const { return !node_ || weak_; }
  bool is_given() const { return given_; }
  const UOp& node() const { return node_; }
  const Scalar& number() const { return number_; }

 private:
  UOp node_;
  Scalar number_;  ///< of a weak size: 0, of its kind
  bool weak_ = false;
  bool given_ = false;
};

/// int64 or uint64, which holds an integer beside which `other` is too narrow; ValueError if neither holds the values of both.
DType wider_int(DType other, const Scalar& number);
/// The dtype of literal integers: the first of the default int, int64 and uint64 that holds all of them. ValueError if none does.
class LiteralInt {
 public:
  explicit LiteralInt(DType default_int) : dtype_(default_int) {}
  void add(const Scalar& number);
  DType dtype() const { return dtype_; }

 private:
  DType dtype_;
  bool has_negative_ = false;
};
/// The dtype both operands promote to.
DType common_dtype(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// The dtype that all of them promote to.
DType common_dtype(std::span<const UOp> values, const OpsContext& ctx = {});
/// The value with a dtype that gives way beside others as a number's does, and with one that does not (tinygrad's weakint and weakfloat).
/// What is made only of weak values is weak: elementwise ops and views of them. Beside a weak float an integer or bool becomes a weak value
/// of the default float, beside a weak integer a bool one of the default int; so do a signed integer and uint64 a weak float. Reductions,
/// comparisons and casts give values that are not weak.
UOp weak(const UOp& x);
UOp strong(const UOp& x);
/// The operand as a node of that dtype; a number becomes a constant of shape ().
UOp as_node(const Operand& x, DType dtype);
/// The operand as a node: a number gets the dtype of its kind (bool, default int, default float).
UOp as_node(const Operand& x, const OpsContext& ctx = {});
/// Both as nodes of the common dtype, broadcast to one shape; an operand of shape () stays as it is, as ALU nodes allow. ShapeError naming
/// `op`, the caller if nothing is given.
std::pair<UOp, UOp> broadcast_operands(const Operand& a, const Operand& b, const OpsContext& ctx = {},
                                       const char* op = __builtin_FUNCTION());
/// `x` cast to the default float unless it is a float.
UOp to_float(const UOp& x, const OpsContext& ctx = {});

/// The shape that all broadcast to; ShapeError naming `op` if there is none.
Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op = "broadcast");
/// `x` repeated to `shape`: axes of size 1 are expanded, missing leading ones added.
UOp broadcast_to(const UOp& x, const Shape& shape);

}  // namespace tinygrad::ops
