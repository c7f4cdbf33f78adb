#include "tensor/history.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "ops/gradient.h"
#include "shape/shape.h"
#include "tensor/cell.h"
#include "tensor/memory.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::tensor {

namespace {

bool is_alive(const IntrusivePtr<Resource>& variable) { return variable && static_cast<const TensorValue&>(*variable).is_alive(); }

/// What is known of the history of one realized value, and of what it was made from. Under the lock of the states.
class History final : public Resource {
 public:
  using Ptr = IntrusivePtr<History>;

  std::vector<IntrusivePtr<Resource>> variables;  ///< that it was computed from since the histories before it
  std::vector<Ptr> before;
  size_t nodes = 0, own_nodes = 0;  ///< with those before it, and without; what several lead to may be counted several times
  int64_t bytes = 0, own_bytes = 0;
  uint64_t seen_in = 0;  ///< the walk that has been here last

  bool is_too_long() const { return nodes > most_history_nodes || bytes > most_history_bytes; }
  void grow(size_t more_nodes, int64_t more_bytes) {
    nodes += more_nodes, own_nodes += more_nodes;
    bytes += more_bytes, own_bytes += more_bytes;
  }

  /// Whether it leads to a live tensor. One that it leads to is kept in mind, so that a long chain of histories is walked when that dies
  /// only; and what has died never lives again, so it is looked at once.
  bool is_alive() {
    if (tensor::is_alive(witness_)) return true;
    std::vector<History*> path{this};
    while (!path.empty()) {
      History& h = *path.back();
      if (h.find_witness()) {
        for (History* user : path) user->witness_ = h.witness_;
        return true;
      }
      if (h.before.empty()) {
        path.pop_back();
        if (!path.empty()) path.back()->before.pop_back();
      } else {
        path.push_back(h.before.back().get());
      }
    }
    return false;
  }

 private:
  bool find_witness() {
    if (tensor::is_alive(witness_)) return true;
    while (!variables.empty() && !tensor::is_alive(variables.back())) variables.pop_back();
    witness_ = variables.empty() ? IntrusivePtr<Resource>() : variables.back();
    return bool(witness_);
  }

  IntrusivePtr<Resource> witness_;
};

const HistoryArg& arg_of(const UOp& realized) { return realized.arg_as<HistoryArg>(); }
History* history_of(const UOp& realized) { return static_cast<History*>(arg_of(realized).history.get()); }

/// The content of memory at a time, told by how often it has been written to: REALIZED(memory; count).
bool is_content(const UOp& u) { return u.is(Op::REALIZED) && u.src_count() == 1 && !arg_of(u).history; }
bool is_dropped(const UOp& u) { return u.is(Op::REALIZED) && u.src_count() == 1 && arg_of(u).history; }
UOp content(const UOp& memory, uint64_t count) { return UOp(Op::REALIZED, memory.dtype(), {memory}, HistoryArg{count, {}}); }
/// All parts of memory are written together.
uint64_t writes_to(const UOp& memory) { return buffers_of(memory)[0]->writes(); }
UOp content_now(const UOp& buffer) { return content(buffer, writes_to(buffer)); }
constexpr uint64_t overwritten = std::numeric_limits<uint64_t>::max();

UOp realized(const UOp& memory, const UOp& x, const History::Ptr& history) {
  return UOp(Op::REALIZED, memory.dtype(), {memory, x}, HistoryArg{detail::next_cell_number(), history});
}

bool is_live_variable(const UOp& u) { return u.is(Op::TENSOR) && is_float(u.dtype()) && is_alive(u.arg_as<TensorArg>().variable); }
bool has_live_history(const UOp& u) { return arg_of(u).history && history_of(u)->is_alive(); }

/// Makes the histories of what one realize has computed, sources before their users.
class Historian {
 public:
  Historian(const std::vector<std::pair<UOp, UOp>>& values, const std::vector<UOp>& stores, std::span<const UOp> effects)
      : order_(borrowed_toposort(effects)), place_of_(order_.size()), places_(order_.size()), known_(values.size() + stores.size()) {
    for (size_t i = 0; i < order_.size(); ++i) place_of_.insert(*order_[i], uint32_t(i));
    for (const auto& [value, memory] : values) place(value).memory = &memory;
    for (const UOp& s : stores) {
      place(s).is_store = true;
      place(s.src(0).is(Op::REALIZED) ? s.src(0).src(0) : s.src(0)).is_replaced = true;
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      places_[i].leads = leads(*order_[i]);
      if (places_[i].is_known()) add(*order_[i], places_[i]);
    }
  }

