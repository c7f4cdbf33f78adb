#include "schedule/argument_cuts.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "schedule/effects.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

using Memory = std::vector<int>;  ///< numbers of what is read, sorted

Memory joined(const Memory& a, const Memory& b) {
  Memory out;
  std::ranges::set_union(a, b, std::back_inserter(out));
  return out;
}

bool can_be_cut(const UOp& u) { return (u.in(Group::elementwise) || u.is(Op::REDUCE)) && u.dtype() != DType::index; }

class Cuts {
 public:
  Cuts(const UOp& root, size_t most, const NodeSet& stored) : root_(root), most_(std::max<size_t>(most, 2)), stored_(stored) {}

  std::vector<UOp> of_kernel() {
    const auto is_inside = [&](const UOp& u) { return u == root_ || !is_memory(u); };
    for (const UOp& u : toposort_where(std::span(&root_, 1), is_inside)) read(u);
    return std::move(cuts_);
  }

 private:
  bool is_memory(const UOp& u) const { return u.is(Op::PARAM) || u.is(Op::AFTER) || stored_.contains(u); }

  void read(const UOp& u) {
    if (u != root_ && is_memory(u)) {
      // States of one memory are one argument.
      const UOp memory = u.is(Op::AFTER) ? memory_of(u) : u;
      reads_[u] = {*numbers_.insert(memory, int(numbers_.size())).first};
      return;
    }
    Memory all = read_by(u);
    while (all.size() > most_ && cut_largest(u)) all = read_by(u);
    reads_[u] = std::move(all);
  }

  Memory read_by(const UOp& u) {
    Memory all;
    for (const UOp& s : scope_sources(u))
      if (const Memory* m = reads_.find(s)) all = joined(all, *m);
    return all;
  }

  /// Stores what reads most of what is next below: views of it read what is stored.
  bool cut_largest(const UOp& u) {
    const UOp* largest = nullptr;
    for (const UOp& s : scope_sources(u)) {
      const UOp* v = &s;
      while (v->in(Group::movement)) v = &v->src(0);
      if (can_be_cut(*v) && reads_[*v].size() > (largest ? reads_[*largest].size() : 1)) largest = v;
    }
    if (!largest) return false;
    cuts_.push_back(*largest);
    const Memory now{*numbers_.insert(*largest, int(numbers_.size())).first};
    for (const UOp& s : scope_sources(u)) {
      const UOp* v = &s;
      while (v->in(Group::movement)) v = &v->src(0);
      if (*v != *largest) continue;
      for (const UOp* w = &s;; w = &w->src(0)) {
        reads_[*w] = now;
        if (*w == *largest) break;
      }
    }
    return true;
  }

  const UOp root_;
  const size_t most_;
  const NodeSet& stored_;
  NodeMap<int> numbers_;
  NodeMap<Memory> reads_;
  std::vector<UOp> cuts_;
};

}  // namespace

std::vector<UOp> argument_cuts(const UOp& root, size_t most, const NodeSet& stored) { return Cuts(root, most, stored).of_kernel(); }

}  // namespace tinygrad::schedule
