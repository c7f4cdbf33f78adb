#include "codegen/choose/access_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/kernel_axes.h"
#include "codegen/late/vectorize_lanes.h"
#include "shape/ranges.h"
#include "symbolic/gated.h"
#include "symbolic/linear.h"
#include "target/costs.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

/// The part of an axis' vectors in which some lanes are masked by a clause: those around the places where a bound on the axis may lie.
double masked_part(const CpuNest& in, UOp clause, const Lane& l) {
  const NestAxis& a = in.axis(l.axis);
  if (clause.is(Op::CMPNE) && is_const(clause.src(1), 1)) clause = UOp(clause.src(0));
  if (!clause.is(Op::CMPLT) || clause.src(0).dtype() != DType::index) return 1;
  const auto sum = symbolic::difference(clause.src(0), clause.src(1));
  if (!sum) return 1;
  int64_t factor = 0;
  symbolic::Linear rest;
  for (const symbolic::Term& t : sum->terms)
    if (t.node == a.range)
      factor = std::abs(t.factor);
    else if (is_open_over(t.node, std::span(&a.range, 1)) || !rest.add(t.node, t.factor))
      return 1;
  if (factor == 0) return 1;
  const symbolic::Bounds places = rest.bounds();
  const double vectors = std::ceil(double(a.size) / double(l.lanes)), spread = (double(places.max) - double(places.min)) / double(factor);
  return std::min(1.0, (1 + spread / double(l.lanes)) / vectors);
}

constexpr double gate_branch = 2, gate_mask = 4;

/// Cycles of an access's gate. A gate that differs between lanes is a mask.
double gate_cost(const CpuNest& in, const NestedWork& w, const Lanes& lanes) {
  if (!w.is_access || w.node.src(0).src_count() < 3) return 1;
  const UOp& gate = w.node.src(0).src(2);
  const auto moves = [&](const Lane& l) { return is_open_over(gate, std::span(&in.axis(l.axis).range, 1)); };
  return std::any_of(lanes.begin(), lanes.end(), moves) ? gate_mask : gate_branch;
}

/// Cycles for each element where each lane along the axis is another access, and shuffles. If each is stored to a cache line of its own,
/// the first cache has evicted the line before the next element of it is stored; lines of other pages are in the same of its sets, too.
double one_a_lane(const CpuNest& in, const NestedWork& w, const NestAxis& along) {
  constexpr double anywhere = 2, to_lines = 4, to_pages = 12;
  if (!w.node.is(Op::STORE)) return anywhere;
  const MemoryCosts& costs = general_costs().memory;
  const auto stride = stride_of(w.node.src(0).src(1), along.range);
  const int64_t bytes = stride ? std::abs(*stride) * in.nest.item_bytes : 0;
  return bytes >= costs.page_bytes ? to_pages : bytes >= costs.line_bytes ? to_lines : anywhere;
}

/// True for a factor that lies as a tensor core reads it: the terms that it adds at once, for one column behind the other.
bool lies_as_read(const NestedWork& w, const Lanes& lanes) {
  if (!lanes.core || !w.is_access) return false;
  const Lane &n = lanes.core->n, &k = lanes.core->k;
  return w.strides[size_t(k.axis)] == 1 && w.strides[size_t(n.axis)] == k.lanes;
}

/// The factor of accesses along rows that are no whole vectors: masks, in the last iteration alone if it is taken out of the loop
/// (peel_ends.h).
double masked_end(const NestedWork& w, int axis, int64_t left_over, int64_t rounds) {
  if (left_over == 0) return 1;
  const bool is_innermost = int(std::bit_width(w.inside)) == axis + 1;
  return 1 + 0.5 / double(is_innermost ? rounds : 1);
}

/// The vectors for an element of their axis; some of the last one's lanes may be masked.
double vectors_of(const CpuNest& in, const Lane& l) {
  const double size = double(in.axis(l.axis).size);
  return std::ceil(size / double(l.lanes)) / size;
}

/// Registers of a vector of these values: two for wide ones where lanes are chosen for narrower ones.
double registers_of(const CpuNest& in, const NestedWork& w, const Lanes& lanes) {
  if (lanes.core || in.target.vector_bits == 0 || !is_wide(w)) return 1;
  return std::max(1.0, double(lanes.widest() * 64) / double(in.target.vector_bits));
}

