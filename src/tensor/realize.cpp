#include "tensor/realize.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <tinygrad/errors.h>

#include "base/interrupt.h"
#include "base/options.h"
#include "device/device.h"
#include "engine/host_memory.h"
#include "engine/run.h"
#include "schedule/schedule.h"
#include "shape/device.h"
#include "tensor/handle.h"
#include "tensor/history.h"
#include "tensor/memory.h"
#include "tensor/observer.h"
#include "tensor/placeholder.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::tensor {

using detail::CellPtr;
using detail::live_cells;

namespace {

/// Held while it is found out what a realize computes, and while tensors learn what it has computed. Never while anything is compiled or
/// runs.
class StatesLock {
 public:
  StatesLock() : lock_(mutex(), std::try_to_lock) {
    if (lock_.owns_lock()) return;
    const auto start = std::chrono::steady_clock::now();
    lock_.lock();
    note_wait_for_states(std::chrono::steady_clock::now() - start);
  }

 private:
  static std::mutex& mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
  }

  std::unique_lock<std::mutex> lock_;
};

/// The value under views that have each of its elements once: what is put into memory for all of them.
UOp stored_value(const UOp& node) {
  const UOp* u = &node;
  while (u->is(Op::RESHAPE) || u->is(Op::PERMUTE) || u->is(Op::FLIP) || u->is(Op::DETACH) || u->is(Op::BITCAST) || u->is(Op::UNSHARD) ||
         (u->is(Op::TENSOR) && u->arg_as<TensorArg>().is_view))
    u = &u->src(0);
  return *u;
}

/// Live cells that are more than a view of memory.
std::vector<CellPtr> unfinished_cells() {
  std::vector<CellPtr> cells = detail::unfinished_cells();
  std::erase_if(cells, [](const CellPtr& c) { return is_plain_memory(state_of_view(c->node())); });
  return cells;
}

/// How many live tensors show each computed value: itself, or elements of it.
class Holders {
 public:
  int count(const UOp& base) {
    if (!known_) {
      for (const CellPtr& c : unfinished_cells()) {
        nodes_.push_back(c->node());
        ++counts_[base_of_view(nodes_.back())];
      }
      known_ = true;
    }
    const int* n = counts_.find(base);
    return n ? *n : 0;
  }

 private:
  bool known_ = false;
  std::deque<UOp> nodes_;  // keep the keys
  NodeMap<int> counts_;
};

/// The memory of a state.
template <class F>
void each_buffer(const UOp& state, F&& f) {
  for (Buffer* b : buffers_of(buffer_of_state(state))) f(*b);
}

/// Tensors whose memory may have a history, each once. Under the lock of the states.
std::deque<std::weak_ptr<detail::TensorCell>>& historic_cells() {
  static auto* cells = new std::deque<std::weak_ptr<detail::TensorCell>>;
  return *cells;
}

void add_historic(const CellPtr& cell) {
  if (const UOp history = history_of_view(cell->node())) each_buffer(history, [](Buffer& b) { b.note_history(); });
  if (!std::exchange(cell->is_among_historic, true)) historic_cells().push_back(cell);
}

/// Looks at the first `count` of them, and lets go of the histories for which `is_over` holds.
void drop_histories(size_t count, FunctionRef<bool(const UOp&)> is_over) {
  auto& cells = historic_cells();
  for (size_t n = std::min(cells.size(), count); n > 0; --n) {
    const CellPtr cell = cells.front().lock();
    cells.pop_front();
    if (!cell) continue;
    const UOp node = cell->node(), history = history_of_view(node);
    cell->is_among_historic = false;
    if (!history) continue;
    if (is_over(history))
      cell->exchange(node, view_of(node, base_of_view(node)));
    else
      add_historic(cell);
  }
}

/// Histories that lead to no live tensor any more go, with the memory that they hold: some each time, in turn.
void drop_dead_histories() {
  drop_histories(64, [](const UOp& history) { return !has_history(history); });
}