  NodeMap<UOp>& known() { return known_; }

 private:
  /// What is known of one node of the graph.
  struct Place {
    const UOp* memory = nullptr;  ///< of a value that was computed into it
    bool is_store = false, is_replaced = false;
    bool leads = false;    ///< a gradient through it gets to a live tensor
    uint64_t seen_in = 0;  ///< the walk that has been here last
    UOp live;              ///< what a value is now, if it has a history
    History::Ptr history;

    bool is_known() const { return memory || is_store; }
  };

  Place& place(const UOp& u) { return places_[index(u)]; }
  uint32_t index(const UOp& u) const { return *place_of_.find(u); }

  static uint64_t next_walk() {
    static uint64_t last = 0;  // under the lock of the states
    return ++last;
  }

  bool leads(const UOp& u) {
    if (u.is(Op::REALIZED)) return has_live_history(u);
    return is_live_variable(u) || (!ops::stops_gradient(u) && any_source_leads(u));
  }
  bool any_source_leads(const UOp& u) {
    return std::ranges::any_of(scope_sources(u), [&](const UOp& s) { return place(s).leads; });
  }

  void add(const UOp& u, Place& p) {
    const UOp &value = u.is(Op::TENSOR) ? u.src(0) : u, buffer = buffer_under(u, p);
    UOp live = buffer;
    if (const History::Ptr history = find(value); history && all_known(shape_of(value))) {
      const UOp x = was(u, value, history);
      for (const Buffer* part : buffers_of(buffer)) history->grow(0, static_cast<int64_t>(part->nbytes()));
      const bool is_as_memory = buffer.is(Op::MSTACK) || shape_of(value) == shape_of(buffer);
      live = realized(buffer, is_as_memory ? x : reshape(x, shape_of(buffer)), history);
      p.live = live;
      p.history = history;
      p.leads = true;
      made_.push_back(history);
    }
    known_[u] = seen(u, p, live);
  }

  static UOp buffer_under(const UOp& u, const Place& p) { return p.memory ? state_of_view(*p.memory) : buffer_of_state(u); }

  /// What a known value is to those who have its memory under `base`.
  static UOp seen(const UOp& u, const Place& p, const UOp& base) {
    if (!p.memory) return base;
    const UOp view = view_of(*p.memory, base);
    return u.is(Op::TENSOR) ? tensor_view(u, view) : view;
  }

  /// Null for what has no gradient that anybody could ask for.
  History::Ptr find(const UOp& value) {
    if (!is_float(value.dtype()) || !place(value).leads) return {};
    History::Ptr found(new History);
    const uint64_t walk = next_walk();
    const auto add_before = [&](History* h) {
      if (!h->is_alive() || std::exchange(h->seen_in, walk) == walk) return;
      found->before.emplace_back(h);
      found->nodes += h->nodes;
      found->bytes += h->bytes;
    };
    SmallVector<const UOp*, 32> left{&value};
    for (walked_ = 0; !left.empty(); ++walked_) {
      const UOp& u = *left.back();
      left.pop_back();
      const History::Ptr& history = place(u).history;
      if (u.is(Op::REALIZED) || (history && u != value)) {
        add_before(history ? history.get() : history_of(u));
        continue;
      }
      if (is_live_variable(u)) found->variables.push_back(u.arg_as<TensorArg>().variable);
      if (ops::stops_gradient(u)) continue;
      for (const UOp& s : scope_sources(u))
        if (place(s).leads && std::exchange(place(s).seen_in, walk) != walk) left.push_back(&s);
    }
    return found->variables.empty() && found->before.empty() ? History::Ptr() : found;
  }

