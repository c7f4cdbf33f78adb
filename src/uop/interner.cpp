#include <array>
#include <mutex>
#include <new>
#include <unordered_set>

#include <tinygrad/errors.h>

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

struct Hash {
  using is_transparent = void;
  size_t operator()(const Node* n) const noexcept { return n->hash; }
  size_t operator()(const Candidate& c) const noexcept { return c.hash; }
};

struct Equal {
  using is_transparent = void;
  bool operator()(const Node* a, const Node* b) const noexcept { return a == b; }
  bool operator()(const Candidate& c, const Node* n) const { return (*this)(n, c); }
  bool operator()(const Node* n, const Candidate& c) const {
    return n->hash == c.hash && n->op == c.op && n->dtype == c.dtype && std::ranges::equal(n->sources(), c.sources) && n->arg == c.arg;
  }
};

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
    std::lock_guard lock(shard.mutex);
    if (auto it = shard.nodes.find(c); it != shard.nodes.end()) {
      if ((*it)->retain_if_alive()) return *it;
      shard.nodes.erase(it);  // its last owner is on the way to remove it
    }
    const Node* node = make(c, std::move(arg));
    try {
      shard.nodes.insert(node);
    } catch (...) {
      unmake(node);
      throw;
    }
    return node;
  }

  /// Removes a node without owners, then those of its sources that this leaves without owners: no recursion.
  void destroy(const Node* root) noexcept {
    thread_local std::vector<const Node*>* pending = nullptr;
    if (pending) {  // released by a destructor below us on this thread
      pending->push_back(root);
      return;
    }
    std::vector<const Node*> work{root};
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
      std::lock_guard lock(s.mutex);
      n += s.nodes.size();
    }
    return n;
  }

 private:
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_set<const Node*, Hash, Equal> nodes;
  };

  Shard& shard_of(uint64_t hash) { return shards_[hash >> 58]; }

  void forget(const Node* node) noexcept {
    Shard& shard = shard_of(node->hash);
    std::lock_guard lock(shard.mutex);
    if (auto it = shard.nodes.find(node); it != shard.nodes.end()) shard.nodes.erase(it);
  }

  static const Node* make(const Candidate& c, Arg&& arg) {
    void* memory = ::operator new(sizeof(Node) + c.sources.size() * sizeof(UOp), std::align_val_t(alignof(Node)));
    Node* node = new (memory) Node(c.op, c.dtype, c.hash, std::move(arg), uint32_t(c.sources.size()));
    auto* slots = reinterpret_cast<UOp*>(static_cast<std::byte*>(memory) + sizeof(Node));
    for (size_t i = 0; i < c.sources.size(); ++i) new (slots + i) UOp(c.sources[i]);
    return node;
  }

  static void unmake(const Node* node) noexcept {
    for (const UOp& s : node->sources()) s.~UOp();
    node->~Node();
    ::operator delete(const_cast<Node*>(node), std::align_val_t(alignof(Node)));
  }

  std::array<Shard, 64> shards_;
};

static_assert(sizeof(UOp) == 8);
static_assert(sizeof(Node) % alignof(UOp) == 0);

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
