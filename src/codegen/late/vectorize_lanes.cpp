#include "codegen/late/vectorize_lanes.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "codegen/simplify.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "symbolic/linear.h"
#include "target/target.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

bool is_lane(const UOp& u) { return u.is(Op::RANGE) && u.arg_as<RangeArg>().kind == AxisKind::lane; }

/// The lane range that a node depends on, or null.
UOp lane_of(const UOp& u) {
  UOp lane;
  for (const UOp& r : ranges_of(u)) {
    if (!is_lane(r)) continue;
    if (lane) throw InternalError(fmt::format("lanes: {} depends on two vector axes", print_expr(u)));
    lane = r;
  }
  return lane;
}

bool is_vector(const UOp& u) { return !shape_of(u).empty(); }

// Sizes of vectors and numbers of lanes are small: int32, whatever the width of indices.
UOp number(int64_t n) { return constant(DType::int32, n); }

UOp splat(const UOp& x, int64_t n) { return is_vector(x) ? x : UOp(Op::EXPAND, x.dtype(), {x, number(n)}); }
UOp lane_at(const UOp& v, int64_t i) { return UOp(Op::INDEX, v.dtype(), {v, number(i)}, IndexArg{}); }
UOp lanes(const UOp& v, int64_t begin, int64_t end) { return UOp(Op::SHRINK, v.dtype(), {v, number(begin), number(end)}); }

/// 0, step, 2*step, ...
UOp lane_numbers(int64_t n, DType dtype, int64_t step = 1) {
  UOps numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(constant(dtype, i * step));
  return stack(numbers);
}

/// LOADs of every second, third, ... element that lie in one run of memory, by their distance from its first element.
struct StridedLoads {
  UOps loads{};  ///< null where there is none
  UOp made{};
};

class Vectorizer {
 public:
  explicit Vectorizer(const Target& target) : joins_loads_(target.vector_math && target.unaligned_vectors) {}

  UOp run(const UOp& sink) {
    const std::vector<UOp> nodes = toposort(sink);
    has_lanes_ = std::any_of(nodes.begin(), nodes.end(), is_lane);
    if (has_lanes_ && joins_loads_) find_strided_loads(nodes);
    for (const UOp& u : nodes)
      if (!done_.contains(u)) done_[u] = vectorize(u);
    return done_[sink];
  }

 private:
  /// An access of the run that is `elements` behind the index without its number.
  struct Strided {
    UOp load;
    int64_t elements = 0;
  };

  void find_strided_loads(const std::vector<UOp>& nodes) {
    NodeSet plain;  // of loops and numbers alone
    std::vector<std::vector<Strided>> together;
    NodeMap<size_t> number;
    UOps keys;  // of `number`, which does not hold them
    for (const UOp& u : nodes) {
      const auto is_plain = [&](const UOp& s) { return plain.contains(s); };
      if ((u.in(Group::alu) || u.is(Op::RANGE) || u.is(Op::CONST) || u.is(Op::VAR)) && std::ranges::all_of(u.src(), is_plain))
        plain.insert(u);
      if (!u.is(Op::LOAD) || is_bool(u.dtype()) || is_image(u.src(0).src(0)) || !is_plain(u.src(0).src(1))) continue;
      if (u.src_count() > 2 && (!is_plain(u.src(1)) || !is_plain(u.src(2)))) continue;
      const UOp lane = lane_of(u.src(0));
      const auto stride = lane ? stride_of(u.src(0).src(1), lane) : std::nullopt;
      if (!stride || *stride < 2 || *stride > most_apart) continue;
      auto sum = symbolic::linear(u.src(0).src(1));
      if (!sum) continue;
      const int64_t elements = std::exchange(sum->offset, 0);
      UOps same{u.src(0).src(0), sum->build()};
      for (const UOp& r : ranges_of(u)) same.push_back(r);  // gates, too, are of the same loops
      const UOp key(Op::TUPLE, DType::void_, same);
      const size_t n = *number.insert(key, together.size()).first;
      if (n == together.size()) together.emplace_back(), keys.push_back(key);
      together[n].push_back({u, elements});
    }
    for (auto& accesses : together) cut_in_runs(accesses);
  }

