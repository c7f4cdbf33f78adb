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

/// What is known of the history of one realized value, and of what it was made from.
class History final : public Resource {
 public:
  using Ptr = IntrusivePtr<History>;

  std::vector<IntrusivePtr<Resource>> variables;  ///< that it was computed from since the histories before it
  std::vector<Ptr> before;
  size_t nodes = 0;
  int64_t bytes = 0;

  /// Whether it leads to a live tensor. What has died never lives again, so it is looked at once. Under the lock of the states.
  bool is_alive() {
    while (!variables.empty() && !static_cast<const TensorValue&>(*variables.back()).is_alive()) variables.pop_back();
    if (!variables.empty()) return true;
    while (!before.empty() && !before.back()->is_alive()) before.pop_back();
    return !before.empty();
  }
};

const HistoryArg& arg_of(const UOp& realized) { return realized.arg_as<HistoryArg>(); }
History* history_of(const UOp& realized) { return static_cast<History*>(arg_of(realized).history.get()); }

/// The content of memory at a time, told by how often it has been written to: REALIZED(memory; count).
bool is_content(const UOp& u) { return u.is(Op::REALIZED) && u.src_count() == 1 && !arg_of(u).history; }
bool is_dropped(const UOp& u) { return u.is(Op::REALIZED) && u.src_count() == 1 && arg_of(u).history; }
UOp content(const UOp& memory, uint64_t count) { return UOp(Op::REALIZED, memory.dtype(), {memory}, HistoryArg{count, {}}); }
UOp content_now(const UOp& buffer) { return content(buffer, buffer_of(buffer).writes()); }
constexpr uint64_t overwritten = std::numeric_limits<uint64_t>::max();

UOp realized(const UOp& memory, const UOp& x, const History::Ptr& history) {
  return UOp(Op::REALIZED, memory.dtype(), {memory, x}, HistoryArg{detail::next_cell_number(), history});
}

bool is_alive(const IntrusivePtr<Resource>& variable) { return variable && static_cast<const TensorValue&>(*variable).is_alive(); }

/// Makes the histories of what one realize has computed, sources before their users.
class Historian {
 public:
  Historian(const std::vector<std::pair<UOp, UOp>>& values, const std::vector<UOp>& stores) : known_(values.size() + stores.size()) {
    for (const auto& [value, memory] : values) memories_[value] = memory;
    for (const UOp& s : stores) {
      replaced_.insert(state_without_history(s.src(0)));
      stores_.insert(s);
    }
  }

  void add(const UOp& u) {
    const UOp* memory = memories_.find(u);
    if (!memory && !stores_.contains(u)) return;
    const bool is_tensor = u.is(Op::TENSOR);
    const UOp value = is_tensor ? u.src(0) : u, buffer = memory ? state_of_view(*memory) : buffer_of_state(u);
    const UOp now = replaced_.contains(u) ? content(buffer, overwritten) : content_now(buffer);
    UOp live = buffer, past = now;
    if (const History::Ptr history = find(value); history && all_known(shape_of(value))) {
      const UOp x = was(value, history);
      history->bytes += static_cast<int64_t>(buffer_of(buffer).nbytes());
      const UOp flat = shape_of(x) == shape_of(buffer) ? x : reshape(x, shape_of(buffer));
      live = realized(buffer, flat, history);
      past = live.with_src(UOps{now, flat});
      histories_[u] = history;
      made_.push_back(history);
    }
    known_[u] = seen(u, memory, live);
    past_[u] = seen(u, memory, past);
  }

  NodeMap<UOp>& known() { return known_; }

 private:
  static UOp state_without_history(const UOp& state) { return state.is(Op::REALIZED) ? UOp(state.src(0)) : state; }

  static UOp seen(const UOp& u, const UOp* memory, const UOp& base) {
    if (!memory) return base;
    const UOp view = view_of(*memory, base);
    return u.is(Op::TENSOR) ? tensor_view(u, view) : view;
  }

  /// Null for what has no gradient that anybody could ask for.
  History::Ptr find(const UOp& value) {
    if (!is_float(value.dtype())) return {};
    const History::Ptr found(new History);
    bool alive = false;
    const auto add_before = [&](History* h) {
      if (!h->is_alive() || std::ranges::any_of(found->before, [&](const auto& b) { return b.get() == h; })) return;
      found->before.emplace_back(h);
      found->nodes += h->nodes;
      found->bytes += h->bytes;
      alive = true;
    };
    const auto enter = [&](const UOp& u) {
      return !ops::stops_gradient(u) && !u.is(Op::REALIZED) && (u == value || !histories_.contains(u));
    };
    for (const UOp& u : toposort_where(std::span(&value, 1), enter)) {
      if (const History::Ptr* h = histories_.find(u); h && u != value) add_before(h->get());
      if (u.is(Op::REALIZED) && arg_of(u).history) add_before(history_of(u));
      if (u.is(Op::TENSOR) && is_float(u.dtype()) && is_alive(u.arg_as<TensorArg>().variable)) {
        found->variables.push_back(u.arg_as<TensorArg>().variable);
        alive = true;
      }
    }
    return alive ? found : History::Ptr();
  }

