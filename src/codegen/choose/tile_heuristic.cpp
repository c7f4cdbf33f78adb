#include "codegen/choose/tile_heuristic.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "codegen/kernel_axes.h"
#include "codegen/lower/bound_loops.h"
#include "codegen/opt/tensor_core.h"
#include "target/tensor_cores/tile_products.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t least_products = int64_t{1} << 16;  // below, panels and the configuration of the registers take longer
constexpr int64_t copies = 2;                         // tiles along each axis
/// Each chunk of columns copies all rows of the first factor, and each chunk of rows all columns of the second one: a chunk is large, some
/// half a million cycles.
constexpr int64_t products_a_chunk = int64_t{1} << 28, most_chunks = 64;

int64_t rounds(int64_t n, int64_t of) { return (n + of - 1) / of; }

int64_t largest_divisor(int64_t n, int64_t most) {
  int64_t d = std::max<int64_t>(1, std::min(n, most));
  while (n % d != 0) --d;
  return d;
}

struct TileProduct {
  int32_t core = 0;
  const TensorCore* tile = nullptr;
  const NestAxis *m = nullptr, *n = nullptr, *k = nullptr;
  int a = -1, b = -1;  ///< arguments
};

class TileChoice {
 public:
  TileChoice(const UOp& sink, const Nest& nest, const Target& target) : sink_(sink), nest_(nest), target_(target) {}

  std::vector<Opt> run() {
    const auto product = find();
    if (!product) return {};
    const TileProduct& p = *product;
    const int64_t rows = rounds(p.m->size, p.tile->m), columns = rounds(p.n->size, p.tile->n), depth = rounds(p.k->size, p.tile->k);
    push(OptOp::TC, 0, p.core);
    const int64_t row_copies = std::min(rows, copies), column_copies = std::min(columns, copies);
    if (row_copies > 1) push(OptOp::UPCAST, p.m->number, row_copies);
    if (column_copies > 1) push(OptOp::UPCAST, p.n->number, column_copies);
    const int64_t row_steps = rounds(rows, row_copies), steps = rounds(columns, column_copies);
    // The loop over blocks of columns takes the place of the rows' and these that of the columns'.
    const int64_t step_bytes = column_copies * depth * tile_rows * tile_row_bytes, wanted = wanted_chunks(p);
    const NestAxis* around = outermost(p);
    const bool by_loop = around && around->size >= std::min<int64_t>(wanted, 8), by_columns = !by_loop && steps >= wanted;
    const int64_t most = std::max<int64_t>(1, target_.l2_bytes / 2 / step_bytes);
    const int64_t block = steps_of_block(steps, by_columns ? std::min(most, rounds(steps, wanted)) : most);
    const int32_t outer = p.m->number, inner = p.n->number;
    push(OptOp::BLOCK, inner, block);
    push(OptOp::SWAP, outer, inner);
    if (by_loop)
      share_out(around->number, around->size, wanted);
    else if (by_columns)
      share_out(outer, rounds(steps, block), wanted);
    else
      share_out(inner, row_steps, wanted);
    push(OptOp::STAGE, outer, StageOpt{.slot = p.b}.arg());
    push(OptOp::STAGE, inner, StageOpt{.slot = p.a}.arg());
    return std::move(opts_);
  }

 private:
  void push(OptOp op, int32_t axis, int64_t arg) { opts_.push_back({op, axis, int32_t(arg)}); }

  std::optional<TileProduct> find() const {
    // Blocks may overlap, and masks that end loops early are for vectors.
    if (sink_.src_count() != 1 || nest_.reduces != 1 || updates_in_place(sink_) || may_bound_loops(sink_)) return {};
    for (size_t i = 0; i < target_.tensor_cores.size(); ++i) {
      const TensorCore& core = target_.tensor_cores[i];
      if (!multiplies_tiles(core)) continue;
      const auto use = tensor_core_axes(sink_, core);
      if (!use) continue;
      TileProduct p{.core = int32_t(i), .tile = &core, .m = axis_of(use->m), .n = axis_of(use->n), .k = axis_of(use->k)};
      if (!p.m || !p.n || !p.k) continue;
      p.a = argument_along(*p.m, *p.n), p.b = argument_along(*p.n, *p.m);
      if (is_worth(p)) return p;
    }
    return {};
  }

  const NestAxis* axis_of(const UOp& range) const {
    for (const NestAxis& a : nest_.axes)
      if (a.range == range && a.is_known && a.bounds.empty()) return &a;
    return nullptr;
  }

  uint64_t bit(const NestAxis& a) const { return uint64_t{1} << (&a - nest_.axes.data()); }

  /// The argument of a factor's loads; -1 unless it is one.
  int argument_along(const NestAxis& own, const NestAxis& other) const {
    uint64_t found = 0;
    for (const NestedWork& w : nest_.works)
      if (w.is_access && w.node.is(Op::LOAD) && (w.depends & bit(own)) && !(w.depends & bit(other)) && is_inside_sum(w))
        found |= w.argument;
    return std::has_single_bit(found) ? std::countr_zero(found) : -1;
  }
  bool is_inside_sum(const NestedWork& w) const {
    for (const NestAxis& a : nest_.axes)
      if (a.is_reduce && (w.inside & bit(a))) return true;
    return false;
  }

  bool is_worth(const TileProduct& p) const {
    if (p.a < 0 || p.b < 0 || p.a == p.b) return false;
    if (p.m->size < tile_rows || p.n->size < p.tile->n || p.k->size < p.tile->k) return false;
    if (p.m->size * p.n->size < least_products / p.k->size) return false;
    // Panels are filled inside of all loops around the rows.
    return std::ranges::all_of(
        nest_.axes, [&](const NestAxis& a) { return a.is_reduce ? &a == p.k : &a == p.m || &a == p.n || a.number < p.m->number; });
  }

  /// Blocks of about the same number of steps.
  static int64_t steps_of_block(int64_t steps, int64_t most) {
    if (steps <= most) return steps;
    const int64_t even = rounds(steps, rounds(steps, most)), divisor = largest_divisor(steps, most);
    return divisor * 2 > even ? divisor : even;
  }

  /// The outermost loop around rows and columns; null if there is none, or if its size is known at launch.
  const NestAxis* outermost(const TileProduct& p) const {
    for (const NestAxis& a : nest_.axes)
      if (!a.is_reduce && &a != p.m && &a != p.n) return a.is_known ? &a : nullptr;
    return nullptr;
  }

  int64_t wanted_chunks(const TileProduct& p) const {
    double products = double(p.k->size);
    for (const NestAxis& a : nest_.axes)
      if (!a.is_reduce && a.is_known) products *= double(a.size);
    return int64_t(std::clamp(products / double(products_a_chunk), 1.0, double(most_chunks)));
  }

  void share_out(int32_t axis, int64_t size, int64_t wanted) {
    if (!target_.has_threads || std::min(wanted, size) < 2) return;
    const int64_t divisor = largest_divisor(size, wanted);
    push(OptOp::THREAD, axis, divisor * 2 > wanted ? divisor : std::min(wanted, size));
  }

  const UOp& sink_;
  const Nest& nest_;
  const Target& target_;
  std::vector<Opt> opts_;
};

}  // namespace

std::vector<Opt> tile_heuristic(const UOp& sink, const Nest& nest, const Target& target) { return TileChoice(sink, nest, target).run(); }

}  // namespace tinygrad::codegen