  void cut_in_runs(std::vector<Strided>& accesses) {
    std::ranges::stable_sort(accesses, {}, &Strided::elements);
    const UOp& first = accesses[0].load;
    const auto stride = size_t(*stride_of(first.src(0).src(1), lane_of(first.src(0))));
    int64_t begin = 0;
    for (const Strided& a : accesses) {
      const bool is_new = &a == accesses.data() || a.elements >= begin + int64_t(stride);
      if (is_new) begin = a.elements, runs_.push_back({.loads = UOps(stride, UOp())});
      UOp& place = runs_.back().loads[size_t(a.elements - begin)];
      if (place) continue;  // the same element with another gate
      place = a.load;
      run_of_[a.load] = {runs_.size() - 1, size_t(a.elements - begin)};
    }
  }

  UOp vectorize(const UOp& u) {
    if (is_lane(u)) return lane_numbers(constant_size(u), u.dtype());
    switch (u.op()) {
      case Op::INDEX: return index_lanes(u);
      case Op::REDUCE: return is_general_reduce(u) ? u : reduce_lanes(u)[0];
      case Op::GETTUPLE: return is_general_reduce(u.src(0)) ? reduce_lanes(u.src(0))[size_t(u.arg_as<TupleArg>().index)] : u;
      case Op::END:
      case Op::AFTER: return without_lanes(u);
      case Op::GROUP: return u.with_src(joined_stores(u));
      default: break;
    }
    UOps sources = new_sources(u);
    const UOp lane = lane_of(u);
    if (u.is(Op::WMMA) && has_lanes_) return product(u, sources, *find_tensor_core(u.arg_as<WmmaArg>().name));
    if (!lane) return u.with_src(sources);
    const int64_t n = constant_size(lane);
    if (const auto* run = u.is(Op::LOAD) ? run_of_.find(u) : nullptr) return every_lane(whole_run(runs_[run->first]), run->second, n);
    if (u.is(Op::LOAD)) return load_lanes(u, sources, n);
    if (u.is(Op::STORE)) return store_lanes(u, sources, n);
    if (u.in(Group::alu))
      for (UOp& s : sources) s = splat(s, n);
    return u.with_src(sources);
  }

  UOps new_sources(const UOp& u) const {
    UOps out;
    for (const UOp& s : u.src()) {
      const UOp* d = done_.find(s);  // none for what is inside a FUNCTION
      out.push_back(d ? *d : s);
    }
    return out;
  }

  /// INDEX(m, i): at its first lane, with a width, where the lanes are neighbours; else where they are evenly spaced, at the first one plus
  /// a number for each.
  UOp index_lanes(const UOp& u) {
    if (is_image(u.src(0))) return whole_texel(u);
    if (has_lanes_ && u.src(0).is(Op::WMMA)) return row_of_tile(u);
    const UOp lane = lane_of(u);
    const auto stride = lane ? stride_of(u.src(1), lane) : std::nullopt;
    if (!stride) return u.with_src(new_sources(u));
    const int64_t n = constant_size(lane);
    if (stride == 1) return run(u, lane, n);
    const DType dtype = u.src(1).dtype();
    return index(*done_.find(u.src(0)), splat(first_lane(u.src(1), lane), n) + lane_numbers(n, dtype, *stride));
  }

  UOp whole_texel(const UOp& u) const {
    return u.with_src(UOps{u.src(0), *done_.find(u.src(1)), *done_.find(u.src(2))}).with_arg(IndexArg{.width = 4});
  }

  /// `width` neighbours from where the first lane is. The lane is 0 in the index alone: memory is that of the vector program.
  UOp run(const UOp& u, const UOp& lane, int64_t width) const {
    return index(*done_.find(u.src(0)), lane ? first_lane(u.src(1), lane) : *done_.find(u.src(1)), int32_t(width));
  }

  UOp first_lane(const UOp& at, const UOp& lane) const { return at_lane(at, lane, 0); }
  UOp at_lane(const UOp& at, const UOp& lane, int64_t number) const {
    return rebuild(at, [&](const UOp& node, const UOps& parts) {
      if (node == lane) return constant(lane.dtype(), number);
      if (!is_open_over(node, std::span(&lane, 1))) return *done_.find(node);  // there may be loops of the lane's own in it
      return node.is(Op::ADD) && is_const(parts[1], 0)   ? parts[0]
             : node.is(Op::ADD) && is_const(parts[0], 0) ? parts[1]
             : node.is(Op::MUL) && is_const(parts[0], 0) ? parts[0]
                                                         : node.with_src(parts);
    });
  }

  /// True if the LOADs, without gates, are of a run of memory: each is the next element, and the lanes follow each other.
  static bool are_neighbours(std::span<const UOp> loads) {
    const UOp& first = loads[0];
    if (!first.is(Op::LOAD)) return false;
    const UOp lane = lane_of(first.src(0));
    if (lane && stride_of(first.src(0).src(1), lane) != int64_t(loads.size())) return false;
    return are_a_run(loads);
  }

