#pragma once
#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

#include "uop/arg.h"
#include "uop/op.h"

namespace tinygrad {

class UOp;

/// A derived fact cached in a node; each kind of fact has a slot and a type of its own.
class CachedFact {
 public:
  virtual ~CachedFact() = default;
  static void* operator new(size_t size);
  static void operator delete(void* memory, size_t size);
};
enum class FactSlot : uint8_t { content_key, shape, device, bounds, ranges, count };

/// The const, interned, intrusively counted node. Only the interner makes nodes; users hold `UOp`.
class Node {
 public:
  const Op op;
  const DType dtype;
  /// Its shape is () by its structure alone; where false, nothing is known. Rules that drop an operand need it to be so.
  const bool scalar;
  /// A value made only of numbers: its dtype gives way beside others. A WEAK, and what is computed of such values alone.
  const bool weak;

 private:
  mutable std::atomic<uint8_t> normal_{0};

 public:
  const uint32_t source_count;
  const uint64_t hash;
  const Arg arg;
  /// That of which this shows elements as they are: a BUFFER's, through movement ops but PAD, BITCAST, DETACH, REALIZED and TENSORs that
  /// are views. Null for what is computed, which is one of the users of the memory that its sources show.
  const Resource* const memory;

  inline std::span<const UOp> sources() const;

  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(this);
  }

  /// Whether the rule table that `mark` stands for leaves the node, and all below it, as they are.
  bool is_normal(uint8_t mark) const noexcept { return (normal_.load(std::memory_order_relaxed) & mark) != 0; }
  void set_normal(uint8_t mark) const noexcept { normal_.fetch_or(mark, std::memory_order_relaxed); }

  const CachedFact* fact(FactSlot slot) const noexcept { return facts_[size_t(slot)].load(std::memory_order_acquire); }
  /// Stores `fact` unless another thread was first; returns the one that stays. Takes ownership either way.
  const CachedFact* set_fact(FactSlot slot, const CachedFact* fact) const noexcept;

 private:
  friend class Interner;
  Node(Op o, DType d, uint64_t h, Arg a, uint32_t n, bool s, bool w, const Resource* m);
  ~Node();
  bool retain_if_alive() const noexcept;
  static void destroy(const Node* node) noexcept;

  mutable std::atomic<uint32_t> refs_{1};
  mutable std::atomic<const CachedFact*> facts_[size_t(FactSlot::count)] = {};
};

/// A value handle on a node: 8 bytes, cheap to copy, equal exactly when the structure is equal. A default-made UOp is null.
class UOp {
 public:
  constexpr UOp() noexcept = default;
  /// The node {op, dtype, arg, sources}; the existing one if there is one.
  UOp(Op op, DType dtype, std::span<const UOp> sources, Arg arg = {});
  UOp(Op op, DType dtype, std::initializer_list<UOp> sources, Arg arg = {});

  UOp(const UOp& o) noexcept : node_(o.node_) {
    if (node_) node_->retain();
  }
  UOp(UOp&& o) noexcept : node_(o.node_) { o.node_ = nullptr; }
  UOp& operator=(UOp o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }
  ~UOp() {
    if (node_) node_->release();
  }

  explicit operator bool() const noexcept { return node_ != nullptr; }
  const Node* get() const noexcept { return node_; }
  const Node* operator->() const noexcept { return node_; }

  Op op() const noexcept { return node_->op; }
  DType dtype() const noexcept { return node_->dtype; }
  const Arg& arg() const noexcept { return node_->arg; }
  /// The arg as the struct it must be; InternalError if it is another.
  template <class T>
  const T& arg_as() const;
  std::span<const UOp> src() const noexcept { return node_->sources(); }
  inline const UOp& src(size_t i) const noexcept;
  size_t src_count() const noexcept { return node_->source_count; }

  bool is_weak() const noexcept { return node_->weak; }

  bool is(Op o) const noexcept { return node_ && node_->op == o; }
  bool in(Group g) const noexcept { return node_ && in_group(node_->op, g); }
  /// The same node with other sources; this one if they are equal.
  UOp with_src(std::span<const UOp> sources) const;
  UOp with_arg(Arg arg) const;
  UOp with_dtype(DType dtype) const;

  friend bool operator==(const UOp& a, const UOp& b) noexcept { return a.node_ == b.node_; }

  /// Takes a reference on a node that somebody else holds.
  static UOp share(const Node* node) noexcept {
    UOp u;
    node->retain();
    u.node_ = node;
    return u;
  }

 private:
  friend class Interner;
  const Node* node_ = nullptr;
};

using UOps = SmallVector<UOp, 4>;

inline std::span<const UOp> Node::sources() const {
  return {reinterpret_cast<const UOp*>(reinterpret_cast<const std::byte*>(this) + sizeof(Node)), source_count};
}
inline const UOp& UOp::src(size_t i) const noexcept { return node_->sources()[i]; }

[[noreturn]] void throw_wrong_arg(const UOp& u);

template <class T>
const T& UOp::arg_as() const {
  if (const T* a = std::get_if<T>(&node_->arg)) return *a;
  throw_wrong_arg(*this);
}

/// Number of live nodes in the process; for tests.
size_t live_node_count();

}  // namespace tinygrad

template <>
struct std::hash<tinygrad::UOp> {
  size_t operator()(const tinygrad::UOp& u) const noexcept { return u ? size_t(u->hash) : 0; }
};
