#include "codegen/choose/cpu_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/quotient.h"
#include "codegen/kernel_axes.h"
#include "codegen/late/vectorize_lanes.h"
#include "codegen/lower/bound_loops.h"
#include "shape/ranges.h"

namespace tinygrad::codegen {

namespace {

constexpr double compile_cycles = 4;  // of an operation, spread over tens of thousands of runs

}  // namespace

CpuCost::CpuCost(const Nest& nest, const Target& target)
    : nest_(nest),
      target_(target),
      reduce_axes_(reduce_axes_of(nest)),
      parts_(work_parts()),
      reduces_(reduce_parts()),
      uses_once_(uses_once()) {}

uint64_t CpuCost::reduce_axes_of(const Nest& nest) {
  uint64_t bits = 0;
  for (size_t i = 0; i < nest.axes.size(); ++i)
    if (nest.axes[i].is_reduce) bits |= uint64_t{1} << i;
  return bits;
}

std::vector<WorkPart> CpuCost::work_parts() const {
  std::vector<WorkPart> out;
  std::map<std::array<uint64_t, 5>, size_t> alike;
  for (const NestedWork& w : nest_.works) {
    const bool alone = w.is_access || w.node.is(Op::REDUCE) || w.node.is(Op::CAST);  // tensor cores do without some of the casts
    const auto [at, is_new] =
        alone ? std::pair(alike.end(), true) : alike.try_emplace({w.inside, w.depends, w.chosen, w.computed, w.gates}, out.size());
    if (!is_new) {
      out[at->second].cost += w.cost;
      ++out[at->second].count;
      continue;
    }
    WorkPart p{.work = &w, .cost = w.cost, .count = 1, .innermost = w.inside ? int(std::bit_width(w.inside)) - 1 : -1};
    if (w.is_access && has(w.depends, p.innermost)) {
      const auto stride = stride_of(w.node.src(0).src(1), nest_.axes[size_t(p.innermost)].range);
      p.is_close = stride && std::abs(*stride) <= 1;
    }
    if (w.node.is(Op::REDUCE))
      p.beside = std::ranges::count_if(
          nest_.works, [&](const NestedWork& other) { return other.node.is(Op::REDUCE) && (w.inside & other.inside & reduce_axes_); });
    out.push_back(p);
  }
  return out;
}

std::vector<ReducePart> CpuCost::reduce_parts() const {
  std::map<std::pair<uint64_t, uint64_t>, ReducePart> parts;
  for (const NestedWork& w : nest_.works) {
    if (!w.node.is(Op::REDUCE)) continue;
    const ReducePart one = reduce_part(w, w.inside & reduce_axes_);
    ReducePart& p = parts.try_emplace({one.loops, one.depends}, ReducePart{one.loops, one.depends}).first->second;
    p.count += one.count;
    p.carried += one.carried;
  }
  std::vector<ReducePart> out;
  for (const auto& [key, p] : parts) out.push_back(p);
  return out;
}

ReducePart CpuCost::reduce_part(const NestedWork& w, uint64_t loops) {
  return {loops, w.depends, 1, is_general_reduce(w.node) ? int64_t(w.node.src(1).src_count()) - 1 : 0};
}

bool CpuCost::has(uint64_t bits, int axis) { return axis >= 0 && (bits >> axis & 1); }

bool CpuCost::is_near(const NestedWork& w) const {
  return (w.argument & near_) && (outer_steps_ <= 1 || !has(w.depends, nest_.joined_axis));
}

bool CpuCost::is_reduced(const NestedWork& w) const {
  return w.is_access && w.node.is(Op::LOAD) && w.argument && (w.inside & reduce_axes());
}

uint64_t CpuCost::reuse_axes(const NestedWork& w) const { return w.inside & ~w.depends & ~reduce_axes(); }

bool CpuCost::uses_once() const {
  return std::ranges::none_of(nest_.works, [&](const NestedWork& w) { return is_reduced(w) && reuse_axes(w) != 0; });
}

int64_t CpuCost::most_steps(std::span<const int> axes, int64_t most) const {
  const auto fits = [&](int i, int64_t n) { return left_[size_t(i)] > n && left_[size_t(i)] % n == 0; };
  int64_t n = std::max<int64_t>(most, 1);
  while (n > 1 && !std::ranges::all_of(axes, [&](int i) { return fits(i, n); })) --n;
  return n;
}

int64_t CpuCost::steps_at_once(const NestedWork& reduce, const Tile& t) const {
  int innermost = -1;
  for (size_t i = 0; i < nest_.axes.size(); ++i)
    if (nest_.axes[i].is_reduce && has(reduce.inside, int(i))) innermost = int(i);
  if (innermost < 0 || !uses_once_) return 1;
  return left_[size_t(innermost)] <= 8 ? left_[size_t(innermost)] : most_steps(std::span(&innermost, 1), most_accumulators / t.copies());
}

uint64_t CpuCost::near_axes() const {
  if (near_ == 0 || outer_steps_ <= 1)
    if (near_ == near_axes_of_) return near_axes_;
  uint64_t bits = 0;
  for (const NestedWork& w : nest_.works)
    if (is_near(w)) bits |= w.depends;
  if (outer_steps_ <= 1) near_axes_of_ = near_, near_axes_ = bits;
  return bits;
}

int64_t CpuCost::outer_trips(int axis) const {
  if (!has(outer_, axis)) return 1;
  const int64_t size = nest_.axes[size_t(axis)].size;
  return block_ && outer_ >> axis == 1 ? size / block_ : size;
}

int64_t CpuCost::copies_of(int axis) const {
  return (tile_.axis[0] == axis ? tile_.count[0] : 1) * (tile_.axis[1] == axis ? tile_.count[1] : 1);
}

int64_t CpuCost::lanes_of(int axis) const {
  for (const Lane& l : lanes_)
    if (l.axis == axis) return l.lanes;
  return 1;
}

double CpuCost::work_with(const Lanes& lanes) const {
  double sum = 0;
  for (const WorkPart& p : parts_)
    if (const NestedWork& w = *p.work; !is_in_fill(w)) sum += p.cost * w.trips * share(w, lanes) * idle_work(w, lanes, {});
  return sum + joins(lanes);
}

double CpuCost::idle_work(const NestedWork& w, const Lanes& lanes, const Tile& t) const {
  double more = 1;
  for (size_t i = 0; i < nest_.axes.size(); ++i) {
    const NestAxis& loop = nest_.axes[i];
    if (loop.bounds.empty() || !has(w.inside, int(i))) continue;
    int64_t at_once = 1;
    for (const Lane& l : lanes)
      if (l.axis == loop.bounds[0].along) at_once *= l.lanes;
    for (int k = 0; k < 2; ++k)
      if (t.axis[k] == loop.bounds[0].along) at_once *= t.count[k];
    more *= kept(loop, at_once) / kept(loop, 1);
  }
  return more;
}

double CpuCost::kept(const NestAxis& loop, int64_t at_once) const {
  double& known = kept_[{&loop, at_once}];
  if (known > 0) return known;
  const int64_t size = nest_.axes[size_t(loop.bounds[0].along)].size;
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

double CpuCost::joins(const Lanes& lanes) const {
  double sum = 0;
  for (const Lane& l : lanes)
    if (nest_.axes[size_t(l.axis)].is_reduce && !lanes.core) sum += join_cost(l);
  return sum;
}

double CpuCost::joins_together(const Tile& t) const {
  double sum = 0;
  for (const Lane& l : lanes_)
    if (nest_.axes[size_t(l.axis)].is_reduce && !lanes_.core)
      sum += join_cost(l) / std::min(double(t.copies()), 2 * std::log2(double(l.lanes)));
  return sum;
}

double CpuCost::join_cost(const Lane& l) const {
  double outputs = 0;
  for (const NestedWork& w : nest_.works)
    if (w.node.is(Op::REDUCE) && has(w.depends, l.axis)) {
      double trips = 1;
      for (size_t i = 0; i < nest_.axes.size(); ++i)
        if (has(w.inside, int(i)) && !nest_.axes[i].is_reduce) trips *= double(nest_.axes[i].size);
      outputs += trips;
    }
  return outputs * 4 * std::log2(double(l.lanes));
}

double CpuCost::share(const NestedWork& w, const Lanes& lanes) const {
  if (lanes.core && std::find(lanes.core->casts.begin(), lanes.core->casts.end(), w.node) != lanes.core->casts.end()) return 0;
  if (!is_staged(w)) return share_as_it_lies(w, lanes);
  double left = 1;
  for (const Lane& l : lanes)
    if (has(w.inside, l.axis)) left /= double(l.lanes);
  return left;
}

bool CpuCost::stores_to_lines(const NestedWork& w, const NestAxis& along) const {
  if (!w.node.is(Op::STORE)) return false;
  const auto stride = stride_of(w.node.src(0).src(1), along.range);
  return stride && std::abs(*stride) * nest_.item_bytes >= line_bytes;
}

double CpuCost::share_as_it_lies(const NestedWork& w, const Lanes& lanes) const {
  double left = gate_cost(w, lanes);
  for (const Lane& l : lanes) {
    if (!has(w.inside, l.axis)) continue;
    const NestAxis& a = nest_.axes[size_t(l.axis)];
    const int64_t rounds = (a.size + l.lanes - 1) / l.lanes;
    const double vectors = double(rounds) / double(a.size);
    if (!w.is_access || !has(w.depends, l.axis)) {
      left *= vectors;
    } else if (w.strides[size_t(l.axis)] == 1) {
      left *= vectors * (a.size % l.lanes ? 1.5 : 1);  // the end of a row is masked, if it is no whole vector
    } else if (w.node.is(Op::LOAD) && is_every_few(w, l)) {
      left *= vectors * double(1 + w.strides[size_t(l.axis)]);  // accesses of the run, and a shuffle
    } else {
      left *= stores_to_lines(w, a) ? 4 : 2;  // one access a lane, and shuffles
    }
  }
  return left;
}

bool CpuCost::is_every_few(const NestedWork& w, const Lane& l) {
  const int64_t stride = w.strides[size_t(l.axis)];
  return stride > 1 && stride <= most_apart;
}

double CpuCost::share_of_run(const NestedWork& w, const Tile& t) const {
  if (!w.node.is(Op::STORE)) return 1;
  for (const Lane& l : lanes_)
    for (int i = 0; i < 2; ++i)
      if (has(w.depends, l.axis) && has(w.depends, t.axis[i]) && is_every_few(w, l) && w.strides[size_t(t.axis[i])] == 1 &&
          t.count[i] == w.strides[size_t(l.axis)])
        return 1 / double(l.lanes);
  return 1;
}

double CpuCost::gate_cost(const NestedWork& w, const Lanes& lanes) const {
  if (!w.is_access || w.node.src(0).src_count() < 3) return 1;
  const UOp& gate = w.node.src(0).src(2);
  const auto moves = [&](const Lane& l) { return is_open_over(gate, std::span(&nest_.axes[size_t(l.axis)].range, 1)); };
  return std::any_of(lanes.begin(), lanes.end(), moves) ? 4 : 2;
}

bool CpuCost::fits(const Tile& t) const {
  if (is_joined()) return t.copies() <= (t.axis[1] < 0 ? most_kept_results : most_kept_results / 2);  // spills() has the price
  return accumulators(t) * registers_each() + vectors_of_step(t) * registers_each() + 1 <= registers();
}

int64_t CpuCost::vectors_of_step(const Tile& t) const {
  int64_t along = 0;
  for (int i = 0; i < 2; ++i)
    if (lanes_of(t.axis[i]) > 1) along = t.count[i];
  return along ? along : std::min(t.count[0], t.count[1]);
}

int64_t CpuCost::registers() const { return std::max(8, target_.vector_registers); }

int64_t CpuCost::registers_each() const {
  const int64_t bits = widest() * nest_.item_bytes * 8;
  return target_.vector_bits ? std::max<int64_t>(1, bits / target_.vector_bits) : 1;
}

int64_t CpuCost::accumulators(const ReducePart& r, const Tile& t) {
  int64_t copies = r.count;
  for (int i = 0; i < 2; ++i)
    if (has(r.depends, t.axis[i])) copies *= t.count[i];
  return copies + r.carried;
}

int64_t CpuCost::accumulators(const Tile& t) const {
  int64_t most = t.copies();
  for (const ReducePart& r : reduces_) {
    int64_t sum = 0;
    for (const ReducePart& other : reduces_)
      if (r.loops & other.loops) sum += accumulators(other, t);
    most = std::max(most, sum);
  }
  return most;
}

int64_t CpuCost::widest() const {
  int64_t n = 1;
  for (const Lane& l : lanes_) n = std::max(n, l.lanes);
  return n;
}

double CpuCost::held(int axis, const Tile& t) const {
  return double(lanes_of(axis) * (t.axis[0] == axis ? t.count[0] : 1) * (t.axis[1] == axis ? t.count[1] : 1));
}

double CpuCost::masked_work(const NestedWork& w, const Tile& t) const {
  double more = 1;
  for (int i = 0; i < 2; ++i) {
    if (!has(w.inside, t.axis[i])) continue;
    const int64_t size = left_[size_t(t.axis[i])], n = t.count[i], computed = (size + n - 1) / n * n;
    more *= double(computed) / double(size);
  }
  return more;
}

double CpuCost::tile_cost(const Tile& t) const {
  double sum = 0;
  for (const WorkPart& p : parts_) {
    const NestedWork& w = *p.work;
    if (is_in_fill(w)) continue;
    double c = p.cost * w.trips * (stays(w) ? share_of_kept(w) : share(w, lanes_) * share_of_run(w, t)) *
               (w.is_access ? line_cost(p, t) : 1) * masked_work(w, t) * idle_work(w, lanes_, t);
    for (int i = 0; i < 2; ++i)
      if (has(w.inside, t.axis[i]) && (!has(w.depends, t.axis[i]) || is_known(w, t, i))) c /= double(t.count[i]);
    // A step of a reduction waits for the one before, unless independent accumulators hide the latency.
    if (w.node.is(Op::REDUCE)) c *= std::max(1.0, independent_operations / double(t.copies() * p.beside * steps_at_once(w, t)));
    sum += c + spills(w, t);
  }
  sum = std::max(sum, near_traffic(t));
  sum += is_joined() ? joins(lanes_) : traffic(t) + far_pieces(t) + far_streams(t) + joins_together(t);
  // Copies that share nothing still save loop overhead: one cycle an iteration.
  return sum + innermost_trips() / double(t.copies()) + code_cost(t);
}

bool CpuCost::is_known(const NestedWork& w, const Tile& t, int i) const {
  return has(w.chosen, t.axis[i]) && t.count[i] == nest_.axes[size_t(t.axis[i])].size;
}

double CpuCost::code_cost(const Tile& t) const {
  double more = 0;
  for (const WorkPart& p : parts_) {
    int64_t copies = 1;
    for (int i = 0; i < 2; ++i)
      if (has(p.work->depends, t.axis[i])) copies *= t.count[i];
    more += double(p.count * (copies - 1));
  }
  return more * compile_cycles;
}

double CpuCost::line_cost(const WorkPart& p, const Tile& t) const {
  const NestedWork& w = *p.work;
  if (is_windowed(w)) {
    const auto neighbours = [&](int axis) { return axis >= 0 && std::abs(w.strides[size_t(axis)]) == 1; };
    return neighbours(t.axis[0]) || neighbours(t.axis[1]) ? 0.5 : 0.65;  // copies share a line of the window, or have one each
  }
  if (is_staged(w)) return 0.5;
  if (is_near(w)) return is_dense(w, t) ? 0.5 : 0.9 + 1.1 / uses(w, t);
  if (!has(w.depends, p.innermost)) return 1;
  if (p.is_close) return 0.5;
  double shared = 1;
  for (int i = 0; i < 2; ++i)
    if (t.axis[i] >= 0 && w.strides[size_t(t.axis[i])] == 1) shared = double(t.count[i]);
  const bool vector = std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return has(w.depends, l.axis); });
  const double vectors_a_line = std::max(1.0, double(line_bytes) / double((vector ? widest() : 1) * nest_.item_bytes));
  return 0.5 + 1.5 / std::min(shared, vectors_a_line);
}