  /// True if each LOAD, without a gate, is of the next element, in one lane.
  static bool are_a_run(std::span<const UOp> loads) {
    const UOp& first = loads[0];
    if (!first.is(Op::LOAD)) return false;
    for (size_t i = 0; i < loads.size(); ++i) {
      const UOp& u = loads[i];
      if (!u.is(Op::LOAD) || u.src_count() != 1 || u.src(0).src(0) != first.src(0).src(0)) return false;
      const auto distance = symbolic::difference(u.src(0).src(1), first.src(0).src(1));
      if (!distance || !distance->terms.empty() || distance->offset != int64_t(i)) return false;
    }
    return true;
  }

  UOp product(const UOp& u, const UOps& sources, const TensorCore& core) const {
    return core.a.in_memory ? tile_product(u, sources, core) : dot_products(u, sources[2], core);
  }

  /// A product of tiles: its sums are one vector, of a row for each element that a lane holds.
  UOp tile_product(const UOp& u, const UOps& sources, const TensorCore& core) const {
    const int64_t rows = core.c.elements(), n = core.items;
    UOps sums;
    for (int64_t row = 0; row < rows; ++row) {
      const UOp& held = u.src(2).src(size_t(row));
      const UOp& vector = *done_.find(held);
      for (int64_t lane = 0; lane < n; ++lane) sums.push_back(is_vector(vector) ? lane_at(vector, lane) : vector);
    }
    return u.with_src(UOps{sources[0], sources[1], stack(sums)});
  }

  /// The row of sums that an element of a product of tiles is in each lane.
  UOp row_of_tile(const UOp& u) const {
    const int64_t row = const_value(u.src(1))->as_int(), n = find_tensor_core(u.src(0).arg_as<WmmaArg>().name)->items;
    return lanes(*done_.find(u.src(0)), row * n, (row + 1) * n);
  }

  /// A tensor core that works on lanes does so where masks left columns that are the same, too.
  UOp dot_products(const UOp& u, const UOp& sum, const TensorCore& core) const {
    const UOp out = u.with_src(UOps{factor(core, core.a, u.src(0)), factor(core, core.b, u.src(1)), splat(sum, core.items)});
    return lane_of(u) ? out : lane_at(out, 0);
  }

  UOp factor(const TensorCore& core, const TensorCore::Layout& layout, const UOp& stacked) const {
    const UOp lane = lane_of(stacked);
    if (core.m > 1 && lane && are_a_run(stacked.src()) && !stride_of(stacked.src(0).src(0).src(1), lane))
      if (const UOp runs = lanes_of_runs(stacked, lane)) return runs;
    return operand(stacked, is_shared(layout) ? 1 : core.items);
  }

  static bool is_shared(const TensorCore::Layout& layout) {
    const auto is_of_element = [](const TensorCore::Bit& bit) { return bit.of_element; };
    return std::ranges::all_of(layout.row, is_of_element) && std::ranges::all_of(layout.column, is_of_element);
  }

  /// A STACK as a vector: of the elements of the first lane, of the second, ...
  UOp operand(const UOp& stacked, int64_t n) const {
    if (const UOp of_runs = operation_on_runs(stacked, n)) return of_runs;
    const UOp lane = lane_of(stacked);
    const auto each = int64_t(stacked.src_count());
    if ((lane || n == 1) && are_neighbours(stacked.src())) {
      const UOp& first = stacked.src(0);
      return first.with_src(UOps{run(first.src(0), lane, lane ? each * constant_size(lane) : each)});
    }
    if (n == 1) return *done_.find(stacked);
    UOps vectors;
    for (const UOp& s : stacked.src()) vectors.push_back(*done_.find(s));
    return interleaved(vectors, n);
  }

  /// What is done alike to each element of a run is done to the vector: the bits of a factor that is shifted (shifts_a() in
  /// target/tensor_cores/registers.h).
  UOp operation_on_runs(const UOp& stacked, int64_t n) const {
    const UOp& first = stacked.src(0);
    const bool has_constant = first.is(Op::XOR) && const_value(first.src(1));
    if (!first.is(Op::BITCAST) && !has_constant) return {};
    UOps parts;
    for (const UOp& u : stacked.src()) {
      if (u.op() != first.op() || u.dtype() != first.dtype() || (has_constant && u.src(1) != first.src(1))) return {};
      parts.push_back(u.src(0));
    }
    const UOp inner = stack(parts), vector = are_neighbours(parts) ? operand(inner, n) : operation_on_runs(inner, n);
    if (!vector) return {};
    return has_constant ? first.with_src(UOps{vector, splat(first.src(1), shape_of(vector)[0].value())}) : first.with_src(UOps{vector});
  }