/// Lets these live tensors read what stands for the nodes from now on. True if some did not yet.
bool replace_in(std::vector<CellPtr> cells, const NodeMap<UOp>& known) {
  bool any = false;
  while (!cells.empty()) {
    std::vector<UOp> nodes;
    for (const CellPtr& c : cells) nodes.push_back(c->node());
    const std::vector<UOp> replaced = substitute(nodes, known);
    std::vector<CellPtr> again;
    for (size_t i = 0; i < cells.size(); ++i) {
      any = any || nodes[i] != replaced[i];
      if (!cells[i]->exchange(nodes[i], replaced[i]))
        again.push_back(cells[i]);
      else if (nodes[i] != replaced[i] && history_of_view(replaced[i]))
        add_historic(cells[i]);
    }
    cells = std::move(again);
  }
  return any;
}

bool replace_in_cells(const NodeMap<UOp>& known) { return replace_in(unfinished_cells(), known); }

/// What one realize computes and stores. Made under the lock of the states, which it does not need while it runs.
class Realization {
 public:
  explicit Realization(std::span<const UOp> nodes) {
    for (const UOp& n : nodes) add(n);
    add_readers();
  }
  ~Realization() {
    if (!is_running_) return;
    {
      const StatesLock lock;
      std::erase(running(), this);
    }
    claims_.release();
  }
  Realization(const Realization&) = delete;
  Realization& operator=(const Realization&) = delete;

  /// What stands for states in its graph whose stores have run since the graph was made: it cannot run as it is.
  const NodeMap<UOp>& outdated() const { return outdated_; }

  /// Begins to run, until it is destroyed. False where others that run compute a part of this, or use memory in another way: that has to be
  /// waited for, and then there is something else to do. Under the lock.
  bool try_begin() {
    if (std::ranges::any_of(running(), [this](const Realization* r) { return is_part_of(*r) || r->is_part_of(*this); })) return false;
    if (!claims_.try_acquire()) return false;
    running().push_back(this);
    return is_running_ = true;
  }

  /// Whether somebody runs something that has this value in it. Under the lock.
  static bool is_in_use(const UOp& value) {
    return std::ranges::any_of(running(), [&](const Realization* r) { return r->graph().contains(value); });
  }

  bool empty() const { return effects_.empty(); }
  /// The AFTERs that it leaves.
  const std::vector<UOp>& states() const { return stores_; }
  /// The live tensors that it computes only because a store replaces what they read.
  const std::vector<CellPtr>& readers() const { return readers_; }
  /// With the states that its stores leave: a value may turn out not to need one that it is written with, as `y[0:0].sum()` does not, and
  /// publish() takes all as run.
  UOp sink() const {
    std::vector<UOp> all = effects_;
    for (const UOp& a : stores_)
      if (!replaced_.contains(a) && !added_.contains(a)) all.push_back(a);
    return tinygrad::sink(all);
  }

  /// Memory that was lost and has been written as a whole can be read again.
  void restore_written() const {
    for (const UOp& a : stores_) {
      each_buffer(a, [&](Buffer& buffer) {
        if (!buffer.poisoned()) return;
        for (const UOp& effect : a.src().subspan(1))
          if (effect.is(Op::STORE) && stored_value(effect.src(0)) == base_of_view(a.src(0))) buffer.written_whole();
      });
    }
  }

  /// Lets all live tensors read what is in memory now.
  void publish() {
    drop_dead_histories();
    const NodeMap<UOp> known = realized_nodes(memory_, stores_, effects_);
    for (const UOp& a : stores_) set_state_now(a, *known.find(a));
    std::vector<CellPtr> before = unfinished_cells();
    const auto late = std::ranges::partition_point(before, [&](const CellPtr& c) { return c->number < first_late_; });
    replace_in({before.begin(), late}, known);
    replace_in({late, before.end()}, without_replaced(known));
    // Meanwhile others may have made tensors of the nodes that these had just before, and of those tensors more. Who sees that a tensor has
    // another node since makes it anew (made_of() in tensor.cpp).
    if (detail::several_threads_made_cells())
      while (replace_in_cells(known)) {}
  }

