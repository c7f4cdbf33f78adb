#include "codegen/choose/group_heuristic.h"

#include <algorithm>
#include <limits>
#include <map>

#include "codegen/kernel_axes.h"
#include "codegen/opt/tensor_core.h"
#include "shape/ranges.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t few_outputs = 2048;  // fewer than the work-items that a device runs at once
constexpr int64_t long_reduction = 32;
constexpr int64_t row_items = 64;  // work-items that share a row; a group has several rows
constexpr int64_t texel = 4;       // elements
constexpr int tiles_ahead = 2;
constexpr int64_t most_sums = 64;     // accumulators of tensor cores in an item, so that two groups fit the registers of a processor
constexpr int64_t many_groups = 256;  // give each processor of the largest devices two groups, one after another

class GroupHeuristic {
 public:
  GroupHeuristic(const UOp& sink, const Nest& nest, const Target& target, bool pads)
      : sink_(sink), nest_(nest), target_(target), pads_(pads) {
    for (const NestAxis& a : nest.axes) left_.push_back(a.size);
  }

  std::vector<Opt> run() {
    if (use_tensor_core()) {
      may_stage_ = has_one_product();
    } else {
      read_texels();
      const bool is_shared = share_reduction();
      if (!is_shared && nest_.reduces != 0) may_stage_ = tile() && has_one_product();
      if (!is_shared && nest_.reduces == 0 && !reads_texels_) take_vectors();
    }
    spread();
    unroll();
    stage();
    return opts_;
  }

 private:
  void add(OptOp op, size_t axis, int64_t n) {
    opts_.push_back({op, int32_t(nest_.axes[axis].number), int32_t(n)});
    left_[axis] /= n;
  }

  int64_t most_items() const { return std::min(target_.full_group, target_.max_group_items); }
  bool is_axis(size_t i, const UOp& range) const { return nest_.axes[i].range == range; }

  /// Whether a core's tile divides the size, or less than half of the size has to be padded. Operands that the core reads in place are not
  /// padded.
  bool fits(const UOp& range, int64_t tile, bool reads_memory) const {
    const int64_t size = constant_size(range);
    if (size == 0) return false;
    return size % tile == 0 || (pads_ && !reads_memory && size * 2 > tile);
  }

  /// The first core whose tile fits the sizes, with several tiles for each of its groups of items.
  bool use_tensor_core() {
    if (nest_.reduces == 0) return false;
    for (size_t i = 0; i < target_.tensor_cores.size(); ++i) {
      const TensorCore& core = target_.tensor_cores[i];
      const auto use = tensor_core_axes(sink_, core);
      if (!use || use->shifts_a || core.items > target_.max_group_items) continue;
      const bool reads_memory = core.a.in_memory || core.b.in_memory;
      if (reads_memory && (!use->lie_as_read || !has_one_product())) continue;
      if (!fits(use->m, core.m, reads_memory) || !fits(use->n, core.n, reads_memory) || !fits(use->k, core.k, reads_memory)) continue;
      // Wide tiles load less for each product, but a group takes two of them, so that few groups may be left.
      fills_registers_ = core.c.elements() > most_sums;
      if (fills_registers_ && outputs() / (int64_t{2} * core.m * core.n) < many_groups) continue;
      opts_.push_back({OptOp::TC, 0, int32_t(i)});
      items_ *= core.items;
      int64_t sums = core.c.elements();
      for (size_t a = 0; a < nest_.axes.size(); ++a) {
        const int64_t tile = is_axis(a, use->m) ? core.m : is_axis(a, use->n) ? core.n : is_axis(a, use->k) ? core.k : 1;
        // The remaining terms are a step of their own.
        left_[a] = nest_.axes[a].is_reduce ? std::max<int64_t>(left_[a] / tile, 1) : (left_[a] + tile - 1) / tile;
        if (tile > 1 && !nest_.axes[a].is_reduce) sums *= add_copies(a, std::min<int64_t>(may_fetch() ? 4 : 2, most_sums / sums));
      }
      core_reads_memory_ = reads_memory;
      shares_terms_ = std::ranges::count_if(toposort(sink_), [&](const UOp& u) { return u.is(Op::REDUCE) && closes(u, use->k); }) > 1;
      return uses_core_ = true;
    }
    return false;
  }