  /// The operand where the elements of a lane are a run and several lanes may have the same one, as rows and columns of a product have
  /// that is two of each: the runs are loaded once, side by side if they lie so.
  UOp lanes_of_runs(const UOp& stacked, const UOp& lane) const {
    const UOp& first = stacked.src(0);
    const auto each = int64_t(stacked.src_count()), n = constant_size(lane);
    const UOp first_run = simplify(first_lane(first.src(0).src(1), lane));
    std::vector<int64_t> begins;  // of each lane's run, from the first lane's
    for (int64_t i = 0; i < n; ++i) {
      const auto distance = symbolic::difference(simplify(at_lane(first.src(0).src(1), lane, i)), first_run);
      if (!distance || !distance->terms.empty()) return {};
      begins.push_back(distance->offset);
    }
    std::vector<int64_t> runs = begins;
    std::ranges::sort(runs);
    runs.erase(std::ranges::unique(runs).begin(), runs.end());
    bool is_one = true;
    for (size_t i = 0; i < runs.size(); ++i) is_one = is_one && runs[i] == int64_t(i) * each;
    UOps loaded;
    for (size_t i = 0; i < (is_one ? 1 : runs.size()); ++i) {
      const int64_t of = std::ranges::find(begins, runs[i]) - begins.begin();
      const UOp at = simplify(at_lane(first.src(0).src(1), lane, of));
      loaded.push_back(
          first.with_src(UOps{index(*done_.find(first.src(0).src(0)), at, int32_t(is_one ? each * int64_t(runs.size()) : each))}));
    }
    UOps all;
    for (const int64_t begin : begins)
      for (int64_t e = 0; e < each; ++e) {
        const auto run = std::ranges::find(runs, begin) - runs.begin();
        all.push_back(is_one ? lane_at(loaded[0], begin + e) : lane_at(loaded[size_t(run)], e));
      }
    return stack(all);
  }

  /// The vector of every n-th lane of a run, from a lane on.
  static UOp every_lane(const UOp& run, size_t first, int64_t n) {
    const int64_t stride = shape_of(run)[0].value() / n;
    UOps all;
    for (int64_t i = 0; i < n; ++i) all.push_back(lane_at(run, int64_t(first) + i * stride));
    return stack(all);
  }

  /// Loads the run; elements that no LOAD asks for are masked.
  UOp whole_run(StridedLoads& r) {
    if (r.made) return r.made;
    const UOp& first = r.loads[0];
    const UOp lane = lane_of(first.src(0));
    const int64_t n = constant_size(lane), count = int64_t(r.loads.size());
    UOps alternatives, gates, asked;
    bool is_masked = false, is_gated = false;
    for (const UOp& l : r.loads) {
      const bool gated = l && l.src_count() > 2;
      alternatives.push_back(gated ? on_demand(l.src(1)) : constant(first.dtype(), 0));
      gates.push_back(gated ? on_demand(l.src(2)) : l || gates.empty() ? constant(DType::bool_, 1) : gates.back());
      asked.push_back(constant(DType::bool_, l ? 1 : 0));
      is_masked |= !l;
      is_gated |= gated;
    }
    on_demand(first.src(0).src(1));
    UOps sources{run(first.src(0), lane, n * count)};
    if (is_masked || is_gated) {
      UOp gate = is_gated ? splat(interleaved_like(gates, n), n * count) : UOp();
      if (is_masked) {
        const UOp mask = interleaved(asked, n);
        gate = gate ? UOp(Op::AND, DType::bool_, {gate, mask}) : mask;
      }
      sources.push_back(splat(interleaved_like(alternatives, n), n * count));
      sources.push_back(gate);
    }
    return r.made = UOp(Op::LOAD, first.dtype(), sources);
  }

  /// The vector program's node for an index expression, which the walk may not have reached yet.
  const UOp& on_demand(const UOp& u) {
    for (const UOp& node : toposort_where(std::span(&u, 1), [&](const UOp& v) { return !done_.contains(v); }))
      if (!done_.contains(node)) done_[node] = vectorize(node);
    return done_[u];
  }

