#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::shape {

/// An index expression as a sum of integer multiples of products of atoms. An atom is any node but a constant, ADD, SUB, NEG or MUL.
/// Equal polynomials have equal terms: each term's atoms and the terms themselves are in structural order, which the values of variables do
/// not change, and coefficients are not 0.
class Polynomial {
 public:
  /// Empty where the expression is too large to be worth it.
  static std::optional<Polynomial> of(const UOp& expr);

  bool is_number() const { return terms_.empty() || (terms_.size() == 1 && terms_[0].atoms.empty()); }
  int64_t number() const { return terms_.empty() ? 0 : terms_[0].coefficient; }
  /// The quotient, where the division leaves nothing for any value of the atoms.
  std::optional<Polynomial> divided_by(const Polynomial& divisor) const;
  /// The expression built again, a constant last.
  UOp build() const;

 private:
  struct Term {
    std::vector<UOp> atoms;
    int64_t coefficient = 0;
  };

  static Polynomial constant(int64_t value);
  static Polynomial atom(const UOp& u);
  static Polynomial add(const Polynomial& a, const Polynomial& b, int64_t sign);
  static Polynomial multiply(const Polynomial& a, const Polynomial& b);
  void normalize();

  std::vector<Term> terms_;
};

}  // namespace tinygrad::shape
