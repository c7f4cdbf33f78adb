#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::shape {

/// Fills the fact `slot` of `u` and of what it needs, sources first, with an explicit stack. `needs(node)` lists the sources whose facts
/// `make(node)` reads; it returns a new fact.
template <class Needs, class Make>
const CachedFact* fact_bottom_up(const UOp& u, FactSlot slot, Needs&& needs, Make&& make) {
  if (const CachedFact* f = u->fact(slot)) return f;
  const auto has_fact = [slot](const UOp& s) { return s->fact(slot) != nullptr; };
  if (std::ranges::all_of(needs(u), has_fact)) return u->set_fact(slot, make(u));  // the usual case: a node on top of known ones
  struct Frame {
    const UOp* node;  // kept alive by the root
    std::span<const UOp> sources;
    size_t next;
  };
  std::vector<Frame> stack{{&u, needs(u), 0}};
  while (true) {
    Frame& f = stack.back();
    if (f.next < f.sources.size()) {
      const UOp& s = f.sources[f.next++];
      if (!s->fact(slot)) stack.push_back({&s, needs(s), 0});
      continue;
    }
    const UOp& node = *f.node;
    const CachedFact* made = node->fact(slot);
    if (!made) made = node->set_fact(slot, make(node));
    stack.pop_back();
    if (stack.empty()) return made;
  }
}

}  // namespace tinygrad::shape
