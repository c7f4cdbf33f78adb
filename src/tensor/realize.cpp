#include "tensor/realize.h"

#include <deque>
#include <mutex>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "engine/run.h"
#include "runtime/backends.h"
#include "schedule/schedule.h"
#include "shape/device.h"
#include "tensor/memory.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::tensor {

using detail::CellPtr;
using detail::live_cells;

namespace {

/// Held while states of memory change: a store runs once, whoever asks for it.
std::mutex& states_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

/// The value under views that have each of its elements once: what is put into memory for all of them.
UOp stored_value(const UOp& node) {
  const UOp* u = &node;
  while (u->is(Op::RESHAPE) || u->is(Op::PERMUTE) || u->is(Op::FLIP) || u->is(Op::DETACH)) u = &u->src(0);
  return *u;
}

bool is_empty(const UOp& node) {
  for (const SInt& s : shape_of(node))
    if (s == 0) return true;
  return false;
}

/// What one realize computes and stores.
class Realization {
 public:
  explicit Realization(std::span<const CellPtr> cells) {
    for (const CellPtr& c : cells) {
      const UOp& node = seen_.emplace_back(c->node());
      const auto [owner, is_new] = owners_.insert(node, c);
      if (is_new)
        add(node);
      else if (*owner != c && !state_of_view(node) && !is_empty(node))
        add_twin(c, node);
    }
    add_readers();
  }

  bool empty() const { return effects_.empty(); }
  UOp sink() const { return tinygrad::sink(effects_); }

  /// Lets all live tensors read what is in memory now. Of several with one value one gets its memory, the others have a copy, when they
  /// need it.
  void publish() {
    NodeMap<UOp> known(memory_.size() + stores_.size());
    for (const auto& [value, memory] : memory_) known[value] = memory;
    for (const UOp& a : stores_) known[a] = buffer_of_state(a);
    for (const Twin& t : twins_) t.cell->exchange(t.node, t.memory);
    std::vector<CellPtr> cells = unfinished_cells();
    while (!cells.empty()) {
      std::vector<UOp> nodes;
      for (const CellPtr& c : cells) nodes.push_back(seen_.emplace_back(c->node()));
      std::vector<UOp> replaced = substitute(nodes, known);
      std::vector<CellPtr> again;
      for (size_t i = 0; i < cells.size(); ++i) {
        const bool owns = *owners_.insert(nodes[i], cells[i]).first == cells[i];
        if (!owns && !state_of_view(nodes[i]) && state_of_view(replaced[i]))
          replaced[i] = UOp(Op::CONTIGUOUS, nodes[i].dtype(), {replaced[i]});
        if (!cells[i]->exchange(nodes[i], replaced[i])) again.push_back(cells[i]);
      }
      cells = std::move(again);
    }
  }

 private:
  /// Live cells that are more than a view of a BUFFER.
  static std::vector<CellPtr> unfinished_cells() {
    std::vector<CellPtr> cells = live_cells();
    std::erase_if(cells, [](const CellPtr& c) { return state_of_view(c->node()).is(Op::BUFFER); });
    return cells;
  }

  bool add(const UOp& node) {
    if (const UOp state = state_of_view(node)) return state.is(Op::AFTER) && add_effect(state, state);
    const UOp value = stored_value(node);
    if (is_empty(value) || added_.contains(value)) return false;
    memory_.emplace_back(value, memory_like(value));
    return add_effect(value, store(memory_.back().second, value));
  }

  /// A tensor with a value that another one, which is asked for too, has already.
  void add_twin(const CellPtr& cell, const UOp& node) {
    twins_.push_back({cell, node, memory_like(node)});
    effects_.push_back(store(twins_.back().memory, node));
  }

  static UOp memory_like(const UOp& value) {
    const Symbol device = device_of(value);
    return make_memory(shape_of(value), value.dtype(), device.empty() ? runtime::default_device_name() : device);
  }

  bool add_effect(const UOp& key, const UOp& effect) {
    if (!added_.insert(key)) return false;
    effects_.push_back(effect);
    return true;
  }

