#include "codegen/prepare/part_wrapped_loads.h"

#include <optional>

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "codegen/split_range.h"
#include "shape/ranges.h"
#include "symbolic/linear.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t least_row = 8;  // elements that are worth vectors

/// Whether the index moves by one element at each step of a loop that is long enough.
bool steps_along_a_row(const UOp& at) {
  const OpenRanges open = ranges_of(at);
  return std::any_of(open.begin(), open.end(), [&](const UOp& r) {
    const auto stride = stride_of(at, r);
    return stride && std::abs(*stride) == 1 && constant_size(r) >= least_row;
  });
}

/// The quotient below the wrap, if n//c is it or the next.
std::optional<int64_t> lower_quotient(const UOp& remainder) {
  const Scalar* c = const_value(remainder.src(1));
  const symbolic::Bounds b = symbolic::bounds(remainder.src(0));
  if (!c || c->as_int() <= 0 || !b.has_min() || !b.has_max()) return std::nullopt;
  const auto quotient = [&](int64_t x) { return x / c->as_int() - (x % c->as_int() < 0); };
  return quotient(b.max) == quotient(b.min) + 1 ? std::optional(quotient(b.min)) : std::nullopt;
}

/// The index where n//c is a number.
UOp with_quotient(const UOp& at, const UOp& remainder, int64_t quotient) {
  const UOp &n = remainder.src(0), &c = remainder.src(1), quotient_of_both = floor_div(n, c);
  NodeMap<UOp> map;
  map[remainder] = n - c * quotient;
  map[quotient_of_both] = index_const(quotient);
  return symbolic::simplify_index(substitute(at, map));
}

/// Null if there is nothing to gain.
UOp parted(const UOp& load) {
  const UOp& place = load.src(0);
  if (load.src_count() != 1 || !place.is(Op::INDEX)) return {};
  const UOp& at = place.src(1);
  const auto sum = symbolic::linear(at);
  if (!sum || steps_along_a_row(at)) return {};
  for (const auto& t : sum->terms) {
    if (!t.node.is(Op::FLOORMOD) || (t.factor != 1 && t.factor != -1)) continue;
    const auto q = lower_quotient(t.node);
    if (!q) continue;
    const UOp first = with_quotient(at, t.node, *q), second = with_quotient(at, t.node, *q + 1);
    if (!steps_along_a_row(first) || !steps_along_a_row(second)) continue;
    const UOp below = symbolic::simplify_index(t.node.src(0) < t.node.src(1) * (*q + 1));
    const auto part = [&](const UOp& index, const UOp& valid) {
      UOps s(place.src().begin(), place.src().end());
      s[1] = index;
      const UOp masked = mask_index(place.with_src(s), valid);
      return load.with_src(UOps{masked.with_src(UOps{masked.src(0), masked.src(1), symbolic::simplify_index(masked.src(2))})});
    };
    return where(below, part(first, below), part(second, logical_not(below)));
  }
  return {};
}

}  // namespace

UOp part_wrapped_loads(const UOp& sink) {
  const auto nodes = borrowed_toposort(sink);
  const auto is_remainder = [](const UOp* u) { return u->is(Op::FLOORMOD) && u->dtype() == DType::index; };
  if (std::none_of(nodes.begin(), nodes.end(), is_remainder)) return sink;
  return rebuild(sink, [](const UOp& u, const UOps& sources) -> UOp {
    UOp same = u.with_src(sources);
    if (!u.is(Op::LOAD)) return same;
    const UOp parts = parted(same);
    return parts ? parts : same;
  });
}

}  // namespace tinygrad::codegen
