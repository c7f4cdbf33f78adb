#pragma once
/// Terms of a sum, or values of a maximum, that add nothing to it, and the conditions that say so.

#include <vector>

#include "uop/uop.h"

namespace tinygrad::schedule {

/// A bool and what it must be for a term to count.
struct Condition {
  UOp test;
  bool is = true;
  friend bool operator==(const Condition&, const Condition&) = default;
};
using Conditions = std::vector<Condition>;

/// What terms are that do not count: 0; a weight that is 0, which an infinity may be multiplied by; -inf; an exponent that makes a weight
/// 0. What a padding's zero is multiplied by counts, since it may be infinite; a weight exp(-inf) leaves out what it weighs, as where
/// attention is computed in blocks elsewhere.
enum class Idle { zero, weight, least, exponent };

/// Adds what must hold, all of it, for the value not to be idle.
void add_conditions(const UOp& value, Idle idle, Conditions& out);

/// Adds the conditions that a test is made of.
void add_tests(const UOp& test, bool is, Conditions& out);

/// All of them as one bool; null if there are none.
UOp all_hold(const Conditions& conditions);

}  // namespace tinygrad::schedule