  /// The value of a known node as it was computed, of memory as it is now.
  UOp was(const UOp& u, const UOp& value, const History::Ptr& history) {
    if (history->is_too_long()) count_once(*history);
    const bool too_long = history->is_too_long();
    std::vector<UOp> shorter;
    if (too_long) cut(*history);
    std::vector<UOp>& pasts = too_long ? shorter : pasts_;
    pasts.resize(order_.size());
    const std::span<const UOp> roots = value == u ? value.src() : std::span(&value, 1);
    const size_t added = add_pasts(roots, pasts, too_long ? history.get() : nullptr);
    history->grow(std::max(walked_, added + 1), 0);
    return value == u ? with_pasts(value, pasts) : pasts[index(value)];
  }

  /// What the nodes under the roots were, as far as it is not known yet; how many those are, with the memory of what was realized before.
  size_t add_pasts(std::span<const UOp> roots, std::vector<UOp>& pasts, History* too_long) {
    const uint64_t walk = next_walk();
    std::vector<uint32_t> needed;
    const auto need = [&](std::span<const UOp> nodes) {
      for (const UOp& u : nodes)
        if (const uint32_t* i = place_of_.find(u); i && !pasts[*i] && std::exchange(places_[*i].seen_in, walk) != walk)
          needed.push_back(*i);
    };
    need(roots);
    size_t memories = 0;
    size_t next = 0;
    while (next < needed.size()) {  // it grows
      const uint32_t i = needed[next++];
      const UOp& u = *order_[i];
      if (u.is(Op::REALIZED))
        ++memories;
      else if (!places_[i].is_known())
        need(scope_sources(u));
    }
    std::ranges::sort(needed);
    for (const uint32_t i : needed) pasts[i] = past(*order_[i], places_[i], pasts, too_long);
    return needed.size() + memories;
  }

  UOp past(const UOp& u, const Place& p, const std::vector<UOp>& pasts, History* too_long) {
    if (is_plain_memory(u)) return content_of(u, p);
    if (p.is_known()) {
      const UOp now = content_of(buffer_under(u, p), p);
      return seen(u, p, p.live ? p.live.with_src(UOps{now, p.live.src(1)}) : now);
    }
    if (!u.is(Op::REALIZED)) return with_pasts(u, pasts);
    return is_content(u) ? u : realized_before(u, too_long);
  }

  UOp with_pasts(const UOp& u, const std::vector<UOp>& pasts) const {
    UOps sources;
    for (const UOp& s : u.src()) {
      const uint32_t* i = place_of_.find(s);
      sources.push_back(i ? pasts[*i] : s);
    }
    return u.is(Op::AFTER) ? UOp(Op::AFTER, u.dtype(), sources) : u.with_src(sources);  // what is known of its run leads back here
  }

  /// What is in memory after the realize, as seen by who read it where the place is.
  static UOp content_of(const UOp& buffer, const Place& p) { return p.is_replaced ? content(buffer, overwritten) : content_now(buffer); }

  /// Counts each history before it once.
  static void count_once(History& h) {
    const uint64_t walk = next_walk();
    h.nodes = h.own_nodes;
    h.bytes = h.own_bytes;
    std::vector<const History*> left{&h};
    while (!left.empty()) {
      const History& user = *left.back();
      left.pop_back();
      for (const History::Ptr& b : user.before) {
        if (std::exchange(b->seen_in, walk) == walk) continue;
        h.nodes += b->own_nodes;
        h.bytes += b->own_bytes;
        left.push_back(b.get());
      }
    }
  }

  /// Leaves what was made by this realize.
  void cut(History& long_one) const {
    std::erase_if(long_one.before, [&](const History::Ptr& h) { return std::ranges::find(made_, h) == made_.end(); });
    long_one.nodes = 0;
    long_one.bytes = 0;
    for (const History::Ptr& h : long_one.before) {
      long_one.nodes += h->nodes;
      long_one.bytes += h->bytes;
    }
  }

