#include "tensor/cell.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <thread>
#include <unordered_set>

#include "tensor/history.h"
#include "tensor/memory.h"
#include "tensor/observer.h"
#include "tensor/undo.h"

namespace tinygrad::detail {

namespace {

struct Shard {
  std::mutex mutex;
  std::unordered_set<TensorCell*> finished, unfinished;
};

constexpr size_t shard_count = 64;

/// Never destroyed: tensors may be global.
std::array<Shard, shard_count>& shards() {
  static auto* all = new std::array<Shard, shard_count>;
  return *all;
}

Shard& shard_of(const TensorCell& cell) { return shards()[cell.number % shard_count]; }

/// A bit for each shard that has had unfinished cells since it was last found without. Changed under the lock of the shard.
std::atomic<uint64_t>& shards_with_unfinished() {
  static_assert(shard_count == 64);
  constinit static std::atomic<uint64_t> bits{0};
  return bits;
}

/// Puts a cell into its list. Under the lock of the shard.
void file(Shard& shard, TensorCell& cell, bool finished) {
  (finished ? shard.finished : shard.unfinished).insert(&cell);
  if (!finished) shards_with_unfinished().fetch_or(uint64_t{1} << cell.number % shard_count);
}

/// True only for a view of a BUFFER. Looks through some movement ops only, so that a long chain of them is not walked for each of its
/// links.
bool is_finished(const UOp& node) {
  const UOp* u = &node;
  for (int i = 0; i < 16 && (u->in(Group::movement) || u->is(Op::DETACH) || u->is(Op::TENSOR) || u->is(Op::REALIZED)); ++i) u = &u->src(0);
  return tensor::is_plain_memory(*u) && (u == &node || tensor::state_of_view(node));
}

const tensor::TensorValue& value_of(const UOp& tensor) {
  return static_cast<const tensor::TensorValue&>(*tensor.arg_as<TensorArg>().variable);
}

std::vector<CellPtr> sorted_cells(bool with_finished) {
  std::vector<CellPtr> out;
  const auto add = [&](const std::unordered_set<TensorCell*>& cells) {
    out.reserve(out.size() + cells.size());  // a share that could not be kept would be given up under the lock, which the last one takes
    for (TensorCell* cell : cells)
      if (CellPtr alive = cell->weak_from_this().lock()) out.push_back(std::move(alive));
  };
  std::atomic<uint64_t>& with_unfinished = shards_with_unfinished();
  for (uint64_t left = with_finished ? ~uint64_t{0} : with_unfinished.load(); left; left &= left - 1) {
    const int i = std::countr_zero(left);
    Shard& shard = shards()[static_cast<size_t>(i)];
    const std::lock_guard lock(shard.mutex);
    add(shard.unfinished);
    if (with_finished) add(shard.finished);
    if (shard.unfinished.empty()) with_unfinished.fetch_and(~(uint64_t{1} << i));
  }
  std::sort(out.begin(), out.end(), [](const CellPtr& a, const CellPtr& b) { return a->number < b->number; });
  return out;
}

constinit std::atomic<bool> several_threads{false};

void note_thread() {
  static const std::thread::id first = std::this_thread::get_id();
  if (std::this_thread::get_id() != first) several_threads.store(true);
}

}  // namespace

bool several_threads_made_cells() { return several_threads.load(); }

uint64_t next_cell_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

TensorCell::TensorCell(const UOp& node, bool is_view, const char* operation)
    : number(next_cell_number()), node_(tensor::tensor_node(node, number, is_view, tensor::ValueOrigin::of(operation))) {}

CellHandle::CellHandle(std::shared_ptr<TensorCell> cell) noexcept : cell_(std::move(cell)) {
  if (cell_) cell_->handles_.fetch_add(1, std::memory_order_relaxed);
}
void CellHandle::release() noexcept { cell_->handles_.fetch_sub(1, std::memory_order_release); }

TensorCell::~TensorCell() {
  value_of(node_).end();
  Shard& shard = shard_of(*this);
  const std::lock_guard lock(shard.mutex);
  (filed_finished_ ? shard.finished : shard.unfinished).erase(this);
}

/// Swaps the node with another one, and puts the cell into the list that it then belongs to. Under its lock, so that it is right for the
/// last change; if it throws, nothing has changed.
void TensorCell::swap_node(UOp& node) {
  const bool finished = is_finished(node);
  if (finished != filed_finished_) {
    Shard& shard = shard_of(*this);
    const std::lock_guard lock(shard.mutex);
    file(shard, *this, finished);
    (finished ? shard.unfinished : shard.finished).erase(this);
    filed_finished_ = finished;
  }
  std::swap(node_, node);
  if (node_.arg_as<TensorArg>().id != node.arg_as<TensorArg>().id) {
    value_of(node).end();
    value_of(node_).begin();
  }
  version_.fetch_add(1, std::memory_order_release);
}

UOp TensorCell::node() const {
  const std::lock_guard lock(mutex_);
  return node_;
}

// Replaced values die outside the lock: a gradient may own cells, a node a whole graph.

void TensorCell::set_node(UOp node) {
  if (tensor::Observer* r = tensor::Observer::current()) r->changed(*this);
  tensor::Undo::note(*this);
  const std::lock_guard lock(mutex_);
  swap_node(node);
}

bool TensorCell::exchange(const UOp& expected, UOp replacement) {
  const std::lock_guard lock(mutex_);
  if (!(node_ == expected)) return false;
  if (node_ == replacement) return true;
  swap_node(replacement);
  return true;
}

Tensor TensorCell::grad() const {
  const std::lock_guard lock(mutex_);
  return grad_;
}

void TensorCell::set_grad(Tensor grad) {
  const std::lock_guard lock(mutex_);
  std::swap(grad_, grad);
}

bool TensorCell::is_param() const {
  const std::lock_guard lock(mutex_);
  return is_param_;
}

void TensorCell::set_is_param(bool is_param) {
  const std::lock_guard lock(mutex_);
  is_param_ = is_param;
}

CellPtr make_cell(const UOp& node, bool is_view, const char* operation) {
  note_thread();
  CellPtr cell = std::make_shared<TensorCell>(node, is_view, operation);
  cell->filed_finished_ = is_finished(cell->node_);
  {
    Shard& shard = shard_of(*cell);  // only now: others take a share of what is in the registry
    const std::lock_guard lock(shard.mutex);
    file(shard, *cell, cell->filed_finished_);
  }
  if (tensor::Observer* r = tensor::Observer::current()) r->created(*cell);
  return cell;
}

std::vector<CellPtr> live_cells() { return sorted_cells(true); }
std::vector<CellPtr> unfinished_cells() { return sorted_cells(false); }

}  // namespace tinygrad::detail
