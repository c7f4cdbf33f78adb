#include "codegen/choose/nest.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "codegen/kernel_axes.h"
#include "codegen/lower/bound_loops.h"
#include "codegen/lower/repeated_terms.h"
#include "codegen/opt/computed_values.h"
#include "codegen/opt/window_axes.h"
#include "codegen/reduce_op.h"
#include "codegen/simplify.h"
#include "shape/ranges.h"
#include "symbolic/gated.h"
#include "target/costs.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::codegen {

namespace {

constexpr size_t most_axes = 64;       // they are bits
constexpr int64_t least_unknown = 16;  // iterations that an axis whose size is known at launch may have at least, to be planned for
constexpr int64_t most_parts = 8;      // values that an axis chooses between, each of which gets a copy of the code

/// A prime not below the iterations that a loop may have, so no opt divides it.
int64_t likely_size(const UOp& range) {
  const auto is_prime = [](int64_t n) {
    for (int64_t d = 2; d * d <= n; ++d)
      if (n % d == 0) return false;
    return true;
  };
  constexpr int64_t most = int64_t{1} << 20;
  int64_t n = std::min(most_iterations(range), most);
  while (!is_prime(n)) ++n;
  return n;
}

class Analysis {
 public:
  Analysis(const UOp& sink, const UOp& effect, bool with_unknown) : sink_(sink), with_unknown_(with_unknown), nodes_(toposort(effect)) {
    const std::vector<UOp> numbered = kernel_axes(sink);
    for (size_t i = 0; i < numbered.size(); ++i) number_[numbered[i]] = int(i);
    add_loops(UOps(closed_ranges(effect)), 0);
    // A loop comes behind the loops around it, and those are around everything that runs in it.
    std::vector<std::pair<UOp, UOps>> reduces;
    NodeMap<size_t> most;
    for (const UOp& u : nodes_) {
      if (!u.is(Op::REDUCE)) continue;
      reduces.emplace_back(u, ranges_of(u));
      for (const UOp& r : closed_ranges(u)) {
        size_t& widest = *most.insert(r, reduces.size() - 1).first;
        if (reduces[widest].second.size() < reduces.back().second.size()) widest = reduces.size() - 1;
      }
    }
    for (auto& [u, around] : reduces)
      for (const UOp& r : closed_ranges(u))
        if (const UOps& wide = reduces[most[r]].second; wide.size() > around.size()) around = wide;
    std::vector<bool> done(reduces.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < reduces.size(); ++i) {
        const auto& [u, around] = reduces[i];
        const auto waits = [&](const UOp& r) {
          return most.contains(r) && !place_.contains(r) && is_taken(r) && nest_.axes.size() < most_axes;
        };
        if (done[i] || std::any_of(around.begin(), around.end(), waits)) continue;
        done[i] = changed = true;
        for (const UOp& identity : reduce_identities(u)) {
          ++nest_.reduces;
          note_dtype(identity.dtype());
        }
        add_loops(UOps(closed_ranges(u)), bits_around(around));
      }
    }
  }

  Nest run() {
    for (const UOp& u : nodes_) {
      const bool access = u.is(Op::LOAD) || u.is(Op::STORE);
      if (access) note_dtype(u.is(Op::STORE) ? u.src(1).dtype() : u.dtype());
      const bool steps = u.is(Op::REDUCE);
      if (access || steps || ((u.in(Group::alu) || u.is(Op::CAST)) && u.dtype() != DType::index)) add_work(u, access, steps);
    }
    note_choices();
    note_gates();
    note_bounds();
    note_repeated();
    for (NestedWork& w : nest_.works)
      if (w.is_access) note_moves(w);
    for (const NestedWork& w : nest_.works)
      if (w.node.is(Op::LOAD) && is_in_reduce(w)) note_computed(w);
    note_conversions();
    return std::move(nest_);
  }

 private:
  bool is_taken(const UOp& range) const {
    return constant_size(range) != 0 || (with_unknown_ && ranges_of(range.src(0)).empty() && most_iterations(range) >= least_unknown);
  }

  void note_dtype(DType d) {
    if (d != DType::void_) nest_.item_bytes = std::max(nest_.item_bytes, int64_t(itemsize(d)));
  }