 private:
  bool add(const UOp& node) {
    if (const UOp state = state_of_view(node)) return state.is(Op::AFTER) && add_effect(state, state);
    const UOp value = value_of(node);
    if (is_empty(shape_of(value)) || added_.contains(value)) return false;
    memory_.emplace_back(value, make_memory(shape_of(value), value.dtype(), placements_.of(value), value.is_weak()));
    return add_effect(value, store(memory_.back().second, value));
  }

  /// What gets memory for a view of a computed value: the elements that it shows, or all of the value where others show that too, since
  /// they share its memory.
  UOp value_of(const UOp& node) {
    const UOp value = stored_value(node);
    const UOp& base = base_of_view(value);
    return value != base && (overlaps_itself(value) || holders_.count(base) > 1) ? base : value;
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
      const std::vector<bool> reads = read_replaced(nodes);
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (!reads[i] || !add(nodes[i])) continue;
        readers_.push_back(cells[i]);
        more = true;
      }
    }
  }

  void find_stores() {
    stores_.clear();
    claims_.clear();
    outdated_ = NodeMap<UOp>();
    run_ = NodeSet();
    replaced_ = NodeSet();
    replaced_buffers_.clear();
    for (const UOp* node : borrowed_toposort(effects_)) {
      const UOp& u = *node;
      if (is_placeholder(u))
        throw ValueError(
            "realize: the arguments of a function() have no values while it is being built; read values of tensors outside of it");
      if (is_overwritten(u))
        throw ValueError(
            "realize: a tensor was made, by another thread, of values that were overwritten meanwhile; make it before, or after, what "
            "overwrites them");
      if (u.is(Op::BUFFER)) claims_.add(buffer_of(u), false);
      if (u.is(Op::AFTER)) {
        if (UOp now = state_now(u)) outdated_[u] = std::move(now);
        each_buffer(u, [&](Buffer& b) { claims_.add(b, true); });
        stores_.push_back(u);
        run_.insert(u);
        const UOp& before = u.src(0).is(Op::REALIZED) ? u.src(0).src(0) : u.src(0);
        replace(before);
        if (const Observer* r = Observer::current())  // an argument of a jitted function is known to others by another node
          if (const UOp original = r->original_of(before)) replace(original);
      }
    }
  }

  void replace(const UOp& state) {
    if (replaced_.insert(state) && is_plain_memory(state)) replaced_buffers_.push_back(state);
  }

  /// Which of the nodes read a state that is replaced.
  std::vector<bool> read_replaced(const std::vector<UOp>& nodes) const {
    const auto enter = [&](const UOp& u) { return !run_.contains(u) && !replaced_.contains(u); };
    NodeSet reading;
    for (const UOp& u : toposort_where(nodes, enter)) {
      bool reads = replaced_.contains(u);
      if (enter(u))
        for (const UOp& s : scope_sources(u)) reads = reads || reading.contains(s);
      if (reads) reading.insert(u);
    }
    std::vector<bool> out;
    for (const UOp& n : nodes) out.push_back(reading.contains(n));
    return out;
  }

  /// Those that run now. Under the lock.
  static std::vector<Realization*>& running() {
    static auto* all = new std::vector<Realization*>;
    return *all;
  }

  /// The same for tensors that other threads have made since this began. Parts of what reads the states that were replaced may be in them
  /// alone: what those states were is gone, and to compute such a tensor is an error.
  NodeMap<UOp> without_replaced(const NodeMap<UOp>& known) const {
    NodeMap<UOp> out = known;
    for (const UOp& b : replaced_buffers_) out[b] = overwritten_content(b);
    return out;
  }

  /// All nodes of it, which nobody may replace while it runs.
  const NodeSet& graph() const {
    if (!graph_) {
      graph_.emplace();
      for (const UOp& u : toposort(effects_)) graph_->insert(u);
    }
    return *graph_;
  }

  /// Whether something that this computes is in the graph of another one.
  bool is_part_of(const Realization& other) const {
    return std::ranges::any_of(memory_, [&](const auto& m) { return other.graph().contains(m.first); });
  }

  std::vector<UOp> effects_;
  NodeSet added_;
  Placements placements_;
  Holders holders_;
  std::vector<CellPtr> readers_;
  std::vector<std::pair<UOp, UOp>> memory_;  // values that get memory, and that memory
  std::vector<UOp> stores_;                  // AFTERs that this runs
  NodeSet run_, replaced_;                   // the same as a set; the states they replace
  std::vector<UOp> replaced_buffers_;        // those of them that are BUFFERs
  NodeMap<UOp> outdated_;
  Claims claims_;
  const uint64_t first_late_ = detail::next_cell_number();  // cells that are made later have larger numbers
  mutable std::optional<NodeSet> graph_;                    // once somebody has asked
  bool is_running_ = false;
};

}  // namespace

