#pragma once
#include <atomic>
#include <compare>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include <tinygrad/symbol.h>
#include "base/hash.h"
#include "base/intrusive.h"
#include "base/small_vector.h"
#include "dtype/scalar.h"
#include "uop/devices.h"
#include "uop/op.h"

namespace tinygrad {

/// What a BUFFER node hangs on: device memory with its owner. `device/Buffer` implements it; the IR only keeps it alive.
class Resource {
 public:
  virtual ~Resource() = default;
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  /// Marks `n` references as such that only watch it.
  void watch(uint32_t n) const noexcept { watchers_.fetch_add(n, std::memory_order_relaxed); }
  void unwatch(uint32_t n) const noexcept { watchers_.fetch_sub(n, std::memory_order_relaxed); }
  /// Whether there are others.
  bool is_used() const noexcept { return count_.load(std::memory_order_acquire) > watchers_.load(std::memory_order_relaxed); }

  /// The one that counts for all resources on the same memory.
  const Resource& memory() const noexcept { return *counted_; }
  /// How many nodes there are that compute something from views of this memory, or change it (see Node::memory).
  uint32_t users() const noexcept { return counted_->users_.load(std::memory_order_acquire); }
  void add_user() const noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
  void remove_user() const noexcept { users_.fetch_sub(1, std::memory_order_release); }

 protected:
  /// Before there is a node with it. The other one must live longer.
  void share_memory(const Resource& other) noexcept { counted_ = other.counted_; }

 private:
  mutable std::atomic<uint32_t> count_{0}, watchers_{0}, users_{0};
  const Resource* counted_ = this;
};

using Axes = SmallVector<int, 6>;

enum class AxisKind : uint8_t {
  loop,     ///< a loop over output elements
  reduce,   ///< a loop of a REDUCE
  thread,   ///< chunks shared out among CPU threads
  global,   ///< work-groups
  local,    ///< work-items of a group
  group,    ///< work-items that share a reduction
  upcast,   ///< output elements kept side by side in registers
  unroll,   ///< steps of a REDUCE written out
  lane,     ///< the vector axis, inside of all others
  outer,    ///< a loop of a REDUCE around those output loops whose order key is larger
  element,  ///< what a work-item holds of a tensor core's operand, until all opts are applied
};

enum class Scope : uint8_t {
  reg,
  thread,
  group,
  device,
  tensor,  ///< tensor memory: accumulators of tensor cores, of which a work-item reads and writes its part
};
std::string_view name(Scope scope);

// The args. Each is a small value with structural equality and order; `NoArg` for ops without one.

struct NoArg {
  auto operator<=>(const NoArg&) const = default;
};
/// CONST: its value; the device is empty inside kernels and index expressions. In the graphs of tensors only, `given` tells a number that
/// the caller gave to an operator from those that the library computes with: a schedule may leave its value open (schedule/normalize.h).
struct ConstArg {
  Scalar value = {};
  Symbol device = {};
  bool given = false;
  auto operator<=>(const ConstArg&) const = default;
};
/// VAR: with `devices`, the number of the part that a shard has of these, which each launch knows.
struct VarArg {
  Symbol name = {};
  int64_t min = 0, max = 0;
  Devices devices = {};
  auto operator<=>(const VarArg&) const = default;
};
struct AxesArg {
  Axes axes = {};
  auto operator<=>(const AxesArg&) const = default;
};
struct ReduceArg {
  Op op = {};
  Axes axes = {};
  auto operator<=>(const ReduceArg&) const = default;
};
/// BUFFER: `id` is unique in the process (device scope) or the kernel (nearer scopes); identity is the id alone.
struct BufferArg {
  uint64_t id = 0;
  int64_t size = 0;  ///< elements of the node's dtype
  Scope scope = Scope::device;
  Symbol device = {};
  IntrusivePtr<Resource> resource = {};
  bool weak = false;  ///< holds what was a weak value: see Node::weak
  bool operator==(const BufferArg& o) const { return id == o.id && size == o.size && scope == o.scope && device == o.device; }
  std::strong_ordering operator<=>(const BufferArg& o) const {
    if (auto c = id <=> o.id; c != 0) return c;
    if (auto c = size <=> o.size; c != 0) return c;
    if (auto c = scope <=> o.scope; c != 0) return c;
    return device <=> o.device;
  }
};
/// PARAM: `alias` tells which params may overlap (equal classes may; 0: may overlap any), `align` in bytes is promised by the caller.
/// On several devices, in a schedule, the parts have slots after one another.
struct ParamArg {
  int32_t slot = 0;
  uint16_t align = 0;
  uint16_t alias = 0;
  Devices device = {};
  auto operator<=>(const ParamArg&) const = default;
};
/// INDEX: `state` only tells apart accesses of one place before and behind stores to it, in the order of a linear program; `streams`:
/// what is stored there is not kept in caches.
struct IndexArg {
  int32_t width = 1;
  int32_t state = 0;
  bool streams = false;
  auto operator<=>(const IndexArg&) const = default;
};
/// COPY in a call of a schedule: `begin` is the first element of the target that is written.
struct DeviceArg {
  Symbol device = {};
  int64_t begin = 0;
  auto operator<=>(const DeviceArg&) const = default;
};
/// How a value is divided among the shards of a mesh: along these axes, and the same on all shards along other directions of the mesh. An
/// axis may be cut again along another direction; the first entry is the outer cut.
struct ShardingArg {
  Devices devices = {};
  SmallVector<ShardedAxis, 2> axes = {};
  auto operator<=>(const ShardingArg&) const = default;
};
enum class Collective : uint8_t {
  allreduce,      ///< x -> x: what the shards along the directions have, combined by `op` in their order
  allgather,      ///< x -> (n, x): what they have
  reducescatter,  ///< (n, x) -> x: as allreduce, of which each gets its part
  scatter,        ///< (n, x) on one device -> x on `devices`
  gather,         ///< x -> (n, x) on one device, of the shards that begin with the first
};
std::string_view name(Collective collective);
/// COLLECTIVE: `devices` are those of the result, `along` the directions of the mesh, outermost first; n is the product of their counts.
/// The result of a transient one is not kept for long: it is done again for those that read it later.
struct CollectiveArg {
  Collective kind = {};
  Op op = Op::ADD;
  bool is_transient = false;
  Devices devices = {};
  SmallVector<MeshAxis, 2> along = {};
  auto operator<=>(const CollectiveArg&) const = default;

