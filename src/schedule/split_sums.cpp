#include "schedule/split_sums.h"

#include <algorithm>
#include <vector>

#include "schedule/place.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

constexpr size_t most_terms = 8, terms_at_once = 4;

/// The terms of a sum, from the first to the last. A sum that others use too is a term.
std::vector<UOp> terms_of(const UOp& sum, const NodeMap<int>& users) {
  std::vector<UOp> out;
  for (std::vector<const UOp*> stack{&sum}; !stack.empty();) {
    const UOp& u = *stack.back();
    stack.pop_back();
    if (u.is(Op::ADD) && (u == sum || *users.find(u) == 1)) {
      stack.push_back(&u.src(1));
      stack.push_back(&u.src(0));
    } else {
      out.push_back(u);
    }
  }
  return out;
}

bool is_sum_of_sums(const UOp& u) {
  return u.is(Op::REDUCE) && u.src_count() == 1 && u.arg_as<ReduceArg>().op == Op::ADD && u.src(0).is(Op::ADD);
}

/// `reduce` over some of the terms at a time, each stored together with those before it.
UOp summed(const UOp& reduce, const std::vector<UOp>& terms) {
  UOp out;
  for (size_t i = 0; i < terms.size(); i += terms_at_once) {
    UOp some = terms[i];
    for (size_t k = i + 1; k < std::min(terms.size(), i + terms_at_once); ++k) some = some + terms[k];
    const UOp sum = reduce.with_src(UOps{some});
    out = out ? UOp(Op::CONTIGUOUS, sum.dtype(), {out}) + sum : sum;
  }
  return out;
}

}  // namespace

UOp split_sums(const UOp& sink) {
  const std::vector<UOp> order = toposort(sink);
  NodeMap<int> users(order.size());
  for (const UOp& u : order)
    for (const UOp& s : u.src()) ++users[s];
  const NodeSet broadcasts = broadcasts_of(order);
  NodeMap<UOp> done(order.size());
  bool changed = false;
  for (const UOp& u : order) {
    UOps sources(u.src());
    if (changed)
      for (UOp& s : sources)
        if (const UOp* d = done.find(s)) s = *d;
    UOp& now = done[u] = changed ? u.with_src(sources) : u;
    if (!is_sum_of_sums(u) || *users.find(u.src(0)) > 1) continue;
    std::vector<UOp> terms = terms_of(u.src(0), users);
    if (terms.size() <= most_terms || !std::ranges::all_of(terms, [&](const UOp& t) { return broadcasts.contains(t); })) continue;
    for (UOp& t : terms) t = done[t];
    now = summed(u, terms);
    changed = true;
  }
  return done[sink];
}

}  // namespace tinygrad::schedule
