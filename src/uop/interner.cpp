#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <vector>

#include <tinygrad/errors.h>

#include "base/spin_lock.h"
#include "uop/node_memory.h"
#include "uop/uop.h"

namespace tinygrad {

namespace {

/// A node that may not exist yet.
struct Candidate {
  Op op;
  DType dtype;
  std::span<const UOp> sources;
  const Arg& arg;
  uint64_t hash;
};

bool same(const Node* n, const Candidate& c) {
  return n->op == c.op && n->dtype == c.dtype && std::ranges::equal(n->sources(), c.sources) && n->arg == c.arg;
}

/// The nodes of one shard: open addressing with linear probing, the hashes beside the pointers so that a probe touches one line.
class NodeTable {
 public:
  struct Cell {
    uint64_t hash = 0;
    const Node* node = nullptr;
  };

  NodeTable() : cells_(16) {}
  size_t size() const { return size_; }

  /// Makes room for one more node, so that insert() cannot fail.
  void reserve_one() {
    if ((size_ + 1) * 3 <= cells_.size() * 2) return;
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (const Cell& c : old)
      if (c.node) *free_cell(c.hash) = c;
  }
  void insert(const Node* node) noexcept {
    *free_cell(node->hash) = {node->hash, node};
    ++size_;
  }
  Cell* find(const Candidate& c) {
    for (size_t i = c.hash & mask(); cells_[i].node; i = (i + 1) & mask())
      if (cells_[i].hash == c.hash && same(cells_[i].node, c)) return &cells_[i];
    return nullptr;
  }
  void erase(const Node* node) noexcept {
    size_t hole = node->hash & mask();
    while (cells_[hole].node != node) {
      if (!cells_[hole].node) return;
      hole = (hole + 1) & mask();
    }
    --size_;
    // Cells that probed past the hole move into it, so no tombstones are needed.
    for (size_t i = (hole + 1) & mask(); cells_[i].node; i = (i + 1) & mask())
      if (((i - cells_[i].hash) & mask()) >= ((i - hole) & mask())) {
        cells_[hole] = cells_[i];
        hole = i;
      }
    cells_[hole] = {};
  }

 private:
  size_t mask() const { return cells_.size() - 1; }
  Cell* free_cell(uint64_t hash) noexcept {
    size_t i = hash & mask();
    while (cells_[i].node) i = (i + 1) & mask();
    return &cells_[i];
  }

  std::vector<Cell> cells_;
  size_t size_ = 0;
};

int32_t index_width(const Arg& arg) {
  const auto* index = std::get_if<IndexArg>(&arg);
  return index ? index->width : 1;
}

bool evidently_scalar(const Candidate& c) {
  switch (c.op) {
    case Op::CONST:
    case Op::VAR:
    case Op::BIND:
    case Op::RANGE:
    case Op::SPECIAL: return true;
    case Op::INDEX: return c.sources.size() > 1 && c.sources[1]->scalar && index_width(c.arg) == 1;
    case Op::REDUCE: return std::holds_alternative<ReduceArg>(c.arg) && std::get<ReduceArg>(c.arg).axes.empty() && c.sources[0]->scalar;
    case Op::AFTER:
    case Op::LOAD: return !c.sources.empty() && c.sources[0]->scalar;
    default: break;
  }
  if (!in_group(c.op, Group::elementwise | Group::identity)) return false;
  return std::ranges::all_of(c.sources, [](const UOp& s) { return s->scalar; });
}

bool evidently_weak(const Candidate& c) {
  const auto all_weak = [](std::span<const UOp> values) { return std::ranges::all_of(values, [](const UOp& s) { return s->weak; }); };
  switch (c.op) {
    case Op::WEAK: return true;
    case Op::BUFFER: return std::get<BufferArg>(c.arg).weak;
    case Op::WHERE: return all_weak(c.sources.subspan(1));
    case Op::CAST:
    case Op::BITCAST: return false;
    case Op::CONTIGUOUS:
    case Op::CONTIGUOUS_BACKWARD:
    case Op::DETACH:
    case Op::COPY:
    case Op::SHARD:
    case Op::MSTACK:
    case Op::TENSOR:
    case Op::REALIZED:
    case Op::KNOWN:
    case Op::AFTER: return c.sources[0]->weak;
    default: break;
  }
  if (in_group(c.op, Group::movement)) return c.sources[0]->weak;
  return in_group(c.op, Group::elementwise) && !is_bool(c.dtype) && !c.sources.empty() && all_weak(c.sources);
}

const Resource* shown_memory(const Candidate& c) {
  switch (c.op) {
    case Op::BUFFER: {
      const auto* buffer = std::get_if<BufferArg>(&c.arg);
      return buffer && buffer->resource ? &buffer->resource->memory() : nullptr;
    }
    case Op::TENSOR: {
      const auto* tensor = std::get_if<TensorArg>(&c.arg);
      return tensor && tensor->is_view ? c.sources[0]->memory : nullptr;
    }
    case Op::PAD: return nullptr;
    case Op::BITCAST:
    case Op::DETACH:
    case Op::MSTACK:  // what counts for the first of its parts counts for all
    case Op::REALIZED: return c.sources[0]->memory;
    default: return in_group(c.op, Group::movement) ? c.sources[0]->memory : nullptr;
  }
}

uint64_t hash_candidate(Op op, DType dtype, std::span<const UOp> sources, const Arg& arg) {
  uint64_t h = hash_combine(uint64_t(op) << 8 | uint64_t(dtype), hash_arg(arg));
  for (const UOp& s : sources) h = hash_combine(h, s->hash);
  return h;
}

}  // namespace

/// The table of all live nodes, in shards that lock alone. Never destroyed: users have global tensors.
class Interner {
 public:
  static Interner& instance() {
    static Interner* interner = new Interner;
    return *interner;
  }