  int64_t count() const;
  /// Where a shard is among the n.
  int64_t at(size_t shard) const;
  /// The n shards that a shard is one of, in order.
  std::vector<size_t> line(size_t shard) const;
};
struct StageArg {
  Scope scope = Scope::device;
  uint8_t depth = 1;
  SmallVector<int32_t, 6> layout = {};  ///< order of the ranges in memory, outermost first; empty: as listed
  int32_t run = 1, gap = 0;             ///< behind each `run` of places `gap` are left free
  int32_t swizzle = 1;                  ///< pieces of `run` places that change places (TensorCore::Layout)
  auto operator<=>(const StageArg&) const = default;
};
/// RANGE: `id` splits identity; `order` is the loop-order key: a range with a smaller key is outside one with a larger.
struct RangeArg {
  int32_t id = 0;
  AxisKind kind = AxisKind::loop;
  int32_t order = 0;
  auto operator<=>(const RangeArg&) const = default;
};
/// SPECIAL: launch dimension `dim` (0 = fastest) of the grid (global) or the group (local).
struct SpecialArg {
  AxisKind kind = AxisKind::global;
  uint8_t dim = 0;
  auto operator<=>(const SpecialArg&) const = default;
};

/// The optimizations of a kernel are a list of these; see codegen/opt.
enum class OptOp : uint8_t { UPCAST, UNROLL, LOCAL, THREAD, GROUP, GROUPTOP, NOLOCALS, PADTO, SWAP, TC, LANE, STAGE, BLOCK, OUTER };
inline constexpr int opt_op_count = int(OptOp::OUTER) + 1;
std::string_view name(OptOp op);
struct Opt {
  OptOp op = OptOp::UPCAST;
  int32_t axis = 0;
  int32_t arg = 0;
  auto operator<=>(const Opt&) const = default;
};
/// "UPCAST(0,4)"; a STAGE names what its arg holds: "STAGE(2,1,group,2)".
std::string to_string(const Opt& opt);

/// The arg of a STAGE opt: of which argument a tile is made, in which memory, and how many tiles at once.
struct StageOpt {
  int32_t slot = 0;  ///< the kernel's argument
  Scope scope = Scope::thread;
  int32_t depth = 1;
  bool computed = false;  ///< the tile has what is computed of the argument's elements