  /// Images are accessed by four neighbours, so lanes are along the output axis along which most accesses are contiguous.
  void read_texels() {
    if (target_.max_image_width == 0 || nest_.joined_axis >= 0) return;
    size_t best = 0;
    int64_t most = 0;
    for (size_t i = 0; i < nest_.axes.size(); ++i) {
      if (nest_.axes[i].is_reduce || left_[i] % texel != 0 || left_[i] == 0) continue;
      const auto along = [&](const NestedWork& w) { return w.node.is(Op::LOAD) && w.strides[i] == 1; };
      const int64_t count = std::ranges::count_if(nest_.works, along) + stores_along(nest_.axes[i].range);
      if (count > most) best = i, most = count;
    }
    reads_texels_ = most > 0;
    if (reads_texels_) add(OptOp::LANE, best, texel);
  }

  int64_t stores_along(const UOp& range) const {
    return std::ranges::count_if(toposort(sink_), [&](const UOp& u) { return u.is(Op::STORE) && stride_of(u.src(0).src(1), range) == 1; });
  }

  // Neighbours of one work-item are loaded and stored together where the target can (coalesce.h).

  /// Elements of the widest dtype that one access of an argument moves; 1 where the alignment of arguments is not known, as neighbouring
  /// work-items then access neighbours faster.
  int64_t vector_elements() const {
    if (target_.vector_math || target_.vector_bits == 0) return 1;
    return std::max<int64_t>(std::min(target_.vector_bits / 8, target_.memory_alignment) / nest_.item_bytes, 1);
  }

  static int64_t stride(const UOp& access, const UOp& range) { return stride_of(access.src(0).src(1), range).value_or(0); }

  /// True if every access that moves along the axis is contiguous along it.
  bool moves_by_one(size_t axis) const {
    return std::all_of(nest_.works.begin(), nest_.works.end(), [&](const NestedWork& w) {
      return !w.is_access || !(w.depends >> axis & 1) || stride(w.node, nest_.axes[axis].range) == 1;
    });
  }

  int64_t outputs() const {
    int64_t n = 1;
    for (const NestAxis& a : nest_.axes)
      if (!a.is_reduce) n *= a.size;
    return n;
  }

  /// Takes neighbours together if that leaves enough work-items.
  void take_vectors() {
    for (size_t i = nest_.axes.size(); i-- > 0;) {
      if (!moves_by_one(i)) continue;
      for (int64_t n = vector_elements(); n > 1; n /= 2)
        if (left_[i] % n == 0 && outputs() / n >= few_outputs) return add(OptOp::UPCAST, i, n);
    }
  }

  /// The items of a group share each output where there are too few outputs to fill the device. Some items share an output where rows of
  /// memory are reduced, since items with rows of their own would read far apart. The same items share reductions that follow each other.
  bool share_reduction() {
    if (updates_in_place(sink_)) return false;
    const bool few = outputs() <= few_outputs;
    std::vector<size_t> shared;
    for (size_t i = nest_.axes.size(); i-- > 0;)
      if (nest_.axes[i].is_reduce && left_[i] >= long_reduction && (few || reads_rows(i))) shared.push_back(i);
    // Masks cost little, but are not needed where enough items divide the axis.
    const auto masked = [&](size_t i) { return !few || left_[i] % 8 != 0; };
    for (int64_t n = few ? most_items() : std::min(most_items(), row_items); n >= 8; n /= 2) {
      const auto fits = [&](size_t i) { return left_[i] >= 2 * n && (masked(i) || left_[i] % n == 0); };
      if (shared.empty() || !fits(shared.front())) continue;
      std::vector<size_t> taken;
      for (const size_t i : shared) {
        if (!fits(i) || std::ranges::any_of(taken, [&](size_t t) { return meet(sink_, nest_.axes[t].range, nest_.axes[i].range); }))
          continue;
        taken.push_back(i);
        const int64_t vector = moves_by_one(i) ? vector_elements() : 1;
        if (vector > 1 && left_[i] >= n * vector && left_[i] % (masked(i) ? vector : n * vector) == 0) add(OptOp::UNROLL, i, vector);
        add(OptOp::GROUP, i, n);
      }
      items_ *= n;
      return true;
    }
    return false;
  }

