#pragma once
/// Sizes: a number, or an expression of dtype `index` where the size is not known before launch.

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "uop/uop.h"

namespace tinygrad {

/// Inclusive bounds of a value.
struct SizeBounds {
  int64_t min = 0, max = 0;
};

/// A size or an offset: a number, or else an index expression. Sums, differences and products are kept in a normal form (a polynomial
/// in structural order), so that `n + 1 - n` is the number 1 and (n + 1) * 2 equals 2 * n + 2. ShapeError for numbers beyond 64 bits.
class SInt {
 public:
  SInt() = default;
  template <std::integral T>
  SInt(T value) : value_(static_cast<int64_t>(value)) {}
  /// An integer CONST becomes a number; anything else of dtype `index` stays an expression. DTypeError for other dtypes.
  SInt(const UOp& expr);

  bool known() const { return !expr_; }
  /// The number; ValueError if it is not known before launch.
  int64_t value() const;
  /// The size as a node, a CONST where it is known.
  UOp uop() const;
  SizeBounds bounds() const;
  int64_t min() const { return bounds().min; }
  int64_t max() const { return bounds().max; }

  /// True where both are the same for all values of their variables, as far as algebra on sums and products can tell.
  friend bool operator==(const SInt& a, const SInt& b) { return a.known() && b.known() ? a.value_ == b.value_ : equal(a, b); }
  friend SInt operator+(const SInt& a, const SInt& b) {
    int64_t sum = 0;
    return a.known() && b.known() && !__builtin_add_overflow(a.value_, b.value_, &sum) ? SInt(sum) : combine(Op::ADD, a, b);
  }
  friend SInt operator-(const SInt& a, const SInt& b) {
    int64_t difference = 0;
    return a.known() && b.known() && !__builtin_sub_overflow(a.value_, b.value_, &difference) ? SInt(difference) : combine(Op::SUB, a, b);
  }
  friend SInt operator*(const SInt& a, const SInt& b) {
    int64_t product = 0;
    return a.known() && b.known() && !__builtin_mul_overflow(a.value_, b.value_, &product) ? SInt(product) : combine(Op::MUL, a, b);
  }
  SInt& operator+=(const SInt& o) { return *this = *this + o; }
  SInt& operator-=(const SInt& o) { return *this = *this - o; }
  SInt& operator*=(const SInt& o) { return *this = *this * o; }
  SInt operator-() const { return SInt(0) - *this; }

 private:
  static bool equal(const SInt& a, const SInt& b);
  static SInt combine(Op op, const SInt& a, const SInt& b);

  int64_t value_ = 0;
  UOp expr_;  // null for a number
};

/// What the values of its BINDs give; ValueError for a variable that has none.
int64_t value_now(const SInt& s);
/// a < b for all values of their variables, or for those that they are bound to now.
bool less_now(const SInt& a, const SInt& b);

/// What less_now() found false on this thread, since this was made, of the values at hand alone. Other values have to meet it as well
/// where they replay what was checked.
class SizeAssumptions {
 public:
  SizeAssumptions();
  ~SizeAssumptions();
  SizeAssumptions(const SizeAssumptions&) = delete;
  SizeAssumptions& operator=(const SizeAssumptions&) = delete;

  /// Expressions, with the values of variables that have some.
  const std::vector<UOp>& not_negative() const { return not_negative_; }

 private:
  friend bool less_now(const SInt& a, const SInt& b);
  void add(const SInt& difference);

  std::vector<UOp> not_negative_;
  SizeAssumptions* const outer_;
};

/// Rounded towards minus infinity; `b` must not be 0.
SInt floor_div(const SInt& a, const SInt& b);
/// Rounded towards plus infinity.
SInt ceil_div(const SInt& a, const SInt& b);
SInt floor_mod(const SInt& a, const SInt& b);
SInt max(const SInt& a, const SInt& b);
SInt min(const SInt& a, const SInt& b);

// What holds for all values of the variables; false where it cannot be decided.
bool surely_less(const SInt& a, const SInt& b);
bool surely_not_greater(const SInt& a, const SInt& b);
/// The two cannot be equal.
bool surely_differ(const SInt& a, const SInt& b);

uint64_t hash_value(const SInt& s) noexcept;
/// The number, or the expression as print_expr writes it.
std::string to_string(const SInt& s);

}  // namespace tinygrad