double join_cost(const CpuNest& in, const Lane& l) {
  double outputs = 0;
  for (const NestedWork& w : in.nest.works)
    if (w.node.is(Op::REDUCE) && has_axis(w.depends, l.axis)) {
      double trips = 1;
      for (size_t i = 0; i < in.axes(); ++i)
        if (has_axis(w.inside, int(i)) && !in.axis(int(i)).is_reduce) trips *= double(in.axis(int(i)).size);
      outputs += trips;
    }
  return outputs * 4 * std::log2(double(l.lanes));
}

}  // namespace

bool is_every_few(const NestedWork& w, const Lane& l) {
  const int64_t stride = w.strides[size_t(l.axis)];
  return stride > 1 && stride <= most_apart;
}

double share_of_known_masks(const CpuNest& in, const NestedWork& w, const Lanes& lanes) {
  if (!w.node.is(Op::LOAD) || w.node.src(0).src_count() < 3) return 1;
  double masked = 0;
  for (const UOp& clause : symbolic::clauses_of(w.node.src(0).src(2)))
    for (const Lane& l : lanes)
      if (is_open_over(clause, std::span(&in.axis(l.axis).range, 1))) masked += masked_part(in, clause, l);
  return masked > 0 && masked < 1 ? (1 + masked) / gate_mask : 1;
}

double share_as_it_lies(const CpuNest& in, const NestedWork& w, const Lanes& lanes) {
  double left = gate_cost(in, w, lanes) * registers_of(in, w, lanes);
  for (const Lane& l : lanes) {
    if (!has_axis(w.inside, l.axis)) continue;
    const NestAxis& a = in.axis(l.axis);
    const int64_t rounds = (a.size + l.lanes - 1) / l.lanes;
    const double vectors = vectors_of(in, l);
    if (!w.is_access || !has_axis(w.depends, l.axis) || lies_as_read(w, lanes)) {
      left *= vectors;
    } else if (w.strides[size_t(l.axis)] == 1) {
      left *= vectors * masked_end(w, l.axis, a.size % l.lanes, rounds);
    } else if (w.node.is(Op::LOAD) && is_every_few(w, l)) {
      left *= vectors * double(2 + w.strides[size_t(l.axis)]);  // accesses of the run, and shuffles
    } else {
      left *= one_a_lane(in, w, a);
    }
  }
  return left;
}

double share_of(const PlannedLoops& loops, const NestedWork& w, const Lanes& lanes) {
  if (lanes.core && std::find(lanes.core->casts.begin(), lanes.core->casts.end(), w.node) != lanes.core->casts.end()) return 0;
  if (lanes.core && w.node.is(Op::REDUCE)) return (lanes.core->steps - 1) * share_as_it_lies(loops.in, w, lanes);  // beside the product
  if (!loops.is_staged(w)) return share_as_it_lies(loops.in, w, lanes);
  double left = 1;
  for (const Lane& l : lanes)
    if (has_axis(w.inside, l.axis)) left *= vectors_of(loops.in, l);
  return left;
}

BoundedWork::BoundedWork(const CpuNest& in, const Lanes& lanes, const Tile& t) {
  if (!in.has_bounds) return;
  for (size_t i = 0; i < in.axes(); ++i) {
    const NestAxis& loop = in.axis(int(i));
    if (loop.bounds.empty()) continue;
    const int along = loop.bounds[0].along;
    const int64_t at_once = lanes.along(along) * t.along(along);
    loops_.emplace_back(uint64_t{1} << i, in.unmasked_part(loop, at_once) / in.unmasked_part(loop, 1));
  }
}

double joins(const CpuNest& in, const Lanes& lanes) {
  double sum = 0;
  for (const Lane& l : lanes)
    if (in.axis(l.axis).is_reduce && !lanes.core) sum += join_cost(in, l);
  return sum;
}

double joins(const CpuNest& in, const Lanes& lanes, const Tile& t) {
  double sum = 0;
  for (const Lane& l : lanes)
    if (in.axis(l.axis).is_reduce && !lanes.core) sum += join_cost(in, l) / std::min(double(t.copies()), 2 * std::log2(double(l.lanes)));
  return sum;
}

double work_of(const PlannedLoops& loops, const Lanes& lanes) {
  const BoundedWork bounded(loops.in, lanes, {});
  double sum = 0;
  for (const WorkPart& p : loops.in.parts)
    if (const NestedWork& w = *p.work; !loops.is_in_fill(w)) sum += p.cost * w.trips * share_of(loops, w, lanes) * bounded.of(w);
  return sum + joins(loops.in, lanes);
}

}  // namespace tinygrad::codegen