  /// True if the terms along the axis are contiguous in memory, and no other output reads them.
  bool reads_rows(size_t axis) const {
    uint64_t all = uint64_t{1} << axis;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (!nest_.axes[i].is_reduce && nest_.axes[i].size != 1) all |= uint64_t{1} << i;
    return std::ranges::any_of(nest_.works, [&](const NestedWork& w) {
      return w.node.is(Op::LOAD) && (all & ~w.depends) == 0 && stride(w.node, nest_.axes[axis].range) == 1;
    });
  }

  /// Copies along an axis share the loads in a reduction that do not move with it.
  bool shares_loads(size_t axis) const {
    return std::any_of(nest_.works.begin(), nest_.works.end(),
                       [&](const NestedWork& w) { return w.node.is(Op::LOAD) && (w.inside >> axis & 1) && !(w.depends >> axis & 1); });
  }

  bool tile() {
    int tiled = 0;
    for (size_t i = nest_.axes.size(); i-- > 0 && tiled < 2;) {
      if (nest_.axes[i].is_reduce || !shares_loads(i)) continue;
      for (int64_t n : {4, 2})
        if (left_[i] % n == 0 && left_[i] >= 4 * n) {
          add(OptOp::UPCAST, i, n);
          ++tiled;
          break;
        }
    }
    return tiled > 0;
  }
  /// How many such loads there are.
  int64_t add_copies(size_t axis, int64_t most) {
    for (int64_t n = most; n > 1; n /= 2) {
      if (left_[axis] % n != 0) continue;
      add(OptOp::UPCAST, axis, n);
      return n;
    }
    return 1;
  }

  /// Output axes, the innermost first. A core that reads group memory has a wide tile for each group, whose shorter side comes first.
  std::vector<size_t> axes_to_spread() const {
    std::vector<size_t> out;
    for (size_t i = nest_.axes.size(); i-- > 0;)
      if (!nest_.axes[i].is_reduce) out.push_back(i);
    const auto key = [&](size_t i) {
      const int64_t tile = nest_.axes[i].size / std::max<int64_t>(left_[i], 1);
      return std::pair(tile == 1, tile);
    };
    if (core_reads_memory_) std::ranges::stable_sort(out, {}, key);
    return out;
  }

  /// Items along the outputs, the innermost axis first: neighbouring items then use neighbouring memory. The last opt is the fastest
  /// dimension of the group.
  void spread() {
    std::vector<Opt> local;
    for (const size_t i : axes_to_spread()) {
      if (local.size() == 3 || (local.size() == 2 && (uses_core_ || items_ >= 32))) break;
      // The items of a tensor core have square tiles already.
      const int64_t n = items_along(i, uses_core_ && may_fetch() ? 2 : local.empty() ? 32 : local.size() == 1 ? 8 : 16);
      if (n == 1) continue;
      local.insert(local.begin(), {OptOp::LOCAL, int32_t(nest_.axes[i].number), int32_t(n)});
      items_ *= n;
      left_[i] = (left_[i] + n - 1) / n;
      spread_ |= uint64_t{1} << i;
    }
    opts_.insert(opts_.end(), local.begin(), local.end());
  }

  /// The wanted number of items, or a smaller power of two that divides the axis. Where only few items divide a long axis, its last groups
  /// are masked instead.
  int64_t items_along(size_t axis, int64_t wanted) const {
    wanted = std::min(wanted, most_items() / items_);
    int64_t n = std::max<int64_t>(wanted, 1);
    while (left_[axis] % n != 0) n /= 2;
    return n * 4 <= wanted && left_[axis] >= 4 * wanted && !uses_core_ ? wanted : n;
  }

