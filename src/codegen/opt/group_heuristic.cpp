#include "codegen/opt/group_heuristic.h"

#include <algorithm>

#include "codegen/opt/kernel_axes.h"
#include "codegen/opt/tensor_core.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t few_outputs = 2048;  // less than the work-items that a device runs at once
constexpr int64_t long_reduction = 32;
constexpr int64_t texel = 4;  // elements

class GroupHeuristic {
 public:
  GroupHeuristic(const UOp& sink, const Nest& nest, const Target& target) : sink_(sink), nest_(nest), target_(target) {
    for (const NestAxis& a : nest.axes) left_.push_back(a.size);
  }

  std::vector<Opt> run() {
    if (!use_tensor_core()) {
      read_texels();
      if (!share_reduction()) tile();
    }
    spread();
    unroll();
    return opts_;
  }

 private:
  void add(OptOp op, size_t axis, int64_t n) {
    opts_.push_back({op, int32_t(nest_.axes[axis].number), int32_t(n)});
    left_[axis] /= n;
  }

  int64_t most_items() const { return std::min(target_.full_group, target_.max_group_items); }
  bool is_axis(size_t i, const UOp& range) const { return nest_.axes[i].range == range; }

  /// The first core whose tile divides the sizes, with up to 2x2 tiles for each of its groups of items.
  bool use_tensor_core() {
    for (size_t i = 0; i < target_.tensor_cores.size(); ++i) {
      const TensorCore& core = target_.tensor_cores[i];
      const auto use = tensor_core_axes(sink_, core);
      if (!use || core.items > target_.max_group_items) continue;
      if (constant_size(use->m) % core.m || constant_size(use->n) % core.n || constant_size(use->k) % core.k) continue;
      if (constant_size(use->m) == 0 || constant_size(use->n) == 0 || constant_size(use->k) == 0) continue;
      opts_.push_back({OptOp::TC, 0, int32_t(i)});
      items_ *= core.items;
      for (size_t a = 0; a < nest_.axes.size(); ++a) {
        const int64_t tile = is_axis(a, use->m) ? core.m : is_axis(a, use->n) ? core.n : is_axis(a, use->k) ? core.k : 1;
        left_[a] /= tile;
        if (tile > 1 && !nest_.axes[a].is_reduce && left_[a] % 2 == 0) add(OptOp::UPCAST, a, 2);
      }
      return true;
    }
    return false;
  }

  /// Images are accessed by four neighbours: lanes along the output axis that most of what is loaded and stored lies along.
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
    if (most > 0) add(OptOp::LANE, best, texel);
  }

  int64_t stores_along(const UOp& range) const {
    return std::ranges::count_if(toposort(sink_), [&](const UOp& u) { return u.is(Op::STORE) && stride_of(u.src(0).src(1), range) == 1; });
  }

  /// Where the outputs are too few to fill the device, the items of a group share each.
  bool share_reduction() {
    int64_t outputs = 1;
    for (const NestAxis& a : nest_.axes)
      if (!a.is_reduce) outputs *= a.size;
    if (outputs > few_outputs || updates_in_place(sink_)) return false;
    for (size_t i = nest_.axes.size(); i-- > 0;) {
      if (!nest_.axes[i].is_reduce || left_[i] < long_reduction) continue;
      for (int64_t n = most_items(); n >= 8; n /= 2) {
        if (left_[i] % n != 0 || left_[i] < 2 * n) continue;
        add(OptOp::GROUP, i, n);
        items_ *= n;
        return true;
      }
    }
    return false;
  }

  /// Copies along an axis share the loads in a reduction that do not move with it.
  bool shares_loads(size_t axis) const {
    return std::any_of(nest_.works.begin(), nest_.works.end(),
                       [&](const NestedWork& w) { return w.node.is(Op::LOAD) && (w.inside >> axis & 1) && !(w.depends >> axis & 1); });
  }

  void tile() {
    if (nest_.reduces == 0) return;
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
  }

  /// Items along the outputs, the innermost axis first: neighbouring items then use neighbouring memory. The last opt is the fastest
  /// dimension of the group.
  void spread() {
    std::vector<Opt> local;
    const int64_t most = most_items();
    for (size_t i = nest_.axes.size(); i-- > 0 && local.size() < 2;) {
      if (nest_.axes[i].is_reduce) continue;
      const int64_t wanted = local.empty() ? 32 : 8;
      for (int64_t n = wanted; n > 1; n /= 2)
        if (left_[i] % n == 0 && items_ * n <= most) {
          local.insert(local.begin(), {OptOp::LOCAL, int32_t(nest_.axes[i].number), int32_t(n)});
          items_ *= n;
          left_[i] /= n;
          break;
        }
    }
    opts_.insert(opts_.end(), local.begin(), local.end());
  }

  void unroll() {
    for (size_t i = nest_.axes.size(); i-- > 0;) {
      if (!nest_.axes[i].is_reduce) continue;
      for (int64_t n : {4, 2})
        if (left_[i] % n == 0 && left_[i] >= n) return add(OptOp::UNROLL, i, n);
      return;
    }
  }

  const UOp sink_;
  const Nest& nest_;
  const Target& target_;
  std::vector<int64_t> left_;
  std::vector<Opt> opts_;
  int64_t items_ = 1;
};

}  // namespace

std::vector<Opt> group_heuristic(const UOp& sink, const Nest& nest, const Target& target) {
  return GroupHeuristic(sink, nest, target).run();
}

}  // namespace tinygrad::codegen