  /// The value as it was computed, of memory as it is now.
  UOp was(const UOp& value, const History::Ptr& history) {
    const bool too_long = history->nodes > most_history_nodes || history->bytes > most_history_bytes;
    size_t count = 0;
    if (too_long) cut(*history);
    for (const UOp& u : toposort_where(std::span(&value, 1), [&](const UOp& n) { return n == value || !past_.contains(n); })) {
      ++count;
      if (past_.contains(u)) continue;
      if (u.is(Op::BUFFER)) past_[u] = replaced_.contains(u) ? content(u, overwritten) : content_now(u);
      if (u.is(Op::REALIZED) && !is_content(u)) past_[u] = realized_before(u, too_long ? history.get() : nullptr);
    }
    history->nodes += count;
    if (const UOp* past = past_.find(value)) return *past;
    return value.with_src(substitute(value.src(), past_));
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
    const UOp then = !memory.is(Op::BUFFER) ? memory : replaced_.contains(memory) ? content(memory, overwritten) : content_now(memory);
    History* h = history_of(u);
    if (h && !h->is_alive()) return then;
    if (too_long) too_long->before.push_back(is_dropped(u) ? History::Ptr(h) : dropped(*h));
    if (!too_long || is_dropped(u)) return u.with_src(u.src_count() == 2 ? UOps{then, u.src(1)} : UOps{then});
    return UOp(Op::REALIZED, u.dtype(), {then}, HistoryArg{detail::next_cell_number(), too_long->before.back()});
  }

  /// What is left of a history that was too long: which live tensors it led to.
  static History::Ptr dropped(const History& long_one) {
    const History::Ptr out(new History);
    std::map<const Resource*, bool> seen;
    std::vector<const History*> all{&long_one};
    std::map<const History*, bool> entered;
    while (!all.empty()) {
      const History* h = all.back();
      all.pop_back();
      if (!entered.emplace(h, true).second) continue;
      for (const auto& v : h->variables)
        if (is_alive(v) && seen.emplace(v.get(), true).second) out->variables.push_back(v);
      for (const auto& b : h->before) all.push_back(b.get());
    }
    return out;
  }

  NodeMap<UOp> memories_, known_, past_;
  NodeMap<History::Ptr> histories_;
  std::vector<History::Ptr> made_;  // the same
  NodeSet replaced_, stores_;
};

}  // namespace

NodeMap<UOp> realized_nodes(const std::vector<std::pair<UOp, UOp>>& values, const std::vector<UOp>& stores, std::span<const UOp> effects) {
  Historian historian(values, stores);
  for (const UOp& u : toposort(effects)) historian.add(u);
  return std::move(historian.known());
}

UOp history_of_view(const UOp& view) {
  const UOp* u = &view;
  while (u->in(Group::movement) || u->is(Op::DETACH) || u->is(Op::BITCAST) || (u->is(Op::TENSOR) && u->arg_as<TensorArg>().is_view))
    u = &u->src(0);
  return u->is(Op::REALIZED) && arg_of(*u).history ? *u : UOp();
}

TensorArg next_value_of(const TensorArg& before) {
  const IntrusivePtr<Resource> variable(new TensorValue(static_cast<const TensorValue&>(*before.variable).origin));
  if (!is_alive(before.variable)) static_cast<const TensorValue&>(*variable).end();
  return {detail::next_cell_number(), before.is_view, variable};
}

bool has_history(const UOp& value) {
  const auto enter = [](const UOp& u) { return !ops::stops_gradient(u) && !u.is(Op::REALIZED); };
  const std::vector<UOp> nodes = toposort_where(std::span(&value, 1), enter);
  return std::ranges::any_of(nodes, [](const UOp& u) {
    if (u.is(Op::REALIZED)) return arg_of(u).history && history_of(u)->is_alive();
    return u.is(Op::TENSOR) && is_float(u.dtype()) && is_alive(u.arg_as<TensorArg>().variable);
  });
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
    if (is_content(u) && arg_of(u).id != buffer_of(buffer_of_state(u.src(0))).writes())
      throw ValueError(
          "gradient: it needs the value of a tensor that was realized and has been written to since; use a clone() of it, or ask for the "
          "gradient before the write");
}

}  // namespace tinygrad::tensor
