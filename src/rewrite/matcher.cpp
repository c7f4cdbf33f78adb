#include "rewrite/matcher.h"

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include <cmath>

namespace tinygrad::rewrite {

/// What the compiler reads of a pattern.
struct PatAccess {
  static const OpSet& ops(const Pat& p) { return p.ops_; }
  static const DTypeSet& dtypes(const Pat& p) { return p.dtypes_; }
  static const std::optional<std::vector<Pat>>& sources(const Pat& p) { return p.sources_; }
  static bool more(const Pat& p) { return p.more_; }
  static bool ordered(const Pat& p) { return p.ordered_; }
  static const std::optional<uint8_t>& capture(const Pat& p) { return p.capture_; }
  static const std::optional<Number>& number(const Pat& p) { return p.number_; }
  static const std::vector<Predicate>& tests(const Pat& p) { return p.tests_; }
};

namespace {

bool all_commutative(const OpSet& ops) {
  for (int op = 0; op < op_count; ++op)
    if (ops.test(size_t(op)) && !in_group(Op(op), Group::commutative)) return false;
  return ops.any();
}

}  // namespace

void Match::throw_unbound(Capture c) const {
  throw InternalError(fmt::format("rewrite rule: capture {} is not bound by the pattern that matched {}", c.id, name(root().op())));
}

CompiledPattern::NumberBits CompiledPattern::bits_of(const Number& n) {
  NumberBits out;
  for (int i = 1; i < dtype_count; ++i) {  // void_, the first, has no values
    const DType d = DType(i);
    const bool zero_or_one = n.integral ? n.i == 0 || n.i == 1 : n.d == 0 || n.d == 1;
    const bool whole = n.integral || (std::abs(n.d) < 0x1p63 && n.d == std::trunc(n.d));
    if ((is_bool(d) && !zero_or_one) || (is_int(d) && !whole)) continue;
    out.valid.set(size_t(i));
    out.bits[size_t(i)] = (n.integral ? Scalar::of(n.i, d) : Scalar::of(n.d, d)).bits();
  }
  return out;
}

void CompiledPattern::check_arity(const Step& s) const {
  if (s.any_sources) return;
  for (int op = 0; op < op_count; ++op) {
    const int arity = info(Op(op)).arity;
    if (s.ops.test(size_t(op)) && (arity < 0 || (s.more ? arity >= s.source_count : arity == s.source_count))) return;
  }
  throw InternalError(fmt::format("rewrite pattern: no op that it allows takes {} sources", s.source_count));
}

CompiledPattern::CompiledPattern(const Pat& root) {
  std::vector<const Pat*> queue{&root};
  for (size_t i = 0; i < queue.size(); ++i) {
    const Pat& p = *queue[i];
    Step s;
    s.ops = PatAccess::ops(p);
    s.dtypes = PatAccess::dtypes(p);
    if (s.ops.none() || s.dtypes.none()) throw InternalError("rewrite pattern: it allows no op or no dtype");
    if (auto& c = PatAccess::capture(p)) {
      if (*c >= max_captures) throw InternalError(fmt::format("rewrite pattern: capture {} of at most {}", *c, max_captures));
      s.capture = int8_t(*c);
      captures_ |= 1u << *c;
    }
    if (auto& n = PatAccess::number(p)) {
      s.number = int16_t(numbers_.size());
      numbers_.push_back(bits_of(*n));
    }
    s.first_test = uint16_t(tests_.size());
    s.test_count = uint16_t(PatAccess::tests(p).size());
    tests_.insert(tests_.end(), PatAccess::tests(p).begin(), PatAccess::tests(p).end());
    if (auto& sources = PatAccess::sources(p)) {
      s.any_sources = false;
      s.more = PatAccess::more(p);
      s.source_count = uint8_t(sources->size());
      s.first_source = uint8_t(queue.size());
      s.both_orders = sources->size() == 2 && all_commutative(s.ops) && !PatAccess::ordered(p);
      for (const Pat& q : *sources) {
        queue.push_back(&q);
        if (i == 0 && PatAccess::ops(q).count() == 1) required_ |= PatAccess::ops(q);
      }
    }
    if (queue.size() > max_steps) throw InternalError(fmt::format("rewrite pattern: more than {} nodes", max_steps));
    check_arity(s);
    steps_.push_back(s);
  }
}

}  // namespace tinygrad::rewrite
