#include "spec/plan.h"

#include <algorithm>

#include "shape/ranges.h"

namespace tinygrad::spec {

bool is_memory(const UOp& u) {
  const UOp* at = &u;
  while (at->in(Group::movement) || at->is(Op::AFTER)) at = &at->src(0);
  return at->is(Op::BUFFER) || at->is(Op::MSTACK) || (at->is(Op::PARAM) && !at->src().empty());
}

namespace {

bool reads_earlier_iterations(const UOp& u) {
  return u.is(Op::AFTER) && is_memory(u.src(0)) && std::ranges::any_of(u.src(), [](const UOp& s) { return s.is(Op::RANGE); });
}

bool contains(std::span<const UOp> list, const UOp& u) { return std::ranges::find(list, u) != list.end(); }

/// An iteration-reading AFTER of one of these ranges.
bool is_head(const UOp& u, std::span<const UOp> ranges) {
  return reads_earlier_iterations(u) && std::ranges::any_of(u.src(), [&](const UOp& s) { return contains(ranges, s); });
}

}  // namespace

std::span<const UOp> Plan::needs(const UOp& u) const {
  if (const Loop* l = loop(u)) return l->needs;
  if (u.is(Op::LINEAR)) return {};  // its calls are scopes of their own, run one after another
  if (u.is(Op::BIND)) return u.src().subspan(1);
  return scope_sources(u);
}

const Loop* Plan::loop(const UOp& u) const {
  const size_t* i = u.is(Op::END) ? loop_of_.find(u) : nullptr;
  return i ? &loops_[*i] : nullptr;
}

/// What is reachable over needs() of nodes for which `enter` holds, those alone, sources first.
template <class Enter>
std::vector<UOp> Plan::walk(std::span<const UOp> roots, Enter&& enter) const {
  struct At {
    UOp node;
    size_t next;
  };
  std::vector<UOp> out;
  std::vector<At> stack;
  NodeSet seen;
  auto visit = [&](const UOp& u) {
    if (seen.insert(u) && enter(u)) stack.push_back({u, 0});
  };
  for (const UOp& r : roots) {
    visit(r);
    while (!stack.empty()) {
      At& a = stack.back();
      const std::span<const UOp> sources = needs(a.node);
      if (a.next < sources.size()) {
        visit(sources[a.next++]);
      } else {
        out.push_back(std::move(a.node));
        stack.pop_back();
      }
    }
  }
  return out;
}

void Plan::find_loop(const UOp& end) {
  Loop l;
  for (const UOp& r : closed_ranges(end)) (r.arg_as<RangeArg>().kind == AxisKind::lane ? l.lanes : l.ranges).push_back(r);
  const std::span<const UOp> ranges = l.ranges;
  auto need = [&](const UOp& u) {
    if (!contains(l.needs, u)) l.needs.push_back(u);
  };
  auto add_head = [&](const UOp& u) {
    if (contains(l.heads, u)) return;
    l.heads.push_back(u);
    for (const UOp& s : u.src())
      if (!s.is(Op::RANGE) && !is_open_over(s, ranges)) need(s);
  };
  l.inside = walk(std::span(&end.src(0), 1), [&](const UOp& u) {
    if (contains(ranges, u)) return false;
    if (!is_open_over(u, ranges)) {
      need(u);
      return false;
    }
    if (!is_head(u, ranges)) return true;
    add_head(u);
    return false;
  });
  // Memory that inner loops carry may go from iteration to iteration of this one too.
  for (const UOp& u : l.inside)
    if (const Loop* inner = loop(u))
      for (const UOp& head : inner->heads)
        if (is_head(head, ranges)) add_head(head);
  if (l.heads.empty()) return;
  for (const UOp& r : ranges) need(r.src(0));
  for (const UOp& r : l.lanes) need(r);
  loop_of_[end] = loops_.size();
  loops_.push_back(std::move(l));
}

Plan::Plan(std::span<const UOp> roots) {
  const std::vector<UOp> all = toposort(roots);
  if (std::ranges::any_of(all, reads_earlier_iterations))
    for (const UOp& u : all)
      if (u.is(Op::END)) find_loop(u);
  order_ = walk(roots, [](const UOp&) { return true; });
  nodes_ = order_;
  for (const Loop& l : loops_) {
    nodes_.insert(nodes_.end(), l.inside.begin(), l.inside.end());
    nodes_.insert(nodes_.end(), l.heads.begin(), l.heads.end());
    nodes_.insert(nodes_.end(), l.needs.begin(), l.needs.end());
  }
  for (const UOp& u : all)
    if (loop(u))
      for (const UOp& r : closed_ranges(u)) nodes_.push_back(r);
}

}  // namespace tinygrad::spec
