#include "uop/graph.h"

#include <algorithm>
#include <iterator>

namespace tinygrad {

namespace {

inline std::span<const UOp> sources_in_scope(const UOp& u) {
  switch (u.op()) {
    case Op::FUNCTION: return {};
    case Op::CALL: return u.src().subspan(1);
    case Op::REALIZED: return u.src().first(1);
    default: return u.src();
  }
}

/// A set of nodes that is emptied in no time, and kept by its thread from one walk to the next.
class Visited {
 public:
  /// The thread's, or another where a walk's callback walks itself.
  class Lease {
   public:
    Lease() : set_(idle().count ? idle().sets[--idle().count] : make()) { set_->clear(); }
    ~Lease() {
      if (idle().may_keep(*set_))
        idle().sets[idle().count++] = set_;
      else
        delete set_;
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Visited& operator*() { return *set_; }
    Visited* operator->() { return set_; }

   private:
    Visited* const set_;
  };

  std::vector<const UOp*> order;  ///< the walk's result so far

  /// True if it was not there.
  bool insert(const Node* node) {
    if ((size_ + 1) * 2 > cells_.size()) grow();
    Cell* c = place(node);
    if (c->round == round_) return false;
    *c = {node, round_};
    ++size_;
    return true;
  }

 private:
  static constexpr size_t most_kept = size_t{1} << 16;

  /// The sets that no walk of the thread uses. It is never destroyed: walks may still run when the thread's objects have been.
  struct Idle {
    Visited* sets[4];
    size_t count;
    bool ended;

    bool may_keep(const Visited& set) const { return !ended && count < std::size(sets) && set.cells_.size() <= most_kept; }
  };
  struct AtExit {
    ~AtExit() {
      Idle& all = idle();
      while (all.count) delete all.sets[--all.count];
      all.ended = true;
    }
  };
  static Idle& idle() {
    constinit thread_local Idle sets{};
    return sets;
  }
  static Visited* make() {
    thread_local AtExit at_exit;
    (void)at_exit;
    return new Visited;
  }

  struct Cell {
    const Node* node = nullptr;
    uint64_t round = 0;  ///< a cell of an earlier round is empty
  };

  void clear() {
    ++round_;
    size_ = 0;
    order.clear();
  }
  Cell* place(const Node* node) {
    const size_t mask = cells_.size() - 1;
    size_t i = size_t((reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15ull >> 20) & mask;
    while (cells_[i].round == round_ && cells_[i].node != node) i = (i + 1) & mask;
    return &cells_[i];
  }
  void grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& c : old)
      if (c.round == round_) *place(c.node) = c;
  }

  std::vector<Cell> cells_ = std::vector<Cell>(256);
  uint64_t round_ = 0;
  size_t size_ = 0;
};

/// Depth-first walk with an explicit stack; `sources_of` tells what to enter.
template <class SourcesOf>
void walk(std::span<const UOp> roots, SourcesOf&& sources_of, Visited& seen) {
  struct Frame {
    const UOp* node;
    std::span<const UOp> sources;
    size_t next;
  };
  SmallVector<Frame, 64> stack;
  auto visit = [&](const UOp& u) {
    if (seen.insert(u.get())) stack.push_back({&u, sources_of(u), 0});
  };
  for (const UOp& root : roots) {
    visit(root);
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next < f.sources.size()) {
        visit(f.sources[f.next++]);
      } else {
        seen.order.push_back(f.node);
        stack.pop_back();
      }
    }
  }
}

template <class SourcesOf>
std::vector<UOp> walk(std::span<const UOp> roots, SourcesOf&& sources_of) {
  Visited::Lease seen;
  walk(roots, sources_of, *seen);
  std::vector<UOp> out;
  out.reserve(seen->order.size());
  for (const UOp* u : seen->order) out.push_back(*u);
  return out;
}

}  // namespace

std::span<const UOp> scope_sources(const UOp& u) { return sources_in_scope(u); }

std::vector<UOp> toposort(std::span<const UOp> roots, Scopes scopes) {
  if (scopes == Scopes::enter) return walk(roots, [](const UOp& u) { return u.src(); });
  return walk(roots, [](const UOp& u) { return sources_in_scope(u); });
}

std::vector<UOp> toposort(const UOp& root, Scopes scopes) { return toposort(std::span(&root, 1), scopes); }

