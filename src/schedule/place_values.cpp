#include "schedule/place_values.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "schedule/cost.h"
#include "schedule/kernel_calls.h"
#include "schedule/prepare.h"
#include "schedule/reduce_ranges.h"
#include "schedule/value_forms.h"
#include "shape/device.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

constexpr double least_weight = 16;                   ///< of what is stored because a kernel is full
constexpr double short_way = 64, long_program = 512;  ///< what loops and functions weigh that run one after another

/// How far a value is from memory.
struct Way {
  int depth = 0;      ///< REDUCEs on the longest way down
  double length = 0;  ///< of that way, in what its loops and functions weigh
};

class Placer {
 public:
  Placer(const PlacedGraph& graph, const NodeMap<Reason>& forced, const NodeSet& expected)
      : order_(graph.order),
        joinable_(graph.joinable),
        effects_(graph.effects),
        target_of_(graph.target_of),
        places_(graph.places),
        forced_(forced),
        expected_(expected),
        explains_(graph.explains),
        next_slot_(graph.first_temporary),
        broadcasts_(broadcasts_of(order_)),
        ways_(order_.size()) {
    out_.numbers = NodeMap<int>(order_.size());
    out_.values.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) out_.numbers[order_[i]] = int(i);
  }

  Placement run() {
    measure_ways();
    give_storage_to_outputs();
    for (size_t i = order_.size(); i-- > 0;) place(order_[i]);
    return std::move(out_);
  }

 private:
  Value& value(const UOp& u) { return out_.values[number(u)]; }
  const Value& value(const UOp& u) const { return out_.values[number(u)]; }
  size_t number(const UOp& u) const { return size_t(*out_.numbers.find(u)); }
  Kernel& kernel_of(const Use& use) { return out_.kernels[size_t(use.kernel)]; }
  const Kernel& kernel_of(const Use& use) const { return out_.kernels[size_t(use.kernel)]; }
  const Target& target_of(const Use& use) const { return target_of_(kernel_of(use).devices.first()); }
  /// An output that only has to be placed yet: it has its storage and no kernel.
  static bool is_due(const Value& v) { return v.storage && !v.kernel; }

  void measure_ways() {
    for (const UOp& u : order_) {
      Way way;
      for (const UOp& s : scope_sources(u)) {
        const Way& below = ways_[number(s)];
        way.depth = std::max(way.depth, below.depth);
        way.length = std::max(way.length, below.length);
      }
      const double weight = compile_weight(u);
      if (u.is(Op::REDUCE)) ++way.depth;
      if (weight >= least_weight) way.length += weight;
      ways_[number(u)] = way;
      longest_ = std::max(longest_, way.length);
    }
  }

  /// A value that is stored whole into memory nothing else touches lives there for its other users too.
  void give_storage_to_outputs() {
    NodeMap<int> users;
    NodeSet read;  // stores whose state somebody uses
    for (const UOp& u : order_)
      for (const UOp& s : scope_sources(u))
        if (!u.is(Op::SINK)) ++users[s];
    for (const UOp& u : order_)
      for (const UOp& s : scope_sources(u))
        if (s.is(Op::STORE) && !u.is(Op::SINK) && (!u.is(Op::AFTER) || users.contains(u))) read.insert(s);
    for (const UOp& store : effects_.stores()) {
      const UOp& target = store.src(0);
      if (!is_whole_memory(target)) continue;
      bool alone = true;
      for (const UOp* t = &target;; t = &t->src(0)) {
        const int allowed = 1 + (t->is(Op::PARAM) && users.contains(store) ? *users.find(store) : 0);
        alone = alone && users[*t] <= allowed;
        if (t->is(Op::PARAM)) break;
      }
      alone = alone && !read.contains(store);
      const UOp* v = &store.src(1);
      while (v->is(Op::RESHAPE)) v = &v->src(0);
      if (!alone || !can_be_stored(*v) || value(*v).storage) continue;
      value(*v).storage = memory_of(target);
      elided_.insert(store);
      store_of_[*v] = effects_.number(store);
    }
  }

  // Ranges.

  /// The ranges that an evaluation stands in.
  Loops::Ids around(const Use& use) const {
    Loops::Ids all;
    for (const UOp& e : use.place.at) out_.loops.add_around(use.kernel, e, all);
    // Nothing is computed once for all of a kernel that many threads share.
    const Kernel& k = kernel_of(use);
    const bool each_item = target_of(use).has_groups;
    for (size_t i = 0; i < k.ranges.size() && (i == 0 || each_item); ++i) out_.loops.add_around(use.kernel, k.ranges[i], all);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  double evaluations(const Use& use) const {
    double n = 1;
    bool in_reduce = false, in_joined = false;
    const auto ids = around(use);
    for (int id : ids) {
      const Loops::Loop& l = out_.loops.at(use.kernel, id);
      n *= l.size;
      in_reduce = in_reduce || l.reduces;
      in_joined = in_joined || l.max;
    }
    if (!in_reduce) return n;
    // Outputs that share the element are computed together, as far as registers reach.
    double shared = 1;
    for (const UOp& r : kernel_of(use).ranges)
      if (std::ranges::binary_search(ids, Loops::id(r)) && !depends_on(use, r)) shared *= out_.loops.of(use.kernel, r).size;
    return n / std::min(shared, in_joined ? joined_accumulators(target_of(use)) : register_tile);
  }
  static bool depends_on(const Use& use, const UOp& range) {
    return std::any_of(use.place.at.begin(), use.place.at.end(), [&](const UOp& e) { return is_open_over(e, std::span(&range, 1)); });
  }

  // From users to sources.

  int new_kernel(const UOp& root, const Shape& shape, const Devices& devices) {
    const int number = int(out_.kernels.size());
    Kernel k;
    k.root = root;
    k.devices = devices;
    Loops::Ids outer;
    for (const SInt& n : shape) {
      const UOp r = out_.loops.open(number, n, AxisKind::loop, outer);
      if (r.is(Op::RANGE)) {
        k.ranges.push_back(r);
        outer.push_back(Loops::id(r));
      }
      root_place_.push_back(r);
    }
    out_.kernels.push_back(std::move(k));
    weights_.push_back(0);
    return number;
  }
  Use root_use(const UOp& root, const Shape& shape, const Devices& devices) {
    root_place_.clear();
    Use use{.kernel = new_kernel(root, shape, devices)};
    use.place.at = root_place_;
    return use;
  }

  /// Whether a condition says nothing of the loops of the place: an element of a broadcast, say, which is there whether it is needed or
  /// not. Without it the value is the same in all the loops of the condition.
  static bool is_needless(const Place& place) {
    const OpenRanges ranges = ranges_of(place.valid);
    return !ranges.empty() && std::none_of(place.at.begin(), place.at.end(), [&](const UOp& e) { return is_open_over(e, ranges); });
  }
  /// What a condition says of variables alone, null for nothing: the place may be in memory for some of their values only.
  static UOp without_loops(const UOp& valid) {
    if (valid.is(Op::AND)) return both(without_loops(valid.src(0)), without_loops(valid.src(1)));
    return ranges_of(valid).empty() && !is_const(valid, 1) ? valid : UOp();
  }

  int add_use(const UOp& u, int kernel, Place place) {
    if (place.valid && is_needless(place)) place.valid = without_loops(place.valid);
    const size_t node = number(u);
    auto& uses = out_.values[node].uses;
    for (size_t i = 0; i < std::min(uses.size(), most_uses); ++i)
      if (uses[i].kernel == kernel && uses[i].place == place) return int(i);
    double& weight = weights_[size_t(kernel)];
    uses.push_back({.kernel = kernel, .place = std::move(place)});
    uses.back().weight = weight;
    weight += compile_weight(u);
    if (uses.size() <= most_uses) return int(uses.size()) - 1;
    // Of memory that very many kernels read only the uses in this kernel are compared.
    int& last = last_use_.try_emplace(uint64_t(node) << 32 | uint32_t(kernel), -1).first->second;
    for (int i = last; i >= 0; i = uses[size_t(i)].before)
      if (uses[size_t(i)].place == uses.back().place) {
        uses.pop_back();
        return i;
      }
    uses.back().before = last;
    return last = int(uses.size()) - 1;
  }

  void place(const UOp& u) {
    if (u.is(Op::STORE)) return place_store(u);
    if (u.in(Group::effect)) return;
    if (value(u).uses.empty() && !is_due(value(u))) return;
    const bool is_memory = u.is(Op::PARAM) || u.is(Op::AFTER);
    if (is_memory && !forced_.contains(u)) return;
    const Decision decision = decide(u);
    if (decision.stores)
      place_stored(u);
    else
      for (Use& use : value(u).uses) pass_on(u, use);
    if (explains_ && (decision.stores || !broadcasts_.contains(u))) note(u, decision);
  }

  void place_store(const UOp& u) {
    if (elided_.contains(u)) return;
    const Shape& shape = shape_of(u.src(1));
    const UOp memory = memory_of(u.src(0));
    Use use = root_use(u, shape_of(u.src(0)), devices_of(memory));
    Kernel& k = kernel_of(use);
    k.store = effects_.number(u);
    k.target = memory;
    Place target = use.place;
    for (const UOp* t = &u.src(0); !t->is(Op::PARAM); t = &t->src(0)) {
      if (t->is(Op::AFTER)) continue;
      target = places_.of(*t, target);
    }
    k.target_index = target.at[0];
    use.source_uses.push_back(add_use(u.src(1), use.kernel, shape.empty() ? Place{} : use.place));
    out_.stores[u] = std::move(use);
    if (explains_) out_.notes.push_back({u.src(1), {true, Reason::result}, 0, {}, out_.stores[u].kernel});
  }

  void note(const UOp& u, const Decision& decision) {
    ValueNote note{u, decision, 0, {}, value(u).kernel};
    for (const Use& use : value(u).uses) {
      note.evaluations += evaluations(use);
      if (std::ranges::find(note.users, use.kernel) == note.users.end()) note.users.push_back(use.kernel);
    }
    out_.notes.push_back(std::move(note));
  }

  void place_stored(const UOp& u) {
    Value& v = value(u);
    const Shape& shape = shape_of(u);
    Devices devices = devices_of(u);
    if (v.storage) devices = devices_of(v.storage);
    if (devices.empty()) devices = kernel_of(v.uses[0]).devices;
    if (!v.storage) {
      int64_t size = 1;
      for (int64_t n : max_sizes(shape)) size *= n;
      v.storage = param(u.dtype(), std::max<int64_t>(size, 1), {.slot = next_slot_++, .device = devices});
    }
    Use use = root_use(u, shape, devices);
    v.kernel = use.kernel;
    Kernel& k = kernel_of(use);
    k.target = v.storage;
    if (const int* s = store_of_.find(u)) k.store = *s;
    k.target_index = flat_index(u, use.place);
    if (is_transfer(u))  // of all of what is stored, wherever an element of it goes
      use.source_uses.push_back(add_use(u.src(0), use.kernel, Place{UOps(shape_of(u.src(0)).size(), index_const(0)), {}}));
    else if (!u.is(Op::PARAM) && !u.is(Op::AFTER))
      pass_on(u, use);
    out_.roots[u] = std::move(use);
  }

  Decision decide(const UOp& u) {
    if (const Reason* why = forced_.find(u)) return {true, *why};
    if (is_due(value(u))) return {true, Reason::result};
    if (u.is(Op::CONTIGUOUS) || is_transfer(u)) return {true, Reason::asked_for};
    if (!can_be_stored(u) || u.is(Op::STACK) || u.is(Op::IOTA) || is_test_of_place(u)) return {false, Reason::at_hand};
    const auto& uses = value(u).uses;
    // What is carried along in a loop of the kernel anyway is at hand, too.
    const auto in_memory = [&](const UOp& s) {
      return value(s).storage || forced_.contains(s) || expected_.contains(s) || (s.is(Op::REDUCE) && joined_ranges(s, uses[0]));
    };
    Demand demand = demand_for(u);
    if (const std::optional<Decision> decision = decide_by_uses(demand)) return *decision;
    const UOp inner = inside_of_padding(u);
    demand.is_padding = inner && can_be_stored(inner) && !in_memory(inner);
    demand.parts = parts_of(u);
    const Target& target = target_of(uses[0]);
    const Decision decision = decide_by_cost(demand, inline_cost(u, target, in_memory), target);
    if (decision.stores || decision.storing >= decision.computing * register_tile || !is_scattered(u, demand)) return decision;
    demand.is_scattered = true;
    return decide_by_cost(demand, inline_cost(u, target, in_memory, true), target);
  }

  /// Whether elements that are computed several times are in loops of a reduction, other than the one that they are a part of.
  bool is_scattered(const UOp& u, const Demand& d) const {
    const auto& uses = value(u).uses;
    return d.evaluations > d.elements && !target_of(uses[0]).has_groups && !in_one_sum_.contains(u) &&
           std::ranges::any_of(uses, [&](const Use& use) { return is_summed(u, use); });
  }

  Demand demand_for(const UOp& u) {
    const auto& uses = value(u).uses;
    Demand d{.dtype = u.dtype(), .elements = most_elements(u), .uses = uses.size()};
    d.is_carried = std::ranges::all_of(uses, [&](const Use& use) { return joined_ranges(u, use); });
    if (d.is_carried) return d;
    for (const Use& use : uses) d.evaluations += evaluations(use);
    const double most = is_step(u, d.elements, d.evaluations) ? most_step_weight : most_weight;
    const auto is_late = [&](const Use& use) { return use.weight >= (outputs_of(use) <= small_value ? most : most_weight); };
    if (const auto late = std::ranges::find_if(uses, is_late); late != uses.end()) d.overfills = may_be_cut(u, *late);
    if (d.overfills || !u.is(Op::REDUCE) || uses.size() > 1) return d;
    d.starves = starves_threads(uses[0], d.elements);
    d.is_hoisted = !stands_in_all_loops(uses[0]);
    d.is_summed = is_summed(u, uses[0]) && !in_one_sum_.contains(u);
    return d;
  }

  /// A few numbers that a program of many loops or functions one after another would compute again at each place, such as the state of a
  /// recursion.
  bool is_step(const UOp& u, double n, double times) {
    return longest_ >= long_program && ways_[number(u)].length >= short_way && n <= small_value && times > n && times <= 16 * small_value;
  }

  double outputs_of(const Use& use) const {
    double outputs = 1;
    for (const UOp& r : kernel_of(use).ranges) outputs *= out_.loops.of(use.kernel, r).size;
    return outputs;
  }

  /// Not products of which a reduction makes less, nor what is little more than what it is made of.
  bool may_be_cut(const UOp& u, const Use& use) const {
    const auto in_memory = [&](const UOp& x) { return value(x).storage || expected_.contains(x); };
    return (most_elements(u) <= outputs_of(use) || !broadcasts_.contains(u)) &&
           compile_weight_of(u, least_weight, in_memory) > least_weight;
  }

  /// Into how many parts a value may be taken apart so that kernels make and use one after another (`repeat_kernels`): its outermost axis
  /// is a loop of its own wherever it is used.
  double parts_of(const UOp& u) const {
    const Shape& shape = shape_of(u);
    const auto axis = std::ranges::find_if(shape, [](const SInt& s) { return !s.known() || s.value() != 1; });
    if (axis == shape.end() || !axis->known()) return 1;
    const auto moves = [&](const Use& use) {
      const UOp& at = use.place.at[size_t(axis - shape.begin())];
      return at.is(Op::RANGE) && at.src(0) == axis->uop() && !target_of(use).has_groups;
    };
    return std::ranges::all_of(value(u).uses, moves) ? double(axis->value()) : 1;
  }

  /// False if some loops of the kernel are inside of what evaluates the value.
  bool stands_in_all_loops(const Use& use) const {
    const auto ids = around(use);
    return std::ranges::all_of(kernel_of(use).ranges, [&](const UOp& r) { return std::ranges::binary_search(ids, Loops::id(r)); });
  }

  /// Whether a reduction stands in the loop of another one, which takes each of its elements by itself. What a maximum is carried along of
  /// is computed for all sums that are carried with it; what else they sum up is not: the values of attention, which each part of its rows
  /// would compute again.
  bool is_summed(const UOp& u, const Use& use) const {
    return std::ranges::any_of(around(use), [&](int id) {
      const Loops::Loop& l = out_.loops.at(use.kernel, id);
      return l.reduces && !(l.max && is_reduced_for(*l.max, u));
    });
  }
  /// Whether what `max` is the maximum of is computed of a reduction, without one in between.
  static bool is_reduced_for(const UOp& max, const UOp& reduction) {
    NodeSet seen;
    for (std::vector<UOp> stack{max.src(0)}; !stack.empty();) {
      const UOp x = std::move(stack.back());
      stack.pop_back();
      if (x == reduction) return true;
      if (!seen.insert(x) || !(x.in(Group::elementwise) || x.in(Group::movement))) continue;
      for (const UOp& s : x.in(Group::movement) ? x.src().first(1) : x.src()) stack.push_back(s);
    }
    return false;
  }

  /// The kernel has few outputs, and this value could have been computed by many threads.
  bool starves_threads(const Use& use, double n) const { return outputs_of(use) < enough_parallel && n >= enough_parallel; }

  void pass_on(const UOp& u, Use& use) {
    if (u.in(Group::movement)) {
      use.source_uses.push_back(add_use(u.src(0), use.kernel, places_.of(u, use.place)));
      return;
    }
    switch (u.op()) {
      case Op::CONST:
      case Op::VAR:
      case Op::IOTA: return;
      case Op::REDUCE: return pass_on_reduce(u, use);
      case Op::STACK:
        for (size_t i = 0; i < u.src_count(); ++i) {
          const UOp here = symbolic::simplify_index(eq(use.place.at[0], index_const(int64_t(i))));
          Place p{UOps(use.place.at.begin() + 1, use.place.at.end()), both(use.place.valid, here)};
          use.source_uses.push_back(add_use(u.src(i), use.kernel, std::move(p)));
        }
        return;
      default:
        for (const UOp& s : scope_sources(u)) {
          const bool scalar = s.dtype() != DType::void_ && shape_of(s).empty();
          use.source_uses.push_back(add_use(s, use.kernel, scalar ? Place{{}, use.place.valid} : use.place));
        }
    }
  }

  void pass_on_reduce(const UOp& u, Use& use) {
    const auto& arg = u.arg_as<ReduceArg>();
    const UOp& x = u.src(0);
    const Shape& shape = shape_of(x.is(Op::TUPLE) ? x.src(0) : x);
    use.ranges = reduce_ranges_.at(u, joinable_[number(u)], ways_[number(u)].depth, shape, use, [&] { return around(use); });
    Place inner{{}, use.place.valid};
    size_t next_kept = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      auto it = std::find(arg.axes.begin(), arg.axes.end(), int(axis));
      inner.at.push_back(it == arg.axes.end() ? use.place.at[next_kept++] : use.ranges[size_t(it - arg.axes.begin())]);
    }
    use.source_uses.push_back(add_use(x, use.kernel, std::move(inner)));
    if (arg.op != Op::ADD) return;
    const UOp* summed = &x;
    while (summed->in(Group::movement)) summed = &summed->src(0);
    in_one_sum_.insert(*summed);
  }

  /// See ReduceRanges.
  const UOps* joined_ranges(const UOp& u, const Use& use) {
    return reduce_ranges_.joined(u, joinable_[number(u)], use, [&] { return around(use); });
  }

  const std::vector<UOp>& order_;
  const std::vector<const UOp*>& joinable_;
  const Effects& effects_;
  const TargetOf& target_of_;
  SourcePlaces& places_;
  const NodeMap<Reason>& forced_;
  const NodeSet& expected_;
  const bool explains_;
  int32_t next_slot_;
  const NodeSet broadcasts_;
  std::vector<Way> ways_;
  double longest_ = 0;
  Placement out_;
  ReduceRanges reduce_ranges_{out_.loops};
  std::vector<double> weights_;  ///< of what each kernel computes and loads so far
  UOps root_place_;
  NodeSet elided_;
  NodeSet in_one_sum_;  ///< what is summed up as it is: sums of it are one sum with the other
  NodeMap<int> store_of_;
  std::unordered_map<uint64_t, int> last_use_;  ///< of a value in a kernel
};

}  // namespace

Placement place_values(const PlacedGraph& graph, const NodeMap<Reason>& forced, const NodeSet& expected) {
  return Placer(graph, forced, expected).run();
}

}  // namespace tinygrad::schedule