namespace {

void run(Realization& r) {
  const UOp sink = r.sink();
  Observer* recorder = Observer::current();
  if (recorder) recorder->check(sink);
  const Options& options = current_options();
  schedule::ScheduleOptions how = schedule::ScheduleOptions::from(options);
  how.open_numbers = !recorder;  // a replay does again what was recorded, with the same numbers
  schedule::Schedule schedule;
  try {
    schedule = schedule::make_schedule(sink, engine::target_of, how);
    engine::run_schedule(schedule, options);
  } catch (const Error&) {
    rethrow_explained(sink,
                      [&](const UOp& part) { engine::compile_schedule(schedule::make_schedule(part, engine::target_of, how), options); });
  }
  const Uninterruptible to_the_end;  // all must learn what ran
  if (recorder) recorder->ran(sink, schedule);
  const StatesLock lock;
  r.restore_written();
  r.publish();
}

/// What the nodes compute, as they are now: stores run once, also where a graph was made while another thread ran them.
void prepare(std::optional<Realization>& r, std::vector<UOp>& nodes) {
  for (r.emplace(nodes); r->outdated().size() > 0; r.emplace(nodes)) {
    const NodeMap<UOp> now = r->outdated();
    replace_in_cells(now);
    nodes = substitute(nodes, now);
  }
}

std::vector<UOp> nodes_of(std::span<const CellPtr> cells) {
  std::vector<UOp> nodes;
  for (const CellPtr& c : cells) nodes.push_back(c->node());
  return nodes;
}

/// What a recorded call would compute though it is no part of the call: stores that waited before, and live tensors that the call neither
/// made nor changed, and that its stores would make compute.
std::vector<UOp> outside_of(const Realization& r, const Observer& recorder) {
  std::vector<UOp> outside;
  for (const UOp& a : r.states())
    if (recorder.is_outside(a.arg_as<StoreArg>())) outside.push_back(a);
  for (const CellPtr& c : r.readers())
    if (recorder.is_outside(*c)) outside.push_back(c->node());
  return outside;
}

/// Computes the nodes that there are when it begins, but what is outside of a recorded call first, which is not recorded.
void realize_nodes(FunctionRef<std::vector<UOp>()> nodes_now) {
  std::optional<Realization> r;
  std::vector<UOp> outside;
  const Observer* recorder = Observer::current();
  const auto begins = [&] {
    const StatesLock lock;
    std::vector<UOp> nodes = nodes_now();
    prepare(r, nodes);
    if (recorder) outside = outside_of(*r, *recorder);
    return r->empty() || !outside.empty() || r->try_begin();
  };
  if (!begins()) wait_for_claims(begins);
  if (outside.empty()) {
    if (!r->empty()) run(*r);
    return;
  }
  r.reset();
  {
    const Observer::Pause pause;
    realize_nodes([&] { return outside; });
  }
  realize_nodes(nodes_now);
}

}  // namespace

