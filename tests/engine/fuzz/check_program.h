#pragma once
/// A program on the evaluator and on devices, compared.

#include <string>
#include <vector>

#include "engine/fuzz/random_program.h"

namespace tinygrad::test {

/// Results may differ from the exact ones by at most this many ulps of the largest magnitude that occurs in the program, intermediate
/// values included, in its coarsest float dtype. Programs for which twice the bound of error_bounds() is more are not fair; for those that
/// are, each element is held to twice its own bound.
inline constexpr double most_ulps = 256;

struct Verdict {
  bool fair = true;
  std::string difference = {};  ///< what is wrong, empty if all agree
};

/// What a program runs on besides the evaluator.
struct Runs {
  std::vector<const char*> devices;               ///< as the option DEV names them
  std::vector<const char*> with_other_opts = {};  ///< with random opts, printed with a difference; TG_FUZZ_OPTS gives them as text
  uint64_t seed = 0;                              ///< of the opts
};

/// Runs the program on the evaluator and on devices: integers, bools and exact floats must agree exactly but for the sign of zero, other
/// floats within bounds.
Verdict check(const Program& p, const Runs& runs);

/// A smaller program that fails check() too: of one output, with as many values as possible given instead of computed.
Program smallest_failing(Program p, const Runs& runs);

}  // namespace tinygrad::test