double CpuCost::uses(const NestedWork& w, const Tile& t) const {
  double n = 1;
  for (size_t i = 0; i < nest_.axes.size(); ++i)
    if (!nest_.axes[i].is_reduce && has(w.inside, int(i)) && !has(w.depends, int(i)))
      n *= std::max(1.0, double(nest_.axes[i].size) / held(int(i), t));
  return n;
}

double CpuCost::innermost_trips() const {
  double most = 0;
  for (const WorkPart& p : parts_)
    if (!p.work->is_access) most = std::max(most, p.work->trips * share(*p.work, lanes_));
  return most;
}

bool CpuCost::is_joined() const { return nest_.joined_axis >= 0; }

double CpuCost::spills(const NestedWork& w, const Tile& t) const {
  if (!is_joined() || !w.node.is(Op::REDUCE)) return 0;
  const int64_t held = accumulators(reduce_part(w, 0), t) * registers_each();
  return held <= registers() ? 0 : 2 * w.trips * share(w, lanes_) * (1 - double(registers()) / double(held));
}

bool CpuCost::stays(const NestedWork& w) const {
  if (!is_joined() || !w.is_access || !has(w.inside, nest_.joined_axis) || has(w.depends, nest_.joined_axis)) return false;
  for (size_t i = 0; i < nest_.axes.size(); ++i)
    if (has(w.depends, int(i)) && nest_.axes[i].is_reduce && !is_written_out(int(i))) return false;
  return true;
}

double CpuCost::share_of_kept(const NestedWork& w) const {
  double vectors = 1;
  for (const Lane& l : lanes_)
    if (has(w.inside, l.axis)) vectors /= double(l.lanes);
  return vectors + share(w, lanes_) / double(nest_.axes[size_t(nest_.joined_axis)].size);
}

bool CpuCost::is_written_out(int axis) const {
  return is_joined() && axis > nest_.joined_axis && nest_.axes[size_t(axis)].is_reduce && left_[size_t(axis)] <= most_kept_results;
}

}  // namespace tinygrad::codegen
