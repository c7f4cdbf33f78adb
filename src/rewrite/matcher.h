#pragma once
/// Compiled patterns and what a match binds.

#include <array>
#include <span>
#include <vector>

#include "rewrite/pattern.h"

namespace tinygrad::rewrite {

/// The nodes that a pattern's captures stand for; valid while the rule runs.
class Match {
 public:
  /// The node under a name; InternalError if the pattern does not bind it.
  const UOp& operator[](Capture c) const {
    if (!has(c)) throw_unbound(c);
    return *at_[c.id];
  }
  bool has(Capture c) const { return (bound_ >> c.id & 1) != 0; }
  /// The node that the whole pattern matched.
  const UOp& root() const { return *root_; }
  /// The value of a captured CONST; InternalError if it is another op.
  const Scalar& value(Capture c) const { return (*this)[c].arg_as<ConstArg>().value; }
  /// The same as an int64.
  int64_t int_value(Capture c) const { return value(c).as_int(); }

 private:
  friend class CompiledPattern;
  [[noreturn]] void throw_unbound(Capture c) const;

  const UOp* root_ = nullptr;
  std::array<const UOp*, max_captures> at_;
  uint32_t bound_ = 0;
};

/// A pattern as a flat list of checks, sources after users, run by a loop with a stack of the commutative choices made.
class CompiledPattern {
 public:
  /// InternalError for a pattern that can never match or is too large; the message says why.
  explicit CompiledPattern(const Pat& p);

  const OpSet& root_ops() const { return steps_[0].ops; }
  /// Ops that must be among those of the root's sources.
  const OpSet& required_source_ops() const { return required_; }
  bool binds(Capture c) const { return (captures_ >> c.id & 1) != 0; }

  /// Calls `accept` for each way to match, in a fixed order, until it returns true; whether it did. The root's op was checked.
  template <class Accept>
  bool match(const UOp& root, Accept&& accept) const;

 private:
  static constexpr size_t max_steps = 24;

  struct Step {
    OpSet ops;
    DTypeSet dtypes;
    int8_t capture = -1;
    bool any_sources = true;
    bool more = false;
    bool both_orders = false;
    uint8_t source_count = 0;
    uint8_t first_source = 0;  ///< the steps of the sources lie side by side
    int16_t number = -1;
    uint16_t first_test = 0, test_count = 0;
  };
  /// The canonical bits of a number in each dtype that can hold it.
  struct NumberBits {
    DTypeSet valid;
    std::array<uint64_t, dtype_count> bits{};
  };

  void check_arity(const Step& s) const;
  static NumberBits bits_of(const Number& n);

  /// Whether the node itself fits; binds its capture.
  bool fits(const Step& s, const UOp& u, Match& m) const {
    const Node& n = *u.get();
    if (!s.ops.test(size_t(n.op)) || !s.dtypes.test(size_t(n.dtype))) return false;
    if (!s.any_sources && (s.more ? n.source_count < s.source_count : n.source_count != s.source_count)) return false;
    if (s.number >= 0) {
      const Scalar& v = std::get_if<ConstArg>(&n.arg)->value;
      const NumberBits& bits = numbers_[size_t(s.number)];
      if (!bits.valid.test(size_t(v.dtype())) || bits.bits[size_t(v.dtype())] != v.bits()) return false;
    }
    if (s.capture >= 0) {
      const uint32_t bit = 1u << s.capture;
      if (!(m.bound_ & bit)) {
        m.at_[size_t(s.capture)] = &u;
        m.bound_ |= bit;
      } else if (*m.at_[size_t(s.capture)] != u) {
        return false;
      }
    }
    for (uint16_t i = 0; i < s.test_count; ++i)
      if (!tests_[s.first_test + i](u)) return false;
    return true;
  }

  std::vector<Step> steps_;
  std::vector<NumberBits> numbers_;
  std::vector<Predicate> tests_;
  OpSet required_;
  uint32_t captures_ = 0;
};

template <class Accept>
bool CompiledPattern::match(const UOp& root, Accept&& accept) const {
  struct Choice {
    uint8_t step;
    uint32_t bound;
  };
  std::array<const UOp*, max_steps> at;
  std::array<Choice, max_steps> choices;
  size_t choice_count = 0;
  Match m;
  m.root_ = &root;
  at[0] = &root;
  for (size_t i = 0;;) {
    if (i < steps_.size() && fits(steps_[i], *at[i], m)) {
      const Step& s = steps_[i];
      const std::span<const UOp> sources = at[i]->src();
      for (size_t k = 0; k < s.source_count; ++k) at[s.first_source + k] = &sources[k];
      if (s.both_orders && sources[0] != sources[1]) choices[choice_count++] = {uint8_t(i), m.bound_};
      ++i;
      continue;
    }
    if (i == steps_.size() && accept(std::as_const(m))) return true;
    if (choice_count == 0) return false;
    const Choice last = choices[--choice_count];
    const Step& s = steps_[last.step];
    m.bound_ = last.bound;
    at[s.first_source] = &at[last.step]->src(1);
    at[s.first_source + 1] = &at[last.step]->src(0);
    i = last.step + 1u;
  }
}

}  // namespace tinygrad::rewrite
