#include "schedule/order.h"

#include <algorithm>
#include <queue>

#include <tinygrad/errors.h>

namespace tinygrad::schedule {

namespace {

class Edges {
 public:
  explicit Edges(size_t n) : next_(n), waits_(n) {}
  void add(int from, int to) {
    if (from == to) return;
    next_[size_t(from)].push_back(to);
    ++waits_[size_t(to)];
  }
  /// In order, smallest numbers first; without those that wait for a circle.
  std::vector<int> sorted() const {
    std::vector<int> waits = waits_;
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i] == 0) ready.push(int(i));
    std::vector<int> order;
    while (!ready.empty()) {
      const int k = ready.top();
      ready.pop();
      order.push_back(k);
      for (int n : next_[size_t(k)])
        if (--waits[size_t(n)] == 0) ready.push(n);
    }
    return order;
  }
  /// True for those in circles and on ways between circles.
  std::vector<bool> circles() const {
    std::vector<bool> left(next_.size(), true);
    for (int k : sorted()) left[size_t(k)] = false;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < next_.size(); ++i)
        if (left[i] && std::none_of(next_[i].begin(), next_[i].end(), [&](int n) { return left[size_t(n)]; })) {
          left[i] = false;
          changed = true;
        }
    }
    return left;
  }

 private:
  std::vector<std::vector<int>> next_;
  std::vector<int> waits_;
};

/// Which kernels must run before which.
class Dependences {
 public:
  Dependences(const std::vector<Kernel>& kernels, const Effects& effects)
      : effects_(effects), kernel_of_store_(effects.stores().size(), -1), edges_(kernels.size()) {
    for (size_t i = 0; i < kernels.size(); ++i)
      if (kernels[i].store >= 0) kernel_of_store_[size_t(kernels[i].store)] = int(i);
    for (size_t i = 0; i < kernels.size(); ++i) {
      const Kernel& k = kernels[i];
      for (int a : k.after) edges_.add(a, int(i));
      if (k.store >= 0) after_state(state_of(effects.stores()[size_t(k.store)].src(0)), int(i));
      for (const UOp& state : k.reads) {
        after_state(state, int(i));
        for (int writer : writers_over(state)) edges_.add(int(i), writer);
      }
    }
  }

  const Edges& edges() const { return edges_; }
  /// The kernels that write over a state.
  std::vector<int> writers_over(const UOp& state) const {
    std::vector<int> out;
    for (int s : effects_.replaced_by(state))
      if (const int writer = kernel_of_store_[size_t(s)]; writer >= 0) out.push_back(writer);
    return out;
  }

 private:
  void after_state(const UOp& state, int kernel) {
    if (!state.is(Op::AFTER)) return;
    std::vector<UOp> effects_of(state.src().begin() + 1, state.src().end());
    while (!effects_of.empty()) {
      const UOp e = effects_of.back();
      effects_of.pop_back();
      if (e.is(Op::STORE)) {
        if (const int k = kernel_of_store_[size_t(effects_.number(e))]; k >= 0) edges_.add(k, kernel);
      } else {
        for (const UOp& s : e.src()) effects_of.push_back(s);
      }
    }
  }

  const Effects& effects_;
  std::vector<int> kernel_of_store_;
  Edges edges_;
};

}  // namespace

std::vector<int> order_kernels(const std::vector<Kernel>& kernels, const Effects& effects) {
  std::vector<int> order = Dependences(kernels, effects).edges().sorted();
  if (order.size() != kernels.size()) throw InternalError("schedule: the kernels wait for each other in a circle");
  return order;
}

std::vector<UOp> circle_breakers(const std::vector<Kernel>& kernels, const Effects& effects) {
  const Dependences dependences(kernels, effects);
  const std::vector<bool> circles = dependences.edges().circles();
  std::vector<UOp> out;
  for (size_t i = 0; i < kernels.size(); ++i)
    for (const UOp& state : kernels[i].reads)
      for (int writer : dependences.writers_over(state)) {
        if (!circles[i] || !circles[size_t(writer)] || writer == int(i)) continue;
        if (kernels[i].root.is(Op::STORE)) out.push_back(kernels[i].root.src(1));
        out.push_back(state);
      }
  return out;
}

}  // namespace tinygrad::schedule
