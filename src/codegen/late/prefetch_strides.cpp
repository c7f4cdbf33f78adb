#include "codegen/late/prefetch_strides.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include "codegen/kernel_axes.h"
#include "kernel/accessed_memory.h"
#include "shape/shape.h"
#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t least_stride = 1 << 10;      ///< bytes; with shorter strides a page has several of the loads
constexpr int64_t instructions_ahead = 400;    ///< that run in the time that memory takes
constexpr int64_t most_iterations_ahead = 32;  ///< of short loops, since lines would be evicted before they are used
constexpr size_t instructions_a_prefetch = 6;  ///< that the loop must have
constexpr int64_t shortest_loop = 2;           ///< its iterations, divided by those that are fetched ahead

/// An innermost loop of a reduction, without branches: places in the program.
struct Loop {
  size_t begin = 0, end = 0;
  size_t work() const { return end - begin; }
  int64_t iterations_ahead() const { return std::min(most_iterations_ahead, instructions_ahead / int64_t(work()) + 1); }
};

std::vector<Loop> innermost_reductions(std::span<const UOp> list) {
  std::vector<Loop> out;
  size_t begin = 0;
  bool open = false;  // whether the last loop has no loop inside so far
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is(Op::RANGE)) {
      open = list[i].arg_as<RangeArg>().kind == AxisKind::reduce;
      begin = i;
    } else if (list[i].is(Op::IF)) {
      open = false;  // what is computed inside is not known behind it
    } else if (list[i].is(Op::END)) {
      if (open) out.push_back({begin, i});
      open = false;
    }
  }
  return out;
}

/// An argument up to this size stays in the caches beside the kernel's others, and needs no prefetches.
int64_t near_bytes(const Target& target) { return std::max(target.l2_bytes, target.l3_bytes / 2); }

/// The place of a load that many iterations ahead, if the load strides far; null otherwise.
UOp place_ahead(const UOp& load, const UOp& range, int64_t iterations, const Target& target) {
  const UOp &place = load.src(0), memory = memory_of(place);
  if (place.src_count() != 2 || !shape_of(place.src(1)).empty() || memory_bytes(memory) <= near_bytes(target)) return {};
  const auto stride = stride_of(place.src(1), range);
  const auto size = int64_t(itemsize(place.dtype()));
  if (!stride || std::abs(*stride) * size < least_stride) return {};
  const DType type = place.src(1).dtype();
  const int64_t furthest = memory_bytes(memory) / size + iterations * std::abs(*stride);
  if (type != DType::int64 && furthest > std::numeric_limits<int32_t>::max()) return {};
  return place.with_src(UOps{place.src(0), place.src(1) + constant(type, double(iterations * *stride))});
}

/// What to fetch in each iteration of a loop.
UOps places_ahead(std::span<const UOp> list, const Loop& loop, const Target& target) {
  const UOp& range = list[loop.begin];
  const Scalar* trips = const_value(range.src(0));
  UOps places;
  if (trips && trips->as_int() < shortest_loop * loop.iterations_ahead()) return places;
  NodeSet known;
  for (size_t i = loop.begin; i < loop.end; ++i)
    if (list[i].is(Op::LOAD))
      if (const UOp place = place_ahead(list[i], range, loop.iterations_ahead(), target); place && known.insert(place))
        places.push_back(place);
  if (loop.work() < instructions_a_prefetch * places.size()) places.clear();
  return places;
}

}  // namespace

UOp prefetch_strides(const UOp& linear, const Target& target) {
  if (!target.has_cache_hints) return linear;
  const std::span<const UOp> list = linear.src();
  UOps out;
  NodeSet there;
  const auto put = [&](const UOp& u) {
    if (there.insert(u)) out.push_back(u);
  };
  size_t next = 0;
  for (const Loop& loop : innermost_reductions(list)) {
    const UOps places = places_ahead(list, loop, target);
    if (places.empty()) continue;
    while (next < loop.end) put(list[next++]);
    for (const UOp& place : places) {
      const UOp& at = place.src(1);
      for (const UOp& u : {at.src(0), at.src(1), at, place, UOp(Op::PREFETCH, DType::void_, {place})}) put(u);
    }
  }
  if (next == 0) return linear;
  while (next < list.size()) put(list[next++]);
  return linear.with_src(out);
}

}  // namespace tinygrad::codegen
