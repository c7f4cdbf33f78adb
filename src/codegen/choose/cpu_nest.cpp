#include "codegen/choose/cpu_nest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/quotient.h"
#include "codegen/kernel_axes.h"
#include "codegen/lower/bound_loops.h"
#include "codegen/lower/repeated_terms.h"
#include "shape/ranges.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

uint64_t reduce_axes_of(const Nest& nest) {
  uint64_t bits = 0;
  for (size_t i = 0; i < nest.axes.size(); ++i)
    if (nest.axes[i].is_reduce) bits |= uint64_t{1} << i;
  return bits;
}

std::vector<WorkPart> work_parts(const Nest& nest, uint64_t reduce_axes) {
  std::vector<WorkPart> out;
  std::map<std::array<uint64_t, 6>, size_t> alike;
  for (const NestedWork& w : nest.works) {
    const bool alone = w.is_access || w.node.is(Op::REDUCE) || w.node.is(Op::CAST);  // tensor cores do without some of the casts
    const auto [at, is_new] =
        alone ? std::pair(alike.end(), true)
              : alike.try_emplace({w.inside, w.depends, w.chosen, w.computed, w.gates, uint64_t(is_wide(w))}, out.size());
    if (!is_new) {
      out[at->second].cost += w.cost;
      ++out[at->second].count;
      continue;
    }
    WorkPart p{.work = &w, .cost = w.cost, .count = 1, .innermost = w.inside ? int(std::bit_width(w.inside)) - 1 : -1};
    if (w.is_access && has_axis(w.depends, p.innermost)) {
      const auto stride = stride_of(w.node.src(0).src(1), nest.axes[size_t(p.innermost)].range);
      p.is_close = stride && std::abs(*stride) <= 1;
    }
    if (w.node.is(Op::REDUCE))
      p.beside = std::ranges::count_if(
          nest.works, [&](const NestedWork& other) { return other.node.is(Op::REDUCE) && (w.inside & other.inside & reduce_axes); });
    out.push_back(p);
  }
  return out;
}

std::vector<int64_t> operations_along_axes(const std::vector<WorkPart>& parts, size_t axes) {
  std::vector<int64_t> out(axes * axes);
  for (const WorkPart& p : parts)
    for (size_t a = 0; a < axes; ++a)
      for (size_t b = 0; b < axes; ++b)
        if (has_axis(p.work->depends, int(a)) && has_axis(p.work->depends, int(b))) out[a * axes + b] += p.count;
  return out;
}

std::vector<ReducePart> reduce_parts(const Nest& nest, uint64_t reduce_axes) {
  std::map<std::pair<uint64_t, uint64_t>, ReducePart> parts;
  for (const NestedWork& w : nest.works) {
    if (!w.node.is(Op::REDUCE)) continue;
    const ReducePart one = reduce_part(w, w.inside & reduce_axes);
    ReducePart& p = parts.try_emplace({one.loops, one.depends}, ReducePart{one.loops, one.depends}).first->second;
    p.count += one.count;
    p.carried += one.carried;
  }
  std::vector<ReducePart> out;
  for (const auto& [key, p] : parts) out.push_back(p);
  return out;
}

bool is_reduced_load_of(const NestedWork& w, uint64_t reduce_axes) {
  return w.is_access && w.node.is(Op::LOAD) && w.argument && (w.inside & reduce_axes);
}

/// The axes that these opts are of; of LANE alone, if `lanes`.
uint64_t axes_of(const Nest& nest, std::span<const Opt> opts, bool lanes) {
  uint64_t bits = 0;
  for (size_t i = 0; i < nest.axes.size(); ++i)
    for (const Opt& opt : opts)
      if (opt.axis == nest.axes[i].number && (!lanes || opt.op == OptOp::LANE)) bits |= uint64_t{1} << i;
  return bits;
}

}  // namespace