void realize(std::span<const CellPtr> cells) {
  engine::with_host_memory([&] { realize_nodes([&] { return nodes_of(cells); }); });
}

namespace {

/// True if a graph reads memory that is written.
bool reads_written(const UOp& node, const Claims& used) {
  return std::ranges::any_of(toposort(node), [&](const UOp& u) { return u.is(Op::BUFFER) && used.writes(buffer_of(u)); });
}

/// Live tensors with a store that waits on memory that is used, and those that wait for something that reads what will be written.
std::vector<CellPtr> cells_before(const Claims& used) {
  std::vector<CellPtr> cells;
  for (CellPtr& c : unfinished_cells()) {
    const UOp node = c->node(), state = state_of_view(node);
    bool pending = false;
    if (state) each_buffer(state, [&](Buffer& b) { pending = pending || used.contains(b); });
    if (pending || (used.writes_any() && reads_written(node, used))) cells.push_back(std::move(c));
  }
  return cells;
}

/// What is in this memory was computed from something else than what is written there next.
void drop_histories_of_written(const Claims& used) {
  bool any = false;
  used.for_each_written([&](Buffer& memory) { any |= memory.take_history(); });
  if (!any) return;
  const StatesLock lock;
  drop_histories(historic_cells().size(), [&](const UOp& h) { return used.writes(*buffers_of(buffer_of_state(h))[0]); });
}

}  // namespace

Claims settle(Claims used) {
  if (used.writes_any()) used.acquire();
  if (!used.has_users()) {  // no graph has anything to do with it
    drop_histories_of_written(used);
    return used;
  }
  if (const std::vector<CellPtr> cells = cells_before(used); !cells.empty()) {
    used.release();
    realize(cells);
    if (used.writes_any()) used.acquire();
  }
  drop_histories_of_written(used);
  return used;
}

UOp effects_of(std::span<const CellPtr> cells) {
  const StatesLock lock;
  std::optional<Realization> r;
  std::vector<UOp> nodes = nodes_of(cells);
  prepare(r, nodes);
  return r->sink();
}

UOp effects_of(std::span<const Tensor> tensors) {
  std::vector<CellPtr> cells;
  for (const Tensor& t : tensors) cells.push_back(detail::cell_of(t).shared_from_this());
  return effects_of(cells);
}

namespace {

/// Memory for computed values, under the lock of the states; what stands for each from now on.
NodeMap<UOp> put_into_memory(std::span<const UOp> bases) {
  NodeSet wanted;
  for (const UOp& b : bases) wanted.insert(b);
  NodeMap<UOp> known;
  for (const UOp& u : toposort(bases))  // a value may be part of another one
    if (wanted.contains(u)) known[u] = base_in_memory(known.size() ? u.with_src(substitute(u.src(), known)) : u);
  for (const CellPtr& c : unfinished_cells())
    for (UOp node = c->node(); !c->exchange(node, substitute(node, known));) node = c->node();
  return known;
}

}  // namespace

void give_memory(std::span<const UOp> values) {
  const auto gives = [&] {
    const StatesLock lock;
    std::vector<UOp> bases;
    for (const UOp& v : values)
      if (const UOp& base = base_of_view(v); !state_of_view(base)) bases.push_back(base);
    if (std::ranges::any_of(bases, Realization::is_in_use)) return false;
    put_into_memory(bases);
    return true;
  };
  if (!gives()) wait_for_claims(gives);
}

