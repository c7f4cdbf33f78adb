// The costs of memory: filling panels and windows, reading them from a cache, and what the caches do not hold.
#include <algorithm>
#include <cmath>

#include "codegen/choose/cpu_cost.h"

namespace tinygrad::codegen {

namespace {

constexpr double l2_bytes_a_cycle = 32, l3_bytes_a_cycle = 16, memory_bytes_a_cycle = 4;
constexpr double l2_share = 0.75;  ///< the part of the second cache in which a panel stays while other data passes through
/// The processor fetches ahead in runs of at least so many contiguous bytes; the rate is that of shorter runs.
constexpr double long_run = 1024, short_run_bytes_a_cycle = 2;
/// Cycles that a vector's store takes longer where several rows are written at once that lie at least so far apart.
constexpr double far_store_cycles = 8;
constexpr int64_t least_far_bytes = 256;
constexpr double cycles_an_element = 3;  ///< to copy elements one by one

}  // namespace

double CpuCost::results_cost() const {
  if (!outer_) return 0;
  double vectors = 2;
  for (size_t i = 0; i < nest_.axes.size(); ++i)
    vectors *= nest_.axes[i].is_reduce ? double(outer_trips(int(i))) : double(nest_.axes[i].size) / double(lanes_of(int(i)));
  return vectors;
}

int64_t CpuCost::results_bytes() const {
  const uint64_t moves = near_axes();
  int64_t bytes = nest_.item_bytes;
  for (size_t i = 0; i < nest_.axes.size() && bytes <= target_.l2_bytes; ++i)
    if (!nest_.axes[i].is_reduce) bytes *= has(moves, int(i)) ? lanes_of(int(i)) * copies_of(int(i)) : nest_.axes[i].size;
  return bytes;
}

double CpuCost::fill_cost() const {
  double sum = 0;
  for (const NestedWork& w : nest_.works)
    if (is_staged(w) && !is_windowed(w)) sum += fill_cost(w);
  return sum;
}

double CpuCost::fills_again(int axis, int64_t chunks) const {
  const std::vector<int> loops = loops_inside_out();
  const auto is_inside = [&](int of) { return std::ranges::find(loops, axis) < std::ranges::find(loops, of); };
  double sum = 0;
  for (const NestedWork& w : nest_.works) {
    if (!w.is_access || has(w.depends, axis)) continue;
    const double times = w.argument & computed_ ? double(chunks - 1) : double(std::max<int64_t>(chunks - most_refills, 0));
    if (times == 0) continue;
    if (!is_windowed(w)) {
      sum += is_staged(w) && !has(near_axes(), axis) ? times * fill_cost(w) : 0;
    } else if (const Window window = window_of(w); is_inside(window.axis)) {
      sum += times * window.cycles;
    }
  }
  return sum;
}

double CpuCost::fill_cost(const NestedWork& w) const {
  double elements = 1, vectors = 1;
  for (size_t i = 0; i < nest_.axes.size(); ++i)
    if (has(w.depends, int(i))) elements *= double(nest_.axes[i].size), vectors /= double(lanes_of(int(i)));
  Lanes moving;
  for (const Lane& l : lanes_)
    if (has(w.depends, l.axis)) moving.axes.push_back(l);
  const double bytes = elements * double(itemsize(w.node.dtype()));
  return elements * (2 * share_as_it_lies(w, moving) + 8 * vectors) + (bytes > double(target_.l2_bytes) ? bytes / bytes_a_cycle(bytes) : 0);
}

int64_t CpuCost::tile_bytes(uint64_t arguments) const {
  int64_t bytes = 0;
  for (const NestedWork& w : nest_.works) {
    if (!(w.argument & arguments)) continue;
    int64_t elements = int64_t(itemsize(w.node.dtype()));
    for (size_t i = 0; i < nest_.axes.size() && elements <= target_.l2_bytes; ++i)
      if (has(w.depends, int(i))) elements *= nest_.axes[i].is_reduce ? whole_vectors(int(i)) : lanes_of(int(i)) * copies_of(int(i));
    bytes += elements;
  }
  return bytes;
}

int64_t CpuCost::whole_vectors(int axis) const {
  const int64_t lanes = lanes_of(axis);
  return (inner_size(axis) + lanes - 1) / lanes * lanes;
}

bool CpuCost::is_dense(const NestedWork& w, const Tile& t) const {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride and count of each axis
  for (size_t i = 0; i < nest_.axes.size(); ++i) {
    if (!has(w.depends, int(i))) continue;
    const int64_t n = nest_.axes[i].is_reduce ? inner_size(int(i)) : int64_t(held(int(i), t));
    if (n > 1) steps.emplace_back(std::abs(w.strides[i]), n);
  }
  std::sort(steps.begin(), steps.end());
  int64_t length = 1;
  for (const auto& [step, n] : steps) {
    if (step != length) return false;
    length *= n;
  }
  return true;
}

bool CpuCost::has_window(const NestedWork& w) const {
  const auto is_reduce = [&](const AxisStep& s) { return nest_.axes[size_t(s.axis)].is_reduce; };
  return std::ranges::any_of(
      w.windows, [&](const auto& steps) { return std::ranges::any_of(steps, is_reduce) && !std::ranges::all_of(steps, is_reduce); });
}

double CpuCost::reached(const NestedWork& w, std::span<const double> iterations) const {
  const double lanes = std::max(1, target_.lanes(w.node.dtype()));
  double elements = 1;
  for (const auto& steps : w.windows) {
    double window = 1, apart = 1;
    bool is_row = false;
    for (const AxisStep& s : steps) {
      const double n = double(lanes_of(s.axis) * copies_of(s.axis)), i = iterations[size_t(s.axis)];
      if (steps.size() > 1 && !is_split_evenly(s.axis)) {
        apart *= std::ceil(i / n) * n;
        continue;
      }
      window += double(s.size) * (i - 1);
      is_row = is_row || std::abs(w.strides[size_t(s.axis)]) == 1;
    }
    elements *= apart * (is_row && steps.size() > 1 ? std::ceil(window / lanes) * lanes : window);
  }
  return elements;
}

CpuCost::Window CpuCost::window_of(const NestedWork& w) const {
  constexpr double cycles_a_vector = 12;
  const auto lies_together = [&](const Lane& l) {
    return !has(w.depends, l.axis) || std::abs(w.strides[size_t(l.axis)]) == 1 || (is_every_few(w, l) && !(w.argument & computed_));
  };
  const bool rows =
      std::ranges::any_of(w.strides, [](int64_t s) { return std::abs(s) == 1; }) && std::ranges::all_of(lanes_, lies_together);
  const double bytes = double(itemsize(w.node.dtype()));
  const double copied = rows ? cycles_a_vector / std::max(1.0, double(target_.vector_bits) / 8 / bytes) : cycles_an_element;
  std::vector<double> iterations;
  for (const NestAxis& a : nest_.axes) iterations.push_back(double(a.size));
  const double most = double(target_.l2_bytes - tile_bytes(near_));
  Window best;
  double fills = 1;
  std::vector<int> loops = loops_inside_out();
  for (size_t n = loops.size(); n-- > 0;) {
    const int i = loops[n];
    const double held = std::min(double(has(outer_, i) ? inner_size(i) : lanes_of(i) * copies_of(i)), iterations[size_t(i)]);
    fills *= std::ceil(iterations[size_t(i)] / held);
    iterations[size_t(i)] = held;
    const bool computed = w.argument & computed_;
    const double elements = computed ? together(w, iterations) : reached(w, iterations),
                 each = computed ? computing(w, iterations) : copied;
    if (const Window found{i, fills * elements * each, elements * bytes};
        (found.bytes <= most || n == 0) && (best.axis < 0 || found.cycles < best.cycles))
      best = found;
  }
  return best;
}

double CpuCost::together(const NestedWork& w, std::span<const double> iterations) const {
  double elements = 1;
  for (size_t i = 0; i < nest_.axes.size(); ++i)
    if (has(w.depends, int(i))) elements *= iterations[i];
  return elements;
}

double CpuCost::computing(const NestedWork& load, std::span<const double> iterations) const {
  const double vector = std::max(1, target_.lanes(load.node.dtype()));
  const double bytes = double(itemsize(load.node.dtype()));
  double lanes = 1, run = bytes;
  int64_t total = int64_t(bytes);
  for (size_t i = 0; i < nest_.axes.size(); ++i) {
    if (has(load.depends, int(i))) total *= nest_.axes[i].size;
    if (load.strides[i] != 1 || iterations[i] <= 1) continue;
    lanes = iterations[i] / std::ceil(iterations[i] / vector);
    run = bytes * (iterations[i] < double(nest_.axes[i].size) ? iterations[i] : long_run);
  }
  for (const Lane& l : lanes_)
    if (has(load.depends, l.axis)) lanes = double(l.lanes);
  double cycles = 1 / lanes;  // to store it
  for (const WorkPart& p : parts_) {
    const NestedWork& w = *p.work;
    if (!(w.computed & load.argument)) continue;
    double times = 1;
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (has(load.depends & ~w.depends, int(i))) times /= iterations[i];
    const auto is_gathered = [&](const Lane& l) { return has(w.depends, l.axis) && std::abs(w.strides[size_t(l.axis)]) != 1; };
    cycles += times * (w.is_access && std::ranges::any_of(lanes_, is_gathered) ? cycles_an_element : p.cost / lanes);
    // A run that begins anywhere leaves parts of its first and last cache line unused.
    if (w.is_access && run < long_run && total > target_.l2_bytes)
      cycles += times * bytes * (1 + double(line_bytes) / run) / short_run_bytes_a_cycle;
  }
  return cycles;
}

double CpuCost::windows_cost() const {
  double sum = 0;
  for (const NestedWork& w : nest_.works)
    if (is_windowed(w)) sum += window_of(w).cycles;
  return sum;
}
double CpuCost::windows_bytes() const {
  double sum = 0;
  for (const NestedWork& w : nest_.works)
    if (is_windowed(w)) sum += window_of(w).bytes;
  return sum;
}

double CpuCost::bytes_a_cycle(double of) const {
  return of > double(std::max(target_.l2_bytes, target_.l3_bytes)) ? memory_bytes_a_cycle : l3_bytes_a_cycle;
}

double CpuCost::traffic(const Tile& t) const {
  if (nest_.total_cost < worth_tiling || target_.l2_bytes == 0) return 0;
  double sum = 0;
  const std::vector<int> loops = loops_inside_out();
  for (const NestedWork& w : nest_.works) {
    if (!is_reduced(w) || is_windowed(w)) continue;
    double bytes = double(itemsize(w.node.dtype())), times = 1;
    const auto size = [&](int i) { return double(nest_.axes[size_t(i)].size); };
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (has(w.depends, int(i))) bytes *= nest_.axes[i].is_reduce ? double(inner_size(int(i))) : std::min(size(int(i)), held(int(i), t));
    double rate = l3_bytes_a_cycle;
    for (int i : loops) {
      const double left = has(outer_, i) ? double(outer_trips(i)) : std::max(1.0, size(i) / held(i, t));
      if (has(w.depends, i)) {
        bytes *= left;
      } else if (left > 1 && bytes > double(target_.l2_bytes)) {
        times *= left;
        rate = bytes_a_cycle(bytes);
      }
    }
    sum += bytes * (times - 1) / rate;
  }
  return sum;
}

double CpuCost::near_traffic(const Tile& t) const {
  double tile = 0, loaded = 0;
  for (const NestedWork& w : nest_.works) {
    if (!is_near(w)) continue;
    double elements = 1, loads = w.trips;
    for (size_t i = 0; i < nest_.axes.size(); ++i) {
      if (!has(w.depends, int(i)))
        loads /= has(w.inside, int(i)) ? held(int(i), t) : 1;
      else
        elements *= nest_.axes[i].is_reduce ? double(inner_size(int(i))) : std::min(double(nest_.axes[i].size), held(int(i), t));
    }
    tile += elements * double(itemsize(w.node.dtype()));
    loaded += loads * double(itemsize(w.node.dtype()));
  }
  if (tile <= double(target_.l1_bytes)) return 0;
  // Other data that passes through the second cache evicts a part of a large tile.
  const double own = l2_share * double(target_.l2_bytes);
  const double far = std::clamp((tile - own) / (double(target_.l2_bytes) - own), 0.0, 1.0);
  return loaded * ((1 - far) / l2_bytes_a_cycle + far / l3_bytes_a_cycle);
}

double CpuCost::far_pieces(const Tile& t) const {
  if (nest_.reduces == 0 || nest_.total_cost < worth_tiling) return 0;
  double sum = 0;
  for (const NestedWork& w : nest_.works) {
    if (!w.is_access || (w.inside & reduce_axes())) continue;
    double bytes = double(nest_.item_bytes), piece = double(line_bytes);
    for (size_t i = 0; i < nest_.axes.size(); ++i) {
      if (has(w.depends, int(i))) bytes *= double(nest_.axes[i].size);
      if (std::abs(w.strides[i]) == 1) piece = std::max(piece, held(int(i), t) * double(nest_.item_bytes));
    }
    if (bytes > double(target_.l2_bytes)) sum += bytes / bytes_a_cycle(bytes) * double(line_bytes) / piece;
  }
  return sum;
}

double CpuCost::far_streams(const Tile& t) const {
  if (nest_.total_cost < worth_tiling || !uses_once_) return 0;
  double sum = 0;
  for (const NestedWork& w : nest_.works) {
    if (!w.node.is(Op::STORE)) continue;
    double bytes = double(nest_.item_bytes);
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (has(w.depends, int(i))) bytes *= double(nest_.axes[i].size);
    if (bytes <= double(target_.l2_bytes)) continue;
    const double cycles = bytes > double(target_.l3_bytes) / 2 ? far_store_cycles : far_store_cycles / 2;
    for (int i = 0; i < 2; ++i)
      if (has(w.depends & ~nest_.chosen, t.axis[i]) && t.count[i] > 1 &&
          std::abs(w.strides[size_t(t.axis[i])]) * nest_.item_bytes > least_far_bytes)
        sum += cycles * w.trips * share(w, lanes_);
  }
  return sum;
}

std::vector<int> CpuCost::loops_inside_out() const {
  const uint64_t moves = near_axes();
  std::vector<int> out;
  const auto add = [&](auto&& which) {
    for (size_t i = nest_.axes.size(); i-- > 0;)
      if (which(int(i))) out.push_back(int(i));
  };
  const auto is_output = [&](int i) { return !nest_.axes[size_t(i)].is_reduce; };
  add([&](int i) { return is_output(i) && !has(moves, i); });
  add([&](int i) { return has(outer_, i); });
  add([&](int i) { return is_output(i) && has(moves, i); });
  return out;
}

}  // namespace tinygrad::codegen