CpuNest::CpuNest(const Nest& of, const Target& on, AroundNest kernel)
    : nest(of),
      target(on),
      around(std::move(kernel)),
      reduce_axes(reduce_axes_of(of)),
      parts(work_parts(of, reduce_axes)),
      reduces(reduce_parts(of, reduce_axes)),
      uses_once(
          std::ranges::none_of(of.works, [&](const NestedWork& w) { return is_reduced_load_of(w, reduce_axes) && reuse_axes(w) != 0; })),
      has_bounds(std::ranges::any_of(of.axes, [](const NestAxis& a) { return !a.bounds.empty(); })),
      taken(axes_of(of, around.chosen, false)),
      vectors(axes_of(of, around.chosen, true)),
      rates(on),
      independent(independent_operations(on)),
      operations_(operations_along_axes(parts, of.axes.size())) {}

bool CpuNest::is_reduced_load(const NestedWork& w) const { return is_reduced_load_of(w, reduce_axes); }

bool CpuNest::has_window(const NestedWork& w) const {
  const auto is_reduce = [&](const AxisStep& s) { return axis(s.axis).is_reduce; };
  return std::ranges::any_of(
      w.windows, [&](const auto& steps) { return std::ranges::any_of(steps, is_reduce) && !std::ranges::all_of(steps, is_reduce); });
}

bool CpuNest::meet(int a, int b) const {
  return std::ranges::any_of(parts, [&](const WorkPart& p) { return has_axis(p.work->depends, a) && has_axis(p.work->depends, b); });
}

bool CpuNest::meets_vectors(int a) const {
  for (size_t i = 0; i < axes(); ++i)
    if (has_axis(vectors, int(i)) && meet(a, int(i))) return true;
  return false;
}

bool CpuNest::reuses_terms(int i) const { return has_axis(nest.repeated, i) && axis(i).size * nest.item_bytes <= most_kept_bytes(target); }

int64_t CpuNest::registers() const { return std::max(8, target.vector_registers); }

double CpuNest::unmasked_part(const NestAxis& loop, int64_t at_once) const {
  double& known = unmasked_[{&loop, at_once}];
  if (known > 0) return known;
  const int64_t size = axis(loop.bounds[0].along).size;
  double sum = 0, rounds = 0;
  for (int64_t first = 0; first < size; first += at_once, ++rounds) {
    int64_t begin = 0, end = loop.size;
    for (const LoopBound& b : loop.bounds) {
      const int64_t rest = b.constant + b.stride * (b.stride > 0 ? std::min(first + at_once, size) - 1 : first);
      if (b.step < 0) {
        end = std::min(end, floor_quotient(rest, -b.step) + 1);
      } else {
        begin = std::max(begin, -floor_quotient(rest, b.step));
      }
    }
    sum += double(std::max<int64_t>(0, end - begin));
  }
  const double part = sum / (rounds * double(loop.size));
  return known = part > worth_bounding ? 1 : std::max(part, 1e-6);
}

ReducePart reduce_part(const NestedWork& w, uint64_t loops) {
  return {loops, w.depends, 1, is_general_reduce(w.node) ? int64_t(w.node.src(1).src_count()) - 1 : 0};
}

int64_t accumulators(const ReducePart& r, const Tile& t) {
  int64_t copies = r.count;
  for (int i = 0; i < 2; ++i)
    if (has_axis(r.depends, t.axis[i])) copies *= t.count[i];
  return copies + r.carried;
}

bool CpuNest::may_stage(const NestedWork& w) const {
  for (size_t i = 0; i < axes(); ++i)
    if (has_axis(w.depends, int(i)) && axis(int(i)).is_reduce && !axis(int(i)).is_known) return false;
  if (size_t(std::popcount(w.depends)) != ranges_of(w.node).size()) return false;
  const auto nodes = toposort(w.node.src(0));
  return std::none_of(nodes.begin(), nodes.end(), [](const UOp& u) { return u.is(Op::LOAD) || u.is(Op::REDUCE); });
}

}  // namespace tinygrad::codegen
