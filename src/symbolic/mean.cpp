#include "symbolic/mean.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::symbolic {

namespace {

constexpr int64_t few = 64;

UOp simplified(const UOp& u) {
  static const auto& rules = *new rewrite::Rules<>(index_rules() + data_rules());
  return rewrite::graph_rewrite(u, rules, {.name = "mean"});
}

UOp at(const UOp& u, const std::vector<UOp>& loops, const std::vector<UOp>& values) {
  NodeMap<UOp> map;
  for (size_t i = 0; i < loops.size(); ++i) map[loops[i]] = values[i];
  return substitute(u, map);
}

/// 1 where nothing is known.
int64_t middle_of(const Bounds& b) { return b.has_min() && b.has_max() ? std::midpoint(b.min, b.max) : 1; }

/// A loop may be bounded by one that is bounded itself.
UOp in_the_middle(const UOp& u, const std::vector<UOp>& loops) {
  std::vector<UOp> middle;
  for (const UOp& l : loops) middle.push_back(floor_div(l.src(0), 2));
  return simplified(mean(at(u, loops, middle)));
}

}  // namespace

UOp mean(const UOp& u) {
  std::vector<UOp> loops;
  bool known = true;
  for (const UOp& v : toposort(u)) {
    if (v.in(Group::memory)) return constant(u.dtype(), middle_of(bounds(u)));
    if (!v.is(Op::RANGE) && !v.is(Op::SPECIAL)) continue;
    loops.push_back(v);
    known = known && v.src(0).is(Op::CONST);
  }
  if (loops.empty()) return u;
  if (!known) return in_the_middle(u, loops);
  int64_t each = few;
  while (each > 1 && std::pow(double(each), double(loops.size())) > few) --each;
  std::vector<int64_t> steps(loops.size(), 0), points;
  for (const UOp& l : loops) points.push_back(std::clamp<int64_t>(const_value(l.src(0))->as_int(), 1, each));
  int64_t sum = 0, count = 0;
  for (bool more = true; more; ++count) {
    std::vector<UOp> values;
    for (size_t i = 0; i < loops.size(); ++i)
      values.push_back(constant(loops[i].dtype(), const_value(loops[i].src(0))->as_int() * (2 * steps[i] + 1) / (2 * points[i])));
    const UOp value = simplified(at(u, loops, values));
    const Scalar* number = const_value(value);
    if (!number) return in_the_middle(u, loops);
    sum += number->as_int();
    more = false;
    for (size_t i = 0; i < steps.size() && !more; ++i) {
      more = ++steps[i] < points[i];
      if (!more) steps[i] = 0;
    }
  }
  return constant(u.dtype(), (sum + count / 2) / count);
}

}  // namespace tinygrad::symbolic
