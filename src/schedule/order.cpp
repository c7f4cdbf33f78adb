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
  std::vector<int> sorted() {
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < waits_.size(); ++i)
      if (waits_[i] == 0) ready.push(int(i));
    std::vector<int> order;
    while (!ready.empty()) {
      const int k = ready.top();
      ready.pop();
      order.push_back(k);
      for (int n : next_[size_t(k)])
        if (--waits_[size_t(n)] == 0) ready.push(n);
    }
    return order;
  }

 private:
  std::vector<std::vector<int>> next_;
  std::vector<int> waits_;
};

}  // namespace

std::vector<int> order_kernels(const std::vector<Kernel>& kernels, const Effects& effects) {
  std::vector<int> kernel_of_store(effects.stores().size(), -1);
  for (size_t i = 0; i < kernels.size(); ++i)
    if (kernels[i].store >= 0) kernel_of_store[size_t(kernels[i].store)] = int(i);

  Edges edges(kernels.size());
  auto after_state = [&](const UOp& state, int kernel) {
    if (!state.is(Op::AFTER)) return;
    std::vector<UOp> effects_of(state.src().begin() + 1, state.src().end());
    while (!effects_of.empty()) {
      const UOp e = effects_of.back();
      effects_of.pop_back();
      if (e.is(Op::STORE)) {
        if (const int k = kernel_of_store[size_t(effects.number(e))]; k >= 0) edges.add(k, kernel);
      } else {
        for (const UOp& s : e.src()) effects_of.push_back(s);
      }
    }
  };
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Kernel& k = kernels[i];
    for (int a : k.after) edges.add(a, int(i));
    if (k.store >= 0) after_state(state_of(effects.stores()[size_t(k.store)].src(0)), int(i));
    for (const UOp& state : k.reads) {
      after_state(state, int(i));
      for (int s : effects.replaced_by(state))
        if (const int writer = kernel_of_store[size_t(s)]; writer >= 0) edges.add(int(i), writer);
    }
  }
  std::vector<int> order = edges.sorted();
  if (order.size() != kernels.size()) throw InternalError("schedule: the kernels wait for each other in a circle");
  return order;
}

}  // namespace tinygrad::schedule