  static UOp interleaved(const UOps& vectors, int64_t n) {
    UOps all;
    for (int64_t i = 0; i < n; ++i)
      for (const UOp& v : vectors) all.push_back(v.is(Op::STACK) ? v.src(size_t(i)) : is_vector(v) ? lane_at(v, i) : v);
    return stack(all);
  }

  /// Stores of every second, third, ... element that together fill a run are one.
  UOps joined_stores(const UOp& group) const {
    UOps out;
    std::vector<bool> taken(group.src_count(), false);
    for (size_t i = 0; i < group.src_count(); ++i) {
      if (taken[i]) continue;
      const UOps parts = run_around(group.src(), i, taken);
      out.push_back(parts.size() < 2 ? *done_.find(group.src(i)) : joined(parts));
    }
    return out;
  }

  /// The STOREs that fill a run with one of the effects, in the order of the run, and takes them; none if it stays alone.
  static UOps run_around(std::span<const UOp> effects, size_t at, std::vector<bool>& taken) {
    const UOp& store = effects[at];
    const UOp lane = store.is(Op::STORE) ? lane_of(store.src(0)) : UOp();
    const auto stride = lane ? stride_of(store.src(0).src(1), lane) : std::nullopt;
    if (!stride || *stride < 2 || *stride > most_apart) return {};
    std::vector<size_t> by_distance(2 * size_t(*stride) - 1, effects.size());
    for (size_t i = 0; i < effects.size(); ++i) {
      const UOp& u = effects[i];
      if (taken[i] || !u.is(Op::STORE) || u.src(0).src(0) != store.src(0).src(0)) continue;
      const auto distance = symbolic::difference(u.src(0).src(1), store.src(0).src(1));
      if (!distance || !distance->terms.empty() || std::abs(distance->offset) >= *stride) continue;
      size_t& place = by_distance[size_t(distance->offset + *stride - 1)];
      if (place < effects.size()) return {};  // two of the same place
      place = i;
    }
    for (size_t first = 0; first < size_t(*stride); ++first) {
      const auto run = std::span(by_distance).subspan(first, size_t(*stride));
      if (std::ranges::find(run, effects.size()) != run.end()) continue;
      UOps parts;
      for (const size_t i : run) taken[i] = true, parts.push_back(effects[i]);
      return parts;
    }
    return {};
  }

  UOp joined(const UOps& stores) const {
    const UOp& first = stores[0];
    const UOp lane = lane_of(first.src(0));
    const int64_t n = constant_size(lane), count = int64_t(stores.size());
    UOps values, gates;
    bool is_gated = false;
    for (const UOp& s : stores) {
      values.push_back(*done_.find(s.src(1)));
      gates.push_back(s.src_count() > 2 ? *done_.find(s.src(2)) : constant(DType::bool_, 1));
      is_gated |= s.src_count() > 2;
    }
    UOps sources{run(first.src(0), lane, n * count), interleaved(values, n)};
    if (is_gated) sources.push_back(interleaved_like(gates, n));
    return first.with_src(sources);
  }

  /// Comparisons of lane numbers are made anew: masks are dear to shuffle. What is the same for all stays a scalar.
  static UOp interleaved_like(const UOps& vectors, int64_t n, int depth = 0) {
    constexpr int deepest = 8;
    const UOp& first = vectors[0];
    const auto all = [&](auto&& is) { return std::all_of(vectors.begin(), vectors.end(), is); };
    if (all([&](const UOp& v) { return v == first; })) {
      if (!is_vector(first)) return first;
      if (first.is(Op::EXPAND)) return first.src(0);
    }
    const auto is_alike = [&](const UOp& v) {
      return is_vector(v) && v.in(Group::alu) && v.op() == first.op() && v.src_count() == first.src_count();
    };
    if (depth == deepest || !all(is_alike)) return interleaved(vectors, n);
    UOps sources;
    for (size_t k = 0; k < first.src_count(); ++k) {
      UOps parts;
      for (const UOp& v : vectors) parts.push_back(v.src(k));
      sources.push_back(splat(interleaved_like(parts, n, depth + 1), n * int64_t(vectors.size())));
    }
    return first.with_src(sources);
  }

  static UOp at_each_lane(const UOp& at, int64_t n) { return is_vector(at) ? at : index(at.src(0), splat(at.src(1), n)); }

