#include "schedule/effects.h"

#include <algorithm>

#include "schedule/kernel_calls.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

UOp memory_of(const UOp& view) {
  const UOp* u = &view;
  while (u->is(Op::AFTER) || u->in(Group::movement)) u = &u->src(0);
  return u->is(Op::PARAM) ? *u : UOp();
}

UOp state_of(const UOp& view) {
  const UOp* u = &view;
  while (u->in(Group::movement)) u = &u->src(0);
  return *u;
}

Effects::Effects(const std::vector<UOp>& order) {
  for (const UOp& u : order)
    if (u.is(Op::STORE)) {
      const int n = int(stores_.size());
      numbers_[u] = n;
      replaced_by_[state_of(u.src(0))].push_back(n);
      stores_.push_back(u);
    }
}

const std::vector<int>& Effects::replaced_by(const UOp& state) const {
  static const auto& none = *new std::vector<int>;
  const auto* found = replaced_by_.find(state);
  return found ? *found : none;
}

namespace {

/// A small set of numbers.
class Bits {
 public:
  void add(int i) {
    if (words_.size() <= size_t(i) / 64) words_.resize(size_t(i) / 64 + 1);
    words_[size_t(i) / 64] |= uint64_t(1) << (i % 64);
  }
  bool has(int i) const { return size_t(i) / 64 < words_.size() && (words_[size_t(i) / 64] >> (i % 64) & 1); }
  void add(const Bits& o) {
    if (words_.size() < o.words_.size()) words_.resize(o.words_.size());
    for (size_t i = 0; i < o.words_.size(); ++i) words_[i] |= o.words_[i];
  }
  bool empty() const { return words_.empty(); }
  void clear() { words_.clear(); }
  template <class F>
  void each(F&& f) const {
    for (size_t i = 0; i < words_.size(); ++i)
      for (uint64_t w = words_[i]; w; w &= w - 1) f(int(i * 64) + std::countr_zero(w));
  }

 private:
  SmallVector<uint64_t, 2> words_;
};

}  // namespace

std::vector<UOp> Effects::hazards(const std::vector<UOp>& order) const {
  // A kernel that computes `u` reads the states `reads[u]` and runs after the stores `needs[u]`.
  struct Facts {
    Bits reads, needs;
  };
  std::vector<UOp> states;
  NodeMap<Facts> facts(order.size());
  NodeSet staged;
  std::vector<UOp> found;

  auto read_state = [&](const UOp& state) {
    Bits b;
    if (replaced_by(state).empty()) return b;
    auto it = std::find(states.begin(), states.end(), state);
    b.add(int(it - states.begin()));
    if (it == states.end()) states.push_back(state);
    return b;
  };

  for (const UOp& u : order) {
    Facts f;
    for (const UOp& s : scope_sources(u)) f.needs.add(facts[s].needs);
    const int self = u.is(Op::STORE) ? number(u) : -1;
    const size_t first = u.is(Op::STORE) || u.is(Op::AFTER) ? 1 : 0;  // the memory itself is not read here
    for (size_t i = first; i < scope_sources(u).size(); ++i) {
      const UOp& s = scope_sources(u)[i];
      if (u.is(Op::AFTER) || u.is(Op::SINK) || u.is(Op::GROUP)) continue;
      bool conflict = false;
      facts[s].reads.each([&](int state) {
        for (int store : replaced_by(states[size_t(state)])) conflict = conflict || (store != self && f.needs.has(store));
      });
      if (conflict) {
        if (staged.insert(s)) found.push_back(s);
        facts[s].reads.clear();
      }
      f.reads.add(facts[s].reads);
    }
    if (self >= 0) {
      f.needs.add(self);
      f.reads.clear();
    }
    if (u.is(Op::CONTIGUOUS) || is_transfer(u)) f.reads.clear();
    if (u.is(Op::PARAM) || u.is(Op::AFTER)) f.reads = read_state(u);
    facts[u] = std::move(f);
  }
  return found;
}

}  // namespace tinygrad::schedule