  static StageOpt of(int32_t arg) {
    return {.slot = arg >> 8, .scope = Scope(arg >> 6 & 3), .depth = arg & 31, .computed = (arg & 32) != 0};
  }
  int32_t arg() const { return slot << 8 | int32_t(scope) << 6 | int32_t(computed) << 5 | depth; }
};
struct KernelArg {
  Symbol name = {};
  std::vector<Opt> opts = {};
  bool optimized = false;  ///< the opts are already in the graph
  auto operator<=>(const KernelArg&) const = default;
};
struct LinearArg {
  int32_t kind = 0;  ///< 0: calls of a schedule, 1: instructions of a kernel
  auto operator<=>(const LinearArg&) const = default;
};
struct TextArg {
  Symbol text = {};
  auto operator<=>(const TextArg&) const = default;
};
/// FUNCTION: `gradient` is a rule that stands for the derivative of the body (ops/gradient.h); its identity is the id.
struct FunctionArg {
  Symbol name = {};
  uint64_t gradient_id = 0;  ///< 0: the gradient is that of the body
  IntrusivePtr<Resource> gradient = {};
  bool operator==(const FunctionArg& o) const { return name == o.name && gradient_id == o.gradient_id; }
  std::strong_ordering operator<=>(const FunctionArg& o) const {
    if (auto c = name <=> o.name; c != 0) return c;
    return gradient_id <=> o.gradient_id;
  }
};
struct TupleArg {
  int32_t index = 0;
  auto operator<=>(const TupleArg&) const = default;
};
struct WmmaArg {
  Symbol name = {};
  int32_t m = 0, n = 0, k = 0;
  DType a = DType::void_, b = DType::void_;
  DType out = DType::void_;
  auto operator<=>(const WmmaArg&) const = default;
};
/// WAIT: how many of the last COMMITs need not be done.
struct WaitArg {
  int32_t pending = 0;
  auto operator<=>(const WaitArg&) const = default;
};

/// TENSOR: `id` is unique in the process for each value that a tensor has had; the resource is what else is known of that tensor.
struct TensorArg {
  uint64_t id = 0;
  bool is_view = false;
  IntrusivePtr<Resource> variable = {};
  bool operator==(const TensorArg& o) const { return id == o.id && is_view == o.is_view; }
  std::strong_ordering operator<=>(const TensorArg& o) const {
    if (auto c = id <=> o.id; c != 0) return c;
    return is_view <=> o.is_view;
  }
};
/// REALIZED: when that was, and what is known of the history; its identity is the id.
struct HistoryArg {
  uint64_t id = 0;
  IntrusivePtr<Resource> history = {};
  bool operator==(const HistoryArg& o) const { return id == o.id; }
  std::strong_ordering operator<=>(const HistoryArg& o) const { return id <=> o.id; }
};

/// AFTER in the graphs of tensors: which write it is, so that the same write of another time is another node; the resource is what is known
/// of whether it has run. Schedules have no use for it.
struct StoreArg {
  uint64_t id = 0;
  IntrusivePtr<Resource> run = {};
  bool operator==(const StoreArg& o) const { return id == o.id; }
  std::strong_ordering operator<=>(const StoreArg& o) const { return id <=> o.id; }
};

/// Hashes of nodes depend on the places here, as they do on those of ops (see ops.def).
using ArgValue = std::variant<NoArg, ConstArg, VarArg, AxesArg, ReduceArg, BufferArg, ParamArg, IndexArg, DeviceArg, StageArg, RangeArg,
                              SpecialArg, KernelArg, LinearArg, HistoryArg, TextArg, FunctionArg, TupleArg, WmmaArg, WaitArg, TensorArg,
                              StoreArg, ShardingArg, CollectiveArg>;

namespace detail {
template <class T, class Variant>
inline constexpr bool is_alternative = false;
template <class T, class... All>
inline constexpr bool is_alternative<T, std::variant<All...>> = (std::is_same_v<T, All> || ...);
}  // namespace detail

/// One of the structs above. What a variant of so many does when it is made, moved and destroyed is compiled in arg.cpp alone.
class Arg : public ArgValue {
 public:
  Arg() noexcept;
  template <class T>
    requires(detail::is_alternative<T, ArgValue>)
  Arg(T value);
  Arg(const Arg&);
  Arg(Arg&&) noexcept;
  Arg& operator=(const Arg&);
  Arg& operator=(Arg&&) noexcept;
  ~Arg();
};

/// Equal args have equal hashes; stable across runs and machines.
uint64_t hash_arg(const Arg& arg);
/// Readable form, as it appears in printed graphs; empty for NoArg.
std::string to_string(const Arg& arg);

}  // namespace tinygrad