  /// Loops that one node closes, and the loops around them.
  void add_loops(UOps ranges, uint64_t around) {
    std::sort(ranges.begin(), ranges.end(), [](const UOp& a, const UOp& b) {
      const auto &x = a.arg_as<RangeArg>(), &y = b.arg_as<RangeArg>();
      return std::pair(x.order, x.id) < std::pair(y.order, y.id);
    });
    for (const UOp& r : ranges) {
      const int* number = number_.find(r);
      if (!number || !is_taken(r) || nest_.axes.size() == most_axes || place_.contains(r)) continue;
      const size_t place = nest_.axes.size();
      place_[r] = int(place);
      const int64_t size = constant_size(r);
      nest_.axes.push_back({r, *number, size ? size : likely_size(r), is_reduced(r), size != 0});
      around |= uint64_t{1} << place;
      around_.push_back(around);
    }
  }

  void note_moves(NestedWork& w) const {
    std::vector<UOp> loops;
    for (size_t i = 0; i < nest_.axes.size(); ++i) {
      w.strides.push_back(stride_of(w.node.src(0).src(1), nest_.axes[i].range).value_or(0));
      if (w.depends >> i & 1 && nest_.axes[i].is_known) loops.push_back(nest_.axes[i].range);
    }
    if (w.node.is(Op::STORE)) return;
    for (const WindowAxis& window : window_axes(w.node, loops)) {
      w.windows.emplace_back();
      for (const WindowAxis::Part& p : window.parts) w.windows.back().push_back({*place_.find(p.range), std::abs(p.ratio)});
    }
  }

  /// Where a WHERE joins values along a short axis (cat, stack), each iteration uses one of them: the values do not depend on the axis, the
  /// result does.
  void note_choices() {
    NodeMap<uint64_t> moves(nodes_.size());  // axes that change a node if conditions on a short axis are known
    NodeMap<uint64_t> joined;                // axes along which a WHERE joins values
    for (const UOp& u : nodes_) {
      uint64_t bits = u.is(Op::RANGE) ? bits_of(std::span(&u, 1)) : 0, chosen = 0;
      const size_t condition = u.is(Op::WHERE) ? 0 : u.is(Op::INDEX) && u.src_count() == 3 ? 2 : u.src_count();
      if (condition < u.src_count())
        for (const UOp& clause : symbolic::clauses_of(u.src(condition))) (is_choice(clause) ? chosen : bits) |= moves[clause];
      for (size_t i = 0; i < u.src_count(); ++i) {
        if (i == condition) continue;
        bits |= moves[u.src(i)];
        if (const uint64_t* axes = joined.find(u.src(i))) bits |= *axes & ~(u.is(Op::WHERE) ? chosen : 0);
      }
      moves[u] = bits;
      if (u.is(Op::WHERE) && chosen) joined[u] = chosen;
    }
    for (NestedWork& w : nest_.works) {
      if (const uint64_t* bits = moves.find(w.node)) w.chosen = w.depends & ~*bits;
      nest_.chosen |= w.chosen;
    }
  }

  /// Conditions that only gate loads run where a tile is filled, if the load is staged.
  void note_gates() {
    constexpr uint64_t other_memory = ~uint64_t{0};  // is never staged
    NodeMap<uint64_t> gates(nodes_.size());
    NodeSet values;  // nodes that other than gates need
    for (size_t i = nodes_.size(); i-- > 0;) {
      const UOp& u = nodes_[i];
      const uint64_t* found = gates.find(u);
      const uint64_t only = found ? *found : 0;
      const bool is_value = !only || values.contains(u), has_gate = u.is(Op::INDEX) && u.src_count() == 3;
      for (size_t k = 0; k < u.src_count(); ++k) {
        const bool is_gate = has_gate && k == 2;
        if (is_value && !is_gate) values.insert(u.src(k));
        if (is_gate) gates[u.src(k)] |= argument_bit(u.src(0)) ? argument_bit(u.src(0)) : other_memory;
        if (only && !is_gate) gates[u.src(k)] |= only;
      }
    }
    for (NestedWork& w : nest_.works)
      if (const uint64_t* bits = gates.find(w.node); bits && !values.contains(w.node) && !w.is_access) w.gates = *bits;
  }

  void note_bounds() {
    for (const BoundedLoop& bounded : loops_to_bound(sink_)) {
      const int* place = place_.find(bounded.loop);
      if (!place) continue;
      NestAxis& axis = nest_.axes[size_t(*place)];
      for (const UOp& margin : bounded.margins)
        if (const auto bound = bound_of(margin, axis); bound && (axis.bounds.empty() || axis.bounds[0].along == bound->along))
          axis.bounds.push_back(*bound);
    }
  }