namespace {

/// Stores that wait on one memory; more are run at once, so that a value that is updated and never read does not grow.
constexpr int most_pending = 32, most_differentiable = 1024;

int pending_stores(const UOp& state) {
  int n = 0;
  for (const UOp* u = &state; u->is(Op::AFTER) || u->is(Op::REALIZED); u = &u->src(0)) n += u->is(Op::AFTER);
  return n;
}

bool is_detached(const UOp& value) {
  const UOp* u = &value;
  while (u->is(Op::TENSOR)) u = &u->src(0);
  return u->is(Op::DETACH);
}

/// True for a tensor that is all of its base and that no other one shows elements of.
bool is_alone(const UOp& view) {
  const UOp* u = &view;
  while (u->is(Op::DETACH) || (u->is(Op::TENSOR) && u->arg_as<TensorArg>().is_view)) u = &u->src(0);
  return *u == base_of_view(view) && Holders().count(*u) == 1;
}

/// Whether so many stores wait on the state that they should run. Where a gradient may be asked for, it needs what each of them replaces.
bool is_due(const UOp& state) {
  const int pending = pending_stores(state);
  return pending % most_pending == 0 && (pending >= most_differentiable || !has_history(state));
}

/// A view that was made while another thread ran what it shows is one of what stands for that since.
void forget_outdated(const detail::TensorCell& cell) {
  for (UOp state = state_of_view(cell.node()), now; state && (now = state_now(state)); state = state_of_view(cell.node())) {
    NodeMap<UOp> known;
    known[state] = now;
    replace_in_cells(known);
  }
}

/// Adds the store; true if it should run now, null where nothing was done because somebody else computes what is to be written to. A value
/// that nobody else shares is replaced. What changes is another variable than before, unless what it gets has no gradient: so an
/// optimizer's parameters stay what they are to graphs built earlier.
std::optional<bool> add_store(detail::TensorCell& cell, FunctionRef<UOp()> value_now) {
  const StatesLock lock;
  forget_outdated(cell);
  UOp value = value_now();
  if (overlaps_itself(cell.node()))
    throw ValueError("assign: the tensor is an expanded view, elements of which share memory; assign to contiguous()");
  if (is_empty(shape_of(value))) return false;
  const bool same_variables = is_detached(value);
  if (!state_of_view(cell.node())) {
    const UOp before = cell.node();
    if (is_alone(before)) {
      if (devices_of(before).are_several()) value = placed_as_memory(before, value);
      TensorArg same = before.arg_as<TensorArg>();
      same.is_view = false;
      cell.set_node(same_variables ? UOp(Op::TENSOR, value.dtype(), {value}, same)
                                   : tensor_node(value, detail::next_cell_number(), false, ValueOrigin::of("assign")));
      return false;
    }
    const UOp base = base_of_view(before);
    if (Realization::is_in_use(base)) return std::nullopt;
    value = substitute(value, put_into_memory(std::span(&base, 1)));
  }
  const UOp view = cell.node(), state = state_of_view(view), history = history_of_view(view);
  const UOp stored = state_after(history ? history : state, store_through(view, value));
  std::unordered_map<uint64_t, TensorArg> tensors;
  const auto renamed = [&](const TensorArg& before) {
    if (same_variables) return before;
    const auto [it, is_new] = tensors.try_emplace(before.id);
    if (is_new) it->second = next_value_of(before);
    TensorArg now = it->second;
    now.is_view = before.is_view;
    return now;
  };
  for (const CellPtr& c : live_cells())
    if (const UOp node = c->node(); state_of_view(node) == state) c->set_node(view_of(node, stored, renamed));
  return is_due(stored);
}

}  // namespace

void assign(detail::TensorCell& cell, FunctionRef<UOp()> value) {
  std::optional<bool> due;
  const auto stores = [&] {
    due = add_store(cell, value);
    return due.has_value();
  };
  if (!stores()) wait_for_claims(stores);
  if (!*due) return;
  const CellPtr self = cell.shared_from_this();
  realize(std::span(&self, 1));
}

}  // namespace tinygrad::tensor