std::vector<const UOp*> borrowed_toposort(std::span<const UOp> roots) {
  Visited::Lease seen;
  walk(roots, [](const UOp& u) { return sources_in_scope(u); }, *seen);
  return seen->order;
}

std::vector<const UOp*> borrowed_toposort(const UOp& root) { return borrowed_toposort(std::span(&root, 1)); }

std::vector<UOp> toposort_where(std::span<const UOp> roots, const std::function<bool(const UOp&)>& enter) {
  return walk(roots, [&](const UOp& u) { return enter(u) ? sources_in_scope(u) : std::span<const UOp>{}; });
}

bool reaches(const UOp& root, const UOp& node) {
  SmallVector<const UOp*, 64> stack{&root};
  Visited::Lease seen;
  while (!stack.empty()) {
    const UOp& u = *stack.back();
    stack.pop_back();
    if (u == node) return true;
    if (!seen->insert(u.get())) continue;
    for (const UOp& s : sources_in_scope(u)) stack.push_back(&s);
  }
  return false;
}

std::vector<UOp> substitute(std::span<const UOp> roots, const NodeMap<UOp>& map) {
  const std::vector<UOp> order = toposort_where(roots, [&](const UOp& u) { return !map.contains(u); });
  NodeMap<UOp> done(order.size());
  for (const UOp& u : order) {
    if (const UOp* replacement = map.find(u)) {
      done[u] = *replacement;
      continue;
    }
    size_t first = 0;  // source that changed
    const auto replaced = [&](const UOp& s) {
      const UOp* d = done.find(s);
      return d && *d != s ? d : nullptr;
    };
    while (first < u.src_count() && !replaced(u.src(first))) ++first;
    if (first == u.src_count()) {
      done[u] = u;
      continue;
    }
    UOps sources(u.src().begin(), u.src().end());
    for (size_t i = first; i < sources.size(); ++i)
      if (const UOp* d = replaced(sources[i])) sources[i] = *d;
    done[u] = u.with_src(sources);
  }
  std::vector<UOp> out;
  out.reserve(roots.size());
  for (const UOp& r : roots) out.push_back(done[r]);
  return out;
}

UOp substitute(const UOp& root, const NodeMap<UOp>& map) { return substitute(std::span(&root, 1), map)[0]; }

namespace {

struct KeyFact final : CachedFact {
  explicit KeyFact(ContentKey k) : key(k) {}
  ContentKey key;
};

ContentKey own_key(const UOp& u) {
  auto fold = [&](uint64_t seed) {
    uint64_t h = hash_combine(seed, uint64_t(u.op()) << 8 | uint64_t(u.dtype()));
    return hash_combine(h, hash_arg(u.arg()));
  };
  ContentKey key{fold(0x243F6A8885A308D3ull), fold(0x13198A2E03707344ull)};
  for (const UOp& s : u.src()) {
    const ContentKey k = static_cast<const KeyFact*>(s->fact(FactSlot::content_key))->key;
    key.lo = hash_combine(key.lo, k.lo);
    key.hi = hash_combine(key.hi, k.hi);
  }
  return key;
}

}  // namespace

ContentKey content_key(const UOp& u) {
  if (auto* f = u->fact(FactSlot::content_key)) return static_cast<const KeyFact*>(f)->key;
  struct Frame {
    UOp node;
    size_t next;
  };
  std::vector<Frame> stack{{u, 0}};
  while (!stack.empty()) {
    Frame& f = stack.back();
    if (f.next < f.node.src_count()) {
      const UOp& s = f.node.src(f.next++);
      if (!s->fact(FactSlot::content_key)) stack.push_back({s, 0});
    } else {
      f.node->set_fact(FactSlot::content_key, new KeyFact(own_key(f.node)));
      stack.pop_back();
    }
  }
  return static_cast<const KeyFact*>(u->fact(FactSlot::content_key))->key;
}

std::strong_ordering compare(const UOp& a, const UOp& b) {
  if (a == b) return std::strong_ordering::equal;
  if (auto c = a.op() <=> b.op(); c != 0) return c;
  if (auto c = a.arg() <=> b.arg(); c != 0) return c;
  if (auto c = a.dtype() <=> b.dtype(); c != 0) return c;
  return content_key(a) <=> content_key(b);
}

}  // namespace tinygrad