  /// Finds a sum over one loop whose terms a loop over results of the same size computes again.
  void note_repeated() {
    std::vector<UOp> stores;
    for (const UOp& u : nodes_)
      if (u.is(Op::STORE)) stores.push_back(u);
    if (sink_.src_count() != 1 || stores.size() != 1) return;
    for (const UOp& u : nodes_) {
      if (!u.is(Op::REDUCE) || is_general_reduce(u) || closed_ranges(u).size() != 1) continue;
      const UOp& loop = closed_ranges(u)[0];
      const OpenRanges around = ranges_of(u);
      for (const NestAxis& axis : nest_.axes) {
        if (axis.is_reduce || !axis.is_known || axis.size != constant_size(loop) || std::ranges::find(around, axis.range) != around.end())
          continue;
        const auto terms = repeated_terms(u.src(0), std::span(&loop, 1), stores[0].src(1), std::span(&axis.range, 1));
        if (terms.size() == 1 && terms[0].term.dtype() == stores[0].src(0).dtype())
          nest_.repeated |= bits_of(std::span(&loop, 1)) | bits_of(std::span(&axis.range, 1));
      }
    }
  }

  std::optional<LoopBound> bound_of(const UOp& margin, const NestAxis& loop) const {
    LoopBound out;
    NodeMap<UOp> first;
    for (const UOp& r : ranges_of(margin)) {
      const std::optional<int64_t> stride = stride_of(margin, r);
      const int* place = place_.find(r);
      if (!stride || *stride == 0 || !place) return {};
      first[r] = index_const(0);
      if (r == loop.range) {
        out.step = *stride;
      } else if (out.along >= 0 || nest_.axes[size_t(*place)].is_reduce) {
        return {};
      } else {
        out.along = *place;
        out.stride = *stride;
      }
    }
    const UOp rest = simplify(substitute(margin, first));
    const Scalar* constant = const_value(rest);
    if (!constant || out.step == 0 || out.along < 0) return {};
    out.constant = constant->as_int();
    return out;
  }

  bool is_choice(const UOp& condition) const {
    const UOp loop = deciding_loop(condition);
    const int* axis = loop ? place_.find(loop) : nullptr;
    return axis && !nest_.axes[size_t(*axis)].is_reduce && nest_.axes[size_t(*axis)].is_known &&
           nest_.axes[size_t(*axis)].size <= most_parts;
  }

  bool is_in_reduce(const NestedWork& w) const {
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (nest_.axes[i].is_reduce && (w.inside >> i & 1)) return true;
    return false;
  }

  /// Finds values that are computed once for each element that is loaded, if they take more than one operation or are converted.
  void note_computed(const NestedWork& load) {
    if (!load.argument || (nest_.computed & load.argument)) return;
    const ComputedValues values = computed_of(load.node, nodes_);
    if (std::ranges::find(values.last, load.node) != values.last.end()) return;
    const auto is_part = [&](const NestedWork& w) { return values.nodes.contains(w.node); };
    int64_t operations = 0;
    for (const NestedWork& w : nest_.works)
      if (is_part(w) && !w.is_access) operations += w.node.is(Op::CAST) ? 2 : 1;  // of scalars, several instructions
    if (operations < 2) return;
    nest_.computed |= load.argument;
    int64_t bytes = 0;
    for (const UOp& u : values.last) bytes = std::max(bytes, int64_t(itemsize(u.dtype())));
    for (NestedWork& w : nest_.works) {
      if (is_part(w)) w.computed |= load.argument;
      if (w.argument == load.argument) w.computed_bytes = bytes;
    }
  }

  /// Finds the arguments of sums all of whose elements are converted, by a CAST of each load, before anything else is done with them.
  void note_conversions() {
    NodeMap<UOp> only;  // the user of a load; null: there are others
    for (const UOp& u : nodes_)
      for (const UOp& s : u.src())
        if (const auto [user, is_new] = s.is(Op::LOAD) ? only.insert(s, u) : std::pair(nullptr, true); !is_new) *user = UOp();
    const auto cast_of = [&](const NestedWork& w) {
      const UOp* user = w.node.is(Op::LOAD) && is_in_reduce(w) ? only.find(w.node) : nullptr;
      return user && *user && user->is(Op::CAST) ? *user : UOp();
    };
    uint64_t others = 0;
    for (const NestedWork& w : nest_.works)
      if (w.is_access && !cast_of(w)) others |= w.argument;
    for (NestedWork& w : nest_.works) {
      if (!w.argument || (w.argument & others)) continue;
      w.converted = cast_of(w);
      for (NestedWork& cast : nest_.works)
        if (cast.node == w.converted) cast.converts |= w.argument;
    }
  }