  /// Stores that this realize runs replace states; tensors that read those are computed before.
  void add_readers() {
    for (bool more = true; more;) {
      more = false;
      find_stores();
      if (stores_.empty()) return;
      const std::vector<CellPtr> cells = unfinished_cells();
      std::vector<UOp> nodes;
      for (const CellPtr& c : cells) nodes.push_back(c->node());
      for (const UOp& reader : readers_of_replaced(nodes)) more = add(reader) || more;
    }
  }

  void find_stores() {
    stores_.clear();
    run_ = NodeSet();
    replaced_ = NodeSet();
    for (const UOp& u : toposort(effects_))
      if (u.is(Op::AFTER)) {
        stores_.push_back(u);
        run_.insert(u);
        replaced_.insert(u.src(0));
      }
  }

  std::vector<UOp> readers_of_replaced(const std::vector<UOp>& nodes) const {
    const auto enter = [&](const UOp& u) { return !run_.contains(u) && !replaced_.contains(u); };
    NodeSet reading;
    for (const UOp& u : toposort_where(nodes, enter)) {
      bool reads = replaced_.contains(u);
      if (enter(u))
        for (const UOp& s : scope_sources(u)) reads = reads || reading.contains(s);
      if (reads) reading.insert(u);
    }
    std::vector<UOp> out;
    for (const UOp& n : nodes)
      if (reading.contains(n)) out.push_back(n);
    return out;
  }

  struct Twin {
    CellPtr cell;
    UOp node, memory;
  };

  std::vector<UOp> effects_;
  NodeSet added_;
  std::deque<UOp> seen_;     // keeps the keys of owners_
  NodeMap<CellPtr> owners_;  // of each value that tensors have: the one that gets its memory
  std::vector<Twin> twins_;
  std::vector<std::pair<UOp, UOp>> memory_;  // values that get memory, and that memory
  std::vector<UOp> stores_;                  // AFTERs that this runs
  NodeSet run_, replaced_;                   // the same as a set; the states they replace
};

}  // namespace

void realize(std::span<const CellPtr> cells) {
  const std::lock_guard lock(states_mutex());
  Realization r(cells);
  if (r.empty()) return;
  const Options& options = current_options();
  const schedule::ScheduleOptions how{.cache = options.scache, .memory_plan = !options.no_memory_planner};
  engine::run_schedule(schedule::make_schedule(r.sink(), engine::target_of, how), options);
  r.publish();
}

UOp effects_of(std::span<const CellPtr> cells) {
  const std::lock_guard lock(states_mutex());
  return Realization(cells).sink();
}

namespace {

/// Stores that wait on one memory; more are run at once, so that a value that is updated and never read does not grow.
constexpr int most_pending = 32;

int pending_stores(const UOp& state) {
  int n = 0;
  for (const UOp* u = &state; u->is(Op::AFTER); u = &u->src(0)) ++n;
  return n;
}

/// The state that the cells' memory has now; null for a value without memory, which is replaced.
UOp add_store(detail::TensorCell& cell, const UOp& value) {
  const std::lock_guard lock(states_mutex());
  const UOp view = without_detach(cell.node());
  const UOp state = state_of_view(view);
  if (!state) {
    cell.set_node(value);
    return {};
  }
  if (overlaps_itself(view))
    throw ValueError("assign: the tensor is an expanded view, elements of which share memory; assign to contiguous()");
  const UOp stored = after(state, UOps{store(view, value)});
  NodeMap<UOp> next;
  next[state] = stored;
  for (const CellPtr& c : live_cells())
    if (const UOp node = c->node(); state_of_view(node) == state) c->set_node(substitute(node, next));
  return stored;
}

}  // namespace

void assign(detail::TensorCell& cell, const UOp& value) {
  const UOp state = add_store(cell, value);
  if (!state || pending_stores(state) < most_pending) return;
  const CellPtr self = cell.shared_from_this();
  realize(std::span(&self, 1));
}

}  // namespace tinygrad::tensor