  /// What was realized earlier, with its history unless that is dropped for one that is too long.
  UOp realized_before(const UOp& u, History* too_long) {
    const UOp& memory = u.src(0);
    UOp then = is_plain_memory(memory) ? content_of(memory, place(memory)) : memory;
    History* h = history_of(u);
    if (h && !h->is_alive()) return then;
    if (too_long) too_long->before.push_back(is_dropped(u) ? History::Ptr(h) : dropped(*h));
    if (!too_long || is_dropped(u)) return u.with_src(u.src_count() == 2 ? UOps{then, u.src(1)} : UOps{then});
    return UOp(Op::REALIZED, u.dtype(), {then}, HistoryArg{detail::next_cell_number(), too_long->before.back()});
  }

  /// What is left of a history that was too long: which live tensors it led to.
  static History::Ptr dropped(const History& long_one) {
    const History::Ptr out(new History);
    const uint64_t walk = next_walk();
    std::map<const Resource*, bool> seen;
    std::vector<const History*> all{&long_one};
    while (!all.empty()) {
      const History* h = all.back();
      all.pop_back();
      for (const auto& v : h->variables)
        if (is_alive(v) && seen.emplace(v.get(), true).second) out->variables.push_back(v);
      for (const auto& b : h->before)
        if (std::exchange(b->seen_in, walk) != walk) all.push_back(b.get());
    }
    return out;
  }

  std::vector<const UOp*> order_;
  NodeMap<uint32_t> place_of_;  // in the order
  std::vector<Place> places_;   // in the same
  std::vector<UOp> pasts_;      // the same; empty where nobody asked yet
  NodeMap<UOp> known_;
  std::vector<History::Ptr> made_;
  size_t walked_ = 0;  // nodes by the last find()
};

}  // namespace

NodeMap<UOp> realized_nodes(const std::vector<std::pair<UOp, UOp>>& values, const std::vector<UOp>& stores, std::span<const UOp> effects) {
  return std::move(Historian(values, stores, effects).known());
}

UOp history_of_view(const UOp& view) {
  const UOp* u = &view;
  while (u->in(Group::movement) || u->is(Op::DETACH) || u->is(Op::BITCAST) || (u->is(Op::TENSOR) && u->arg_as<TensorArg>().is_view))
    u = &u->src(0);
  return u->is(Op::REALIZED) && arg_of(*u).history ? *u : UOp();
}

UOp overwritten_content(const UOp& memory) { return content(memory, overwritten); }
bool is_overwritten(const UOp& node) { return is_content(node) && arg_of(node).id == overwritten; }

TensorArg next_value_of(const TensorArg& before) {
  const IntrusivePtr<Resource> variable(new TensorValue(static_cast<const TensorValue&>(*before.variable).origin));
  if (!is_alive(before.variable)) static_cast<const TensorValue&>(*variable).end();
  return {detail::next_cell_number(), before.is_view, variable};
}

bool has_history(const UOp& value) {
  if (value.is(Op::REALIZED)) return has_live_history(value);
  const auto enter = [](const UOp& u) { return !ops::stops_gradient(u) && !u.is(Op::REALIZED); };
  return std::ranges::any_of(toposort_where(std::span(&value, 1), enter),
                             [](const UOp& u) { return u.is(Op::REALIZED) ? has_live_history(u) : is_live_variable(u); });
}

void check_history(const UOp& root, uint64_t oldest_target) {
  for (const UOp& u : ops::gradient_nodes(root))
    if (is_dropped(u) && oldest_target < arg_of(u).id)
      throw ValueError(fmt::format(
          "gradient: the way to what it is asked for may lead through values whose history is gone, since more than {} nodes, or "
          "{} MiB of realized values, would have been kept; use detach() where gradients shall end, or realize less often",
          most_history_nodes, most_history_bytes >> 20));
}

void check_unchanged(std::span<const UOp> gradients) {
  std::vector<UOp> given;
  for (const UOp& g : gradients)
    if (g) given.push_back(g);
  for (const UOp& u : toposort(given))
    if (is_content(u) && arg_of(u).id != writes_to(buffer_of_state(u.src(0))))
      throw ValueError(
          "gradient: it needs the value of a tensor that was realized and has been written to since; use a clone() of it, or ask for the "
          "gradient before the write");
}

}  // namespace tinygrad::tensor