  static UOp load_lanes(const UOp& u, UOps sources, int64_t n) {
    sources[0] = at_each_lane(sources[0], n);
    // With a gate of its own each lane of a run can be masked; one gate would be a branch. A texel is read whole.
    const size_t splatted = is_image(u.src(0).src(0)) ? std::min<size_t>(sources.size(), 2) : sources.size();
    for (size_t i = 1; i < splatted; ++i) sources[i] = splat(sources[i], n);
    return u.with_src(sources);
  }

  static UOp store_lanes(const UOp& u, UOps sources, int64_t n) {
    sources[0] = at_each_lane(sources[0], n);
    sources[1] = splat(sources[1], n);
    return u.with_src(sources);
  }

  UOp without_lanes(const UOp& u) const {
    UOps sources{*done_.find(u.src(0))};
    for (const UOp& s : u.src().subspan(1))
      if (!is_lane(s)) sources.push_back(*done_.find(s));
    return sources.size() == 1 ? sources[0] : u.with_src(sources);
  }

  /// Halves that are combined until one lane is left.
  UOps reduce_lanes(const UOp& u) {
    if (const UOps* known = reduced_.find(u)) return *known;
    const auto closed = closed_ranges(u);
    if (closed.size() != 1 || !is_lane(closed[0])) throw InternalError("lanes: a REDUCE over loops was not lowered");
    int64_t n = constant_size(closed[0]);
    UOps values;
    for (const UOp& v : reduced_values(u)) values.push_back(splat(vector_of(v), n));
    if (is_general_reduce(u) && u.src(2) != u.src(3)) {
      UOps identities = reduce_identities(u);
      for (UOp& i : identities) i = splat(i, n);
      values = with_splats(reduce_step(u, identities, values), identities, values, n);
    }
    if (!is_general_reduce(u) && is_int(values[0].dtype()) && n > 2) return reduced_[u] = one_by_one(u, values[0], n);
    for (; n > 1; n /= 2) {
      UOps low, high;
      for (const UOp& v : values) {
        low.push_back(n == 2 ? lane_at(v, 0) : lanes(v, 0, n / 2));
        high.push_back(n == 2 ? lane_at(v, 1) : lanes(v, n / 2, n));
      }
      values = merge_partials(u, low, high);
      if (is_general_reduce(u)) values = with_splats(values, low, high, n / 2);
    }
    return reduced_[u] = values;
  }

  /// LLVM 19 loses lanes of sums of products or differences of bytes that are halved down to one.
  static UOps one_by_one(const UOp& reduce, UOp v, int64_t n) {
    for (; n > 4; n /= 2) v = merge_partials(reduce, UOps{lanes(v, 0, n / 2)}, UOps{lanes(v, n / 2, n)})[0];
    UOps sum{lane_at(v, 0)};
    for (int64_t i = 1; i < n; ++i) sum = merge_partials(reduce, sum, UOps{lane_at(v, i)});
    return sum;
  }

  /// A value that reduced_values() may have wrapped in a CAST that was not in the graph.
  UOp vector_of(const UOp& v) const {
    if (const UOp* d = done_.find(v)) return *d;
    return v.with_src(std::span(done_.find(v.src(0)), 1));
  }

  /// Bodies of functions mix carried vectors with scalar constants: every scalar operand of a vector node is expanded, above what the
  /// body was given.
  static UOps with_splats(const UOps& values, const UOps& a, const UOps& b, int64_t n) {
    if (n == 1) return values;
    NodeMap<UOp> done;
    for (const UOps* given : {&a, &b})
      for (const UOp& u : *given) done[u] = u;
    for (const UOp& u : toposort_where(values, [&](const UOp& v) { return !done.contains(v); })) {
      if (done.contains(u)) continue;
      UOps sources;
      bool vector = false;
      for (const UOp& s : u.src()) {
        sources.push_back(done[s]);
        vector |= is_vector(sources.back());
      }
      if (vector && u.in(Group::alu))
        for (UOp& s : sources) s = splat(s, n);
      done[u] = u.with_src(sources);
    }
    UOps out;
    for (const UOp& v : values) out.push_back(splat(done[v], n));
    return out;
  }

  const bool joins_loads_;
  bool has_lanes_ = false;
  std::vector<StridedLoads> runs_;
  NodeMap<std::pair<size_t, size_t>> run_of_;  ///< and which of its LOADs
  NodeMap<UOp> done_;
  NodeMap<UOps> reduced_;
};

}  // namespace

UOp vectorize_lanes(const UOp& sink, const Target& target) { return Vectorizer(target).run(sink); }

}  // namespace tinygrad::codegen