  uint64_t bits_of(std::span<const UOp> ranges) const {
    uint64_t bits = 0;
    for (const UOp& r : ranges)
      if (const int* p = place_.find(r)) bits |= uint64_t{1} << *p;
    return bits;
  }
  uint64_t bits_around(std::span<const UOp> ranges) const {
    uint64_t bits = 0;
    for (const UOp& r : ranges)
      if (const int* p = place_.find(r)) bits |= around_[size_t(*p)];
    return bits;
  }

  /// A REDUCE counts as what its step does to the accumulator, inside its loops.
  void add_work(const UOp& u, bool access, bool steps) {
    const OpenRanges open = ranges_of(u);
    const std::span<const UOp> own = steps ? closed_ranges(u) : std::span<const UOp>();
    const NestedWork w{.node = u,
                       .is_access = access,
                       .inside = bits_around(open) | bits_around(own),
                       .depends = bits_of(open) | bits_of(own),
                       .cost = access ? 1 : general_costs().ops.of(u.op()).cycles,
                       .argument = access ? argument_bit(u.src(0).src(0)) : 0};
    add(w);
    if (is_general_reduce(u)) add_step(w);
  }

  /// Adds the works of a general REDUCE's step. Many of them depend on fewer axes than the result.
  void add_step(const NestedWork& reduce) {
    const UOp& body = reduce.node.src(2).src(0);
    const UOps values = reduced_values(reduce.node);
    const std::vector<UOp> nodes = toposort(body);
    std::vector<uint64_t> carried(body.src_count(), bits_of(closed_ranges(reduce.node)));
    NodeMap<uint64_t> depends(nodes.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (const UOp& u : nodes) {
        uint64_t bits = 0;
        if (u.is(Op::PARAM)) {
          const auto slot = size_t(u.arg_as<ParamArg>().slot);
          bits = slot < carried.size() ? carried[slot] : bits_of(ranges_of(values[slot - carried.size()]));
        }
        for (const UOp& s : u.src()) bits |= depends[s];
        depends[u] = bits;
      }
      for (size_t i = 0; i < carried.size(); ++i)
        if (const uint64_t bits = carried[i] | depends[body.src(i)]; bits != carried[i]) carried[i] = bits, changed = true;
    }
    const int* loop = place_.find(closed_ranges(reduce.node).back());
    for (const UOp& u : nodes) {
      if (!u.in(Group::alu)) continue;
      add({.node = u, .inside = reduce.inside, .depends = depends[u], .cost = general_costs().ops.of(u.op()).cycles});
      const uint64_t same = reduce.depends & ~depends[u];
      if (loop && same) nest_.joined_axis = *loop;
      nest_.followed |= same;
    }
  }

  void add(NestedWork w) {
    for (size_t i = 0; i < nest_.axes.size(); ++i)
      if (w.inside >> i & 1) w.trips *= double(nest_.axes[i].size);
    nest_.total_cost += w.cost * w.trips;
    nest_.works.push_back(w);
  }

  UOp sink_;
  bool with_unknown_;
  std::vector<UOp> nodes_;
  NodeMap<int> number_, place_;
  std::vector<uint64_t> around_;
  Nest nest_;
};

}  // namespace

bool is_wide(const NestedWork& work) {
  if (work.node.is(Op::THREEFRY)) return false;  // works on the halves of its values
  const bool has_result_elsewhere = work.node.is(Op::STORE) || work.node.in(Group::comparison);
  return itemsize((has_result_elsewhere ? work.node.src().back() : work.node).dtype()) > 4;
}

uint64_t argument_bit(const UOp& memory) {
  const int slot = memory.is(Op::PARAM) ? memory.arg_as<ParamArg>().slot : -1;
  return slot >= 0 && slot < 64 ? uint64_t{1} << slot : 0;
}

Nest analyze_nest(const UOp& sink, const UOp& effect, bool with_unknown) { return Analysis(sink, effect, with_unknown).run(); }

}  // namespace tinygrad::codegen
