#include "tensor/cell.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_set>

namespace tinygrad::detail {

namespace {

struct Shard {
  std::mutex mutex;
  std::unordered_set<TensorCell*> cells;
};

constexpr size_t shard_count = 64;

/// Never destroyed: tensors may be global.
std::array<Shard, shard_count>& shards() {
  static auto* all = new std::array<Shard, shard_count>;
  return *all;
}

Shard& shard_of(const TensorCell& cell) { return shards()[cell.number % shard_count]; }

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

TensorCell::TensorCell(UOp node) : number(next_number()), node_(std::move(node)) {}

TensorCell::~TensorCell() {
  Shard& shard = shard_of(*this);
  const std::lock_guard lock(shard.mutex);
  shard.cells.erase(this);
}

UOp TensorCell::node() const {
  const std::lock_guard lock(mutex_);
  return node_;
}

// Replaced values die outside the lock: a gradient may own cells, a node a whole graph.

void TensorCell::set_node(UOp node) {
  const std::lock_guard lock(mutex_);
  std::swap(node_, node);
}

bool TensorCell::exchange(const UOp& expected, UOp replacement) {
  const std::lock_guard lock(mutex_);
  if (!(node_ == expected)) return false;
  std::swap(node_, replacement);
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

CellPtr make_cell(UOp node) {
  CellPtr cell = std::make_shared<TensorCell>(std::move(node));
  Shard& shard = shard_of(*cell);  // only now: others take a share of what is in the registry
  const std::lock_guard lock(shard.mutex);
  shard.cells.insert(cell.get());
  return cell;
}

std::vector<CellPtr> live_cells() {
  std::vector<CellPtr> out;
  for (Shard& shard : shards()) {
    const std::lock_guard lock(shard.mutex);
    for (TensorCell* cell : shard.cells)
      if (CellPtr alive = cell->weak_from_this().lock()) out.push_back(std::move(alive));
  }
  std::sort(out.begin(), out.end(), [](const CellPtr& a, const CellPtr& b) { return a->number < b->number; });
  return out;
}

}  // namespace tinygrad::detail