  const Node* find_or_make(Op op, DType dtype, std::span<const UOp> sources, Arg&& arg) {
    const Candidate c{op, dtype, sources, arg, hash_candidate(op, dtype, sources, arg)};
    Shard& shard = shard_of(c.hash);
    std::lock_guard guard(shard.lock);
    if (NodeTable::Cell* cell = shard.nodes.find(c)) {
      if (cell->node->retain_if_alive()) return cell->node;
      return cell->node = make(c, std::move(arg));  // its last owner is on the way to remove it, and will not find it
    }
    shard.nodes.reserve_one();
    const Node* node = make(c, std::move(arg));
    shard.nodes.insert(node);
    return node;
  }

  /// Removes a node without owners, then those of its sources that this leaves without owners: no recursion.
  void destroy(const Node* root) noexcept {
    using Work = SmallVector<const Node*, 32>;
    thread_local Work* pending = nullptr;
    if (pending) {  // released by a destructor below us on this thread
      pending->push_back(root);
      return;
    }
    Work work{root};
    pending = &work;
    while (!work.empty()) {
      const Node* node = work.back();
      work.pop_back();
      forget(node);
      unmake(node);
    }
    pending = nullptr;
  }

  size_t size() {
    size_t n = 0;
    for (Shard& s : shards_) {
      std::lock_guard guard(s.lock);
      n += s.nodes.size();
    }
    return n;
  }

 private:
  struct alignas(64) Shard {
    SpinLock lock;
    NodeTable nodes;
  };

  Shard& shard_of(uint64_t hash) { return shards_[hash >> 58]; }

  void forget(const Node* node) noexcept {
    Shard& shard = shard_of(node->hash);
    std::lock_guard guard(shard.lock);
    shard.nodes.erase(node);
  }

  static size_t bytes_of(size_t sources) { return sizeof(Node) + sources * sizeof(UOp); }

  static const Node* make(const Candidate& c, Arg&& arg) {
    void* memory = detail::allocate_node(bytes_of(c.sources.size()));
    const bool scalar = evidently_scalar(c), weak = evidently_weak(c);
    const Resource* shown = shown_memory(c);
    Node* node = new (memory) Node(c.op, c.dtype, c.hash, std::move(arg), uint32_t(c.sources.size()), scalar, weak, shown);
    auto* slots = reinterpret_cast<UOp*>(static_cast<std::byte*>(memory) + sizeof(Node));
    for (size_t i = 0; i < c.sources.size(); ++i) new (slots + i) UOp(c.sources[i]);
    if (!shown)
      for (const UOp& s : c.sources)
        if (s->memory) s->memory->add_user();
    return node;
  }

  static void unmake(const Node* node) noexcept {
    if (!node->memory)
      for (const UOp& s : node->sources())
        if (s->memory) s->memory->remove_user();
    for (const UOp& s : node->sources()) s.~UOp();
    const size_t bytes = bytes_of(node->source_count);
    node->~Node();
    detail::free_node(const_cast<Node*>(node), bytes);
  }

  std::array<Shard, 64> shards_;
};

static_assert(sizeof(UOp) == 8);
static_assert(sizeof(Node) % alignof(UOp) == 0 && alignof(Node) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

Node::Node(Op o, DType d, uint64_t h, Arg a, uint32_t n, bool s, bool w, const Resource* m)
    : op(o), dtype(d), scalar(s), weak(w), source_count(n), hash(h), arg(std::move(a)), memory(m) {}

void* CachedFact::operator new(size_t size) { return detail::allocate_node(size); }
void CachedFact::operator delete(void* memory, size_t size) { detail::free_node(memory, size); }

Node::~Node() {
  for (auto& f : facts_) delete f.load(std::memory_order_relaxed);
}

const CachedFact* Node::set_fact(FactSlot slot, const CachedFact* fact) const noexcept {
  const CachedFact* expected = nullptr;
  if (facts_[size_t(slot)].compare_exchange_strong(expected, fact, std::memory_order_acq_rel)) return fact;
  delete fact;
  return expected;
}

bool Node::retain_if_alive() const noexcept {
  uint32_t n = refs_.load(std::memory_order_relaxed);
  while (n != 0)
    if (refs_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
  return false;
}

void Node::destroy(const Node* node) noexcept { Interner::instance().destroy(node); }

UOp::UOp(Op op, DType dtype, std::span<const UOp> sources, Arg arg)
    : node_(Interner::instance().find_or_make(op, dtype, sources, std::move(arg))) {}

UOp::UOp(Op op, DType dtype, std::initializer_list<UOp> sources, Arg arg)
    : UOp(op, dtype, std::span<const UOp>(sources.begin(), sources.size()), std::move(arg)) {}

UOp UOp::with_src(std::span<const UOp> sources) const {
  if (std::ranges::equal(sources, src())) return *this;
  return UOp(op(), dtype(), sources, arg());
}

UOp UOp::with_arg(Arg a) const { return UOp(op(), dtype(), src(), std::move(a)); }
UOp UOp::with_dtype(DType d) const { return UOp(op(), d, src(), arg()); }

void throw_wrong_arg(const UOp& u) { throw InternalError(std::string(name(u.op())) + ": its arg has the type of another op"); }

size_t live_node_count() { return Interner::instance().size(); }

}  // namespace tinygrad