  /// A core takes the terms of one sum. If other sums have the same axis, the core's is a new axis, and the axes behind it are renumbered.
  void unroll() {
    if (shares_terms_) return;
    for (size_t i = nest_.axes.size(); i-- > 0;) {
      if (!nest_.axes[i].is_reduce) continue;
      if (std::ranges::any_of(opts_, [](const Opt& o) { return o.op == OptOp::UNROLL; })) return;
      // A core takes few terms at a time; loads are waited for once for all steps that are written out.
      for (int64_t n = !may_stage_ || core_reads_memory_ ? 4 : uses_core_ ? 2 : 8; n > 1; n /= 2)
        if (left_[i] % n == 0 && left_[i] >= n) return add(OptOp::UNROLL, i, n);
      return;
    }
  }

  // Tiles in group memory, on targets with asynchronous copies.

  bool may_fetch() const { return target_.async_copy_bytes != 0; }

  /// True for one sum along one axis, the last one, whose terms no loop of the kernel has stored.
  bool has_one_product() const {
    const auto reduced = std::ranges::count_if(nest_.axes, &NestAxis::is_reduce);
    return may_fetch() && nest_.reduces == 1 && reduced == 1 && nest_.axes.back().is_reduce && !updates_in_place(sink_);
  }

  /// True if work-items along another axis load the same elements, or load an operand of a tensor core together.
  bool is_shared(const NestedWork& w) const {
    return w.node.is(Op::LOAD) && (core_reads_memory_ || (spread_ & w.inside & ~w.depends) != 0);
  }

  /// Operands that several work-items load are copied to group memory for all of them, two steps ahead, or one where memory is short.
  void stage() {
    const size_t axis = nest_.axes.size() - 1;
    if (!may_stage_ || left_[axis] <= tiles_ahead + 1) return;
    std::map<int32_t, int64_t> tiles;  // bytes, by slot
    for (const NestedWork& w : nest_.works)
      if (is_shared(w) && (w.depends >> axis & 1)) tiles[w.node.src(0).src(0).arg_as<ParamArg>().slot] += tile_bytes(w);
    int depth = tiles_ahead + 1;
    // Two groups share the memory of a processor, even where one might ask for all of it: one computes while the other waits.
    int64_t free = target_.declared_group_bytes && !fills_registers_ ? target_.group_memory_bytes / 2 : target_.group_memory_bytes;
    if (core_reads_memory_ && bytes_of(tiles) * depth > free) --depth;
    for (const auto& [slot, bytes] : tiles) {
      const StageOpt tile{.slot = slot, .scope = Scope::group, .depth = depth};
      free -= bytes * tile.depth;
      if (free < 0) return;
      opts_.push_back({OptOp::STAGE, int32_t(nest_.axes[axis].number), tile.arg()});
    }
  }

  static int64_t bytes_of(const std::map<int32_t, int64_t>& tiles) {
    int64_t sum = 0;
    for (const auto& [slot, bytes] : tiles) sum += bytes;
    return sum;
  }

  /// The most bytes of a tile, with the padding behind each row.
  int64_t tile_bytes(const NestedWork& load) const {
    const auto item = int64_t(itemsize(load.node.dtype()));
    int64_t elements = 1, row = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < nest_.axes.size(); ++i) {
      const int64_t taken = load.depends >> i & 1 ? nest_.axes[i].size / std::max<int64_t>(left_[i], 1) : 1;
      elements *= taken;
      if (taken > 1) row = std::min(row, taken);
    }
    // Tensor cores read runs of at least 256 bytes.
    return elements * item + (core_reads_memory_ ? elements * item / 256 : elements / std::min(row, elements)) * 16;
  }

  const UOp sink_;
  const Nest& nest_;
  const Target& target_;
  const bool pads_;
  std::vector<int64_t> left_;
  std::vector<Opt> opts_;
  int64_t items_ = 1;
  bool uses_core_ = false, core_reads_memory_ = false, shares_terms_ = false, fills_registers_ = false, may_stage_ = false,
       reads_texels_ = false;
  uint64_t spread_ = 0;  ///< axes that work-items are along, as bits
};

}  // namespace

std::vector<Opt> group_heuristic(const UOp& sink, const Nest& nest, const Target& target, bool pads) {
  return GroupHeuristic(sink, nest, target, pads).run();
}

}  // namespace tinygrad::codegen
