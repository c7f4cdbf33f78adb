#include "schedule/rangeify.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <tinygrad/errors.h>

#include "schedule/argument_cuts.h"
#include "schedule/cost.h"
#include "schedule/idle_terms.h"
#include "schedule/online_reduce.h"
#include "schedule/order.h"
#include "schedule/place.h"
#include "schedule/prepare.h"
#include "schedule/select.h"
#include "shape/device.h"
#include "shape/ranges.h"
#include "shape/shape.h"
#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::schedule {

namespace {

constexpr size_t most_uses = 16;
constexpr int most_rounds = 4;
constexpr double least_weight = 16;                   ///< of what is stored because a kernel is full
constexpr double short_way = 64, long_program = 512;  ///< what loops and functions weigh that run one after another

/// A place at which a kernel needs a value.
struct Use {
  int kernel = 0;
  Place place;
  SmallVector<int, 3> source_uses;  ///< for each source, which of its uses serves this one
  UOps ranges;                      ///< opened here, by a REDUCE
  int before = -1;                  ///< one of the same value in the same kernel, where there are many
  double weight = 0;                ///< of the kernel without it
};

struct Value {
  std::vector<Use> uses;
  std::vector<UOp> exprs;  ///< one a use
  int kernel = -1;         ///< that stores it, if it is stored
  UOp storage;             ///< the PARAM it is stored in
  int depth = 0;           ///< REDUCEs on the longest way down to memory
  double length = 0;       ///< of that way, in what its loops and functions weigh
};

struct RangeInfo {
  double size = 1;
  bool reduces = false;
  bool joins = false;          ///< of a maximum and the sums that are carried with it
  SmallVector<int, 6> around;  ///< ids of the ranges it stands in, itself included, sorted
};

class Rangeify {
 public:
  Rangeify(const std::vector<UOp>& order, const std::vector<const UOp*>& joinable, const Effects& effects, const TargetOf& target_of,
           int32_t first_temporary)
      : order_(order),
        joinable_(joinable),
        effects_(effects),
        target_of_(target_of),
        next_slot_(first_temporary),
        broadcasts_(broadcasts_of(order)),
        numbers_(order.size()),
        values_(order.size()) {
    for (size_t i = 0; i < order.size(); ++i) numbers_[order[i]] = int(i);
  }

  /// Decides what is stored: `forced`, and what pays if the values of `expected` are in memory. The numbers of those values in the order.
  std::vector<int> place(const NodeSet& forced, const NodeSet& expected) {
    forced_ = &forced;
    expected_ = &expected;
    measure_depths();
    give_storage_to_outputs();
    for (size_t i = order_.size(); i-- > 0;) place(order_[i]);
    std::vector<int> stored;
    for (size_t i = 0; i < values_.size(); ++i)
      if (values_[i].storage) stored.push_back(int(i));
    return stored;
  }

  Kernels lower() {
    for (const UOp& u : order_) lower(u);
    Kernels out;
    std::vector<size_t> by_root(kernels_.size());
    for (size_t i = 0; i < by_root.size(); ++i) by_root[i] = by_root.size() - 1 - i;  // made from outputs to inputs
    std::vector<int> renumbered(kernels_.size());
    for (size_t i = 0; i < by_root.size(); ++i) renumbered[by_root[i]] = int(i);
    for (size_t i : by_root) {
      for (int& a : kernels_[i].after) a = renumbered[size_t(a)];
      out.kernels.push_back(std::move(kernels_[i]));
    }
    out.temporaries = std::move(temporaries_);
    return out;
  }

 private:
  Value& value(const UOp& u) { return values_[size_t(*numbers_.find(u))]; }

  void measure_depths() {
    for (const UOp& u : order_) {
      int depth = 0;
      double length = 0;
      for (const UOp& s : scope_sources(u)) {
        depth = std::max(depth, value(s).depth);
        length = std::max(length, value(s).length);
      }
      const double weight = compile_weight(u);
      value(u).depth = depth + (u.is(Op::REDUCE) ? 1 : 0);
      value(u).length = length + (weight >= least_weight ? weight : 0);
      longest_ = std::max(longest_, value(u).length);
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
      value(*v).kernel = -2;  // to be made when it is placed
      elided_.insert(store);
      store_of_[*v] = effects_.number(store);
    }
  }

  static bool can_be_stored(const UOp& u) {
    return u.dtype() != DType::void_ && u.dtype() != DType::index && !u.in(Group::movement) && !u.in(Group::memory) && !u.is(Op::AFTER) &&
           !u.is(Op::CONST) && !u.is(Op::VAR);
  }

  // Ranges.

  UOp new_range(const SInt& given, AxisKind kind, SmallVector<int, 6> around) {
    const SInt size = given.known() ? given : SInt(symbolic::simplify_index(given.uop()));  // as it will be in index expressions
    if (size.known() && size.value() == 1) return index_const(0);
    const int id = int(ranges_.size());
    around.push_back(id);
    ranges_.push_back({.size = double(std::max<int64_t>(size.max(), 1)), .reduces = kind == AxisKind::reduce, .around = std::move(around)});
    return range(size.uop(), {.id = id, .kind = kind});
  }

  /// The ranges that an expression's evaluation stands in: those it depends on, and those they stand in.
  SmallVector<int, 6> around(const Use& use) const {
    SmallVector<int, 6> all;
    auto join = [&](const UOp& e) {
      for (const UOp& r : ranges_of(e))
        for (int id : ranges_[size_t(r.arg_as<RangeArg>().id)].around) all.push_back(id);
    };
    for (const UOp& e : use.place.at) join(e);
    // Nothing is computed once for all of a kernel that many threads share.
    const Kernel& k = kernels_[size_t(use.kernel)];
    const bool each_item = target_of_(k.device).has_groups;
    for (size_t i = 0; i < k.ranges.size() && (i == 0 || each_item); ++i) join(k.ranges[i]);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  double evaluations(const Use& use) const {
    double n = 1;
    bool in_reduce = false, in_joined = false;
    const auto ids = around(use);
    for (int id : ids) {
      n *= ranges_[size_t(id)].size;
      in_reduce = in_reduce || ranges_[size_t(id)].reduces;
      in_joined = in_joined || ranges_[size_t(id)].joins;
    }
    if (!in_reduce) return n;
    // Outputs that share the element are computed together, as far as registers reach.
    double shared = 1;
    for (const UOp& r : kernels_[size_t(use.kernel)].ranges) {
      const int id = r.arg_as<RangeArg>().id;
      if (std::binary_search(ids.begin(), ids.end(), id) && !depends_on(use, r)) shared *= ranges_[size_t(id)].size;
    }
    const Target& target = target_of_(kernels_[size_t(use.kernel)].device);
    return n / std::min(shared, in_joined ? model_.accumulators(target) : model_.register_tile);
  }
  static bool depends_on(const Use& use, const UOp& range) {
    return std::any_of(use.place.at.begin(), use.place.at.end(), [&](const UOp& e) { return is_open_over(e, std::span(&range, 1)); });
  }

  // From users to sources.

  int new_kernel(const UOp& root, const Shape& shape, Symbol device) {
    Kernel k;
    k.root = root;
    k.device = device;
    SmallVector<int, 6> outer;
    for (const SInt& n : shape) {
      const UOp r = new_range(n, AxisKind::loop, outer);
      if (r.is(Op::RANGE)) {
        k.ranges.push_back(r);
        outer.push_back(r.arg_as<RangeArg>().id);
      }
      root_place_.push_back(r);
    }
    kernels_.push_back(std::move(k));
    weights_.push_back(0);
    return int(kernels_.size()) - 1;
  }
  Use root_use(const UOp& root, const Shape& shape, Symbol device) {
    root_place_.clear();
    Use use{new_kernel(root, shape, device), {}, {}, {}};
    use.place.at = root_place_;
    return use;
  }

  /// A condition that says nothing of the place: an element of a broadcast, say, which is there whether it is needed or not. Without it the
  /// value is the same in all the loops of the condition.
  static bool is_needless(const Place& place) {
    const OpenRanges ranges = ranges_of(place.valid);
    return !ranges.empty() && std::none_of(place.at.begin(), place.at.end(), [&](const UOp& e) { return is_open_over(e, ranges); });
  }

  int add_use(const UOp& u, int kernel, Place place) {
    if (place.valid && is_needless(place)) place.valid = UOp();
    const int number = *numbers_.find(u);
    auto& uses = values_[size_t(number)].uses;
    for (size_t i = 0; i < std::min(uses.size(), most_uses); ++i)
      if (uses[i].kernel == kernel && uses[i].place == place) return int(i);
    double& weight = weights_[size_t(kernel)];
    uses.push_back({kernel, std::move(place), {}, {}});
    uses.back().weight = weight;
    weight += compile_weight(u);
    if (uses.size() <= most_uses) return int(uses.size()) - 1;
    // Of memory that very many kernels read only the uses in this kernel are compared.
    int& last = last_use_.try_emplace(uint64_t(number) << 32 | uint32_t(kernel), -1).first->second;
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
    if (u.in(Group::effect) || value(u).uses.empty()) {
      if (value(u).kernel != -2) return;  // an output that only its store uses still has to be made
    }
    const bool memory = u.is(Op::PARAM) || u.is(Op::AFTER);
    if (memory && !forced_->contains(u)) return;
    if (forced_->contains(u) || value(u).kernel == -2 || worth_storing(u)) {
      place_stored(u);
    } else {
      for (Use& use : value(u).uses) pass_on(u, use);
    }
  }

  void place_store(const UOp& u) {
    if (elided_.contains(u)) return;
    const Shape& shape = shape_of(u.src(1));
    const UOp memory = memory_of(u.src(0));
    Use use = root_use(u, shape_of(u.src(0)), device_of(memory));
    Kernel& k = kernels_[size_t(use.kernel)];
    k.store = effects_.number(u);
    k.target = memory;
    Place target = use.place;
    for (const UOp* t = &u.src(0); !t->is(Op::PARAM); t = &t->src(0)) {
      if (t->is(Op::AFTER)) continue;
      target = source_place(*t, target);
    }
    k.target_index = target.at[0];
    store_kernel_[u] = use.kernel;
    store_use_[u] = add_use(u.src(1), use.kernel, shape.empty() ? Place{} : use.place);
  }

  void place_stored(const UOp& u) {
    Value& v = value(u);
    const Shape& shape = shape_of(u);
    Symbol device = device_of(u);
    if (v.storage) device = device_of(v.storage);
    if (device.empty()) device = kernels_[size_t(v.uses[0].kernel)].device;
    if (!v.storage) {
      int64_t size = 1;
      for (int64_t n : max_sizes(shape)) size *= n;
      v.storage = param(u.dtype(), std::max<int64_t>(size, 1), {.slot = next_slot_++, .device = device});
      temporaries_.push_back(v.storage);
    }
    Use use = root_use(u, shape, device);
    v.kernel = use.kernel;
    Kernel& k = kernels_[size_t(v.kernel)];
    k.target = v.storage;
    if (const int* s = store_of_.find(u)) k.store = *s;
    k.target_index = flat_index(u, use.place);
    if (u.is(Op::COPY))
      use.source_uses.push_back(add_use(u.src(0), use.kernel, use.place));
    else if (!u.is(Op::PARAM) && !u.is(Op::AFTER))
      pass_on(u, use);
    root_uses_[u] = std::move(use);
  }

  bool worth_storing(const UOp& u) {
    if (u.is(Op::CONTIGUOUS) || u.is(Op::COPY)) return true;
    if (!can_be_stored(u) || u.is(Op::STACK) || u.is(Op::IOTA) || is_test_of_place(u)) return false;
    const auto& uses = value(u).uses;
    if (std::ranges::all_of(uses, [&](const Use& use) { return joined_ranges(u, use); })) return false;
    double n = 1;
    for (int64_t s : max_sizes(shape_of(u))) n *= double(s);
    double times = 0;
    for (const Use& use : uses) times += evaluations(use);
    const double most = is_step(u, n, times) ? most_step_weight : most_weight;
    const auto is_late = [&](const Use& use) { return use.weight >= (outputs_of(use) <= small_value ? most : most_weight); };
    if (const auto late = std::ranges::find_if(uses, is_late); late != uses.end() && may_be_cut(u, *late)) return true;
    const bool starves = u.is(Op::REDUCE) && uses.size() == 1 && starves_threads(uses[0], n);
    const bool hoisted = u.is(Op::REDUCE) && uses.size() == 1 && !stands_in_all_loops(uses[0]);
    const bool summed = u.is(Op::REDUCE) && uses.size() == 1 && stands_in_a_reduction(uses[0]) && !in_one_sum_.contains(u);
    if (uses.size() == 1 && times <= n && !starves && !hoisted && !summed) return false;
    if (uses.size() > most_uses) return true;
    const Target& target = target_of_(kernels_[size_t(uses[0].kernel)].device);
    // What is carried along in a loop of the kernel anyway is at hand, too.
    const auto in_memory = [&](const UOp& s) {
      return value(s).storage || forced_->contains(s) || expected_->contains(s) || (s.is(Op::REDUCE) && joined_ranges(s, uses[0]));
    };
    const InlineCost one = inline_cost(u, model_, target, in_memory);
    // To mask it each time that it is read is little beside computing it.
    if (const UOp inner = inside_of_padding(u); inner && can_be_stored(inner) && !in_memory(inner) && 50 * times < n * one.cost)
      return false;
    const double stored = model_.store(target, n, times, u.dtype(), uses.size() > 1 && one.reuse >= model_.register_tile ? parts_of(u) : 1);
    // In the loops of another reduction each is computed by itself, not in a tile with its neighbours.
    if ((hoisted || (summed && 2 * stored < n * one.cost)) && one.reuse >= model_.register_tile) return true;
    if (starves && n * one.cost > 50 * model_.kernel(target)) return true;
    return stored + n * one.cost < times * one.cost;
  }

  /// A few numbers that a program of many loops or functions one after another would compute again at each place, such as the state of a
  /// recursion.
  bool is_step(const UOp& u, double n, double times) {
    return longest_ >= long_program && value(u).length >= short_way && n <= small_value && times > n && times <= 16 * small_value;
  }

  double outputs_of(const Use& use) const {
    double outputs = 1;
    for (const UOp& r : kernels_[size_t(use.kernel)].ranges) outputs *= ranges_[size_t(r.arg_as<RangeArg>().id)].size;
    return outputs;
  }

  /// Not products of which a reduction makes less, nor what is little more than what it is made of.
  bool may_be_cut(const UOp& u, const Use& use) const {
    double n = 1;
    for (int64_t s : max_sizes(shape_of(u))) n *= double(s);
    return (n <= outputs_of(use) || !broadcasts_.contains(u)) && !is_light(u);
  }

  /// To compute it of what is in memory is little more than to load it.
  bool is_light(const UOp& u) const {
    double weight = 0;
    for (std::vector<const UOp*> stack{&u}; !stack.empty();) {
      const UOp& x = *stack.back();
      stack.pop_back();
      weight += compile_weight(x);
      if (weight > least_weight) return false;
      if (x.is(Op::PARAM) || x.is(Op::AFTER) || (x != u && (values_[size_t(*numbers_.find(x))].storage || expected_->contains(x))))
        continue;
      for (const UOp& s : x.in(Group::movement) ? x.src().first(1) : x.src())
        if (s.dtype() != DType::index) stack.push_back(&s);
    }
    return true;
  }

  /// Into how many parts a value may be taken apart so that kernels make and use one after another (`repeat_kernels`): its outermost axis
  /// is a loop of its own wherever it is used.
  double parts_of(const UOp& u) {
    const Shape& shape = shape_of(u);
    const auto axis = std::ranges::find_if(shape, [](const SInt& s) { return !s.known() || s.value() != 1; });
    if (axis == shape.end() || !axis->known()) return 1;
    const auto moves = [&](const Use& use) {
      const UOp& at = use.place.at[size_t(axis - shape.begin())];
      return at.is(Op::RANGE) && at.src(0) == axis->uop() && !target_of_(kernels_[size_t(use.kernel)].device).has_groups;
    };
    return std::ranges::all_of(value(u).uses, moves) ? double(axis->value()) : 1;
  }

  /// A comparison of numbers of elements, which loops have at hand: where it chooses between values, whole loops may do without.
  static bool is_test_of_place(const UOp& u) {
    int most_nodes = 16;
    return u.dtype() == DType::bool_ && is_made_of_places(u, most_nodes);
  }
  static bool is_made_of_places(const UOp& u, int& most_nodes) {
    const bool is_part = u.in(Group::comparison) || u.in(Group::movement) || u.is(Op::IOTA) || u.is(Op::CONST) || u.is(Op::VAR) ||
                         u.is(Op::CAST) || u.is(Op::AND) || u.is(Op::ADD);
    if (!is_part || most_nodes-- == 0) return false;
    return std::ranges::all_of(u.src(), [&](const UOp& s) { return s.dtype() == DType::index || is_made_of_places(s, most_nodes); });
  }

  /// What a padding, and masks around it, leave as it is: that is smaller, and its kernel has whole loops. Null where nothing is padded.
  static UOp inside_of_padding(const UOp& u) {
    bool padded = false;
    const UOp* x = &u;
    for (;;) {
      if (x->is(Op::WHERE) && (is_filler(x->src(2)) || is_filler(x->src(1)))) {
        x = &x->src(is_filler(x->src(2)) ? 1 : 2);
      } else if (x->in(Group::movement)) {
        padded = padded || x->is(Op::PAD);
        x = &x->src(0);
      } else {
        return padded ? *x : UOp();
      }
    }
  }
  static bool is_filler(const UOp& u) { return u.is(Op::CONST) || (u.in(Group::movement) && is_filler(u.src(0))); }

  /// False if some loops of the kernel are inside of what evaluates the value.
  bool stands_in_all_loops(const Use& use) const {
    const auto ids = around(use);
    return std::ranges::all_of(kernels_[size_t(use.kernel)].ranges,
                               [&](const UOp& r) { return std::binary_search(ids.begin(), ids.end(), int(r.arg_as<RangeArg>().id)); });
  }

  bool stands_in_a_reduction(const Use& use) const {
    return std::ranges::any_of(around(use), [&](int id) { return ranges_[size_t(id)].reduces && !ranges_[size_t(id)].joins; });
  }

  /// The kernel has few outputs, and this value could have been computed by many threads.
  bool starves_threads(const Use& use, double n) const {
    return outputs_of(use) < model_.per_call_parallel && n >= model_.per_call_parallel;
  }

  void pass_on(const UOp& u, Use& use) {
    if (u.in(Group::movement)) {
      use.source_uses.push_back(add_use(u.src(0), use.kernel, source_place(u, use.place)));
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
    use.ranges = reduce_ranges(u, use, arg.axes, shape);
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

  /// A maximum and the sums that can be carried with it, in one kernel: they run over the same ranges.
  UOp joined_key(const UOp& u, const Use& use) {
    const UOp* max = joinable_[size_t(*numbers_.find(u))];
    if (!max) return {};
    UOps key{index_const(use.kernel), *max};
    for (int a : u.arg_as<ReduceArg>().axes) key.push_back(shape_of(u.src(0))[size_t(a)].uop());
    held_.push_back(UOp(Op::TUPLE, DType::void_, key));
    return held_.back();
  }

  /// Those ranges, if the REDUCE finds them made by another at this use, which stands in none of them: a loop in one of them need not
  /// depend on it.
  const UOps* joined_ranges(const UOp& u, const Use& use) {
    const UOp key = joined_key(u, use);
    const UOps* made = key ? joined_ranges_.find(key) : nullptr;
    if (!made || (use.place.valid && is_open_over(use.place.valid, *made))) return nullptr;
    const auto outside = around(use);
    const auto inside = [&](const UOp& r) { return r.is(Op::RANGE) && std::ranges::binary_search(outside, r.arg_as<RangeArg>().id); };
    return std::ranges::any_of(*made, inside) ? nullptr : made;
  }

  UOps reduce_ranges(const UOp& u, const Use& use, const Axes& axes, const Shape& shape) {
    if (const UOps* made = joined_ranges(u, use)) return *made;
    const UOps out = own_reduce_ranges(u, use, axes, shape);
    if (const UOp key = joined_key(u, use); key && !joined_ranges_.contains(key)) {
      joined_ranges_[key] = out;
      for (const UOp& r : out)
        if (r.is(Op::RANGE)) ranges_[size_t(r.arg_as<RangeArg>().id)].joins = true;
    }
    return out;
  }

  /// Reduces of one kernel, at one place, of one depth, over axes of the same sizes, share their ranges.
  UOps own_reduce_ranges(const UOp& u, const Use& use, const Axes& axes, const Shape& shape) {
    UOps key{index_const(use.kernel), index_const(value(u).depth), use.place.valid ? use.place.valid : bool_const(true)};
    for (const UOp& e : use.place.at) key.push_back(e);
    for (int a : axes) key.push_back(shape[size_t(a)].uop());
    const UOp k(Op::TUPLE, DType::void_, key);
    if (const UOps* shared = reduce_ranges_.find(k)) return *shared;
    held_.push_back(k);
    SmallVector<int, 6> outer = around(use);
    UOps out;
    for (int a : axes) {
      out.push_back(new_range(shape[size_t(a)], AxisKind::reduce, outer));
      if (out.back().is(Op::RANGE)) outer.push_back(out.back().arg_as<RangeArg>().id);
    }
    reduce_ranges_[k] = out;
    return out;
  }

  // From sources to users.

  void lower(const UOp& u) {
    Value& v = value(u);
    if (u.is(Op::STORE)) {
      if (const int* use = store_use_.find(u)) kernels_[size_t(store_kernel_[u])].value = value(u.src(1)).exprs[size_t(*use)];
      return;
    }
    if (v.kernel >= 0) {
      lower_stored(u, v);
    } else {
      for (const Use& use : v.uses) v.exprs.push_back(expression(u, use));
    }
  }

  void lower_stored(const UOp& u, Value& v) {
    Kernel& k = kernels_[size_t(v.kernel)];
    const Use& root = *root_uses_.find(u);
    if (u.is(Op::COPY)) {
      const UOp* s = &u.src(0);
      while (s->is(Op::RESHAPE)) s = &s->src(0);
      const Value& source = value(*s);
      k.copied = source.storage ? source.storage : *s;
      if (source.kernel >= 0)
        k.after.push_back(source.kernel);
      else
        k.reads.push_back(*s);
      k.target_index = UOp();
    } else {
      k.value = expression(u, root);
    }
    for (const Use& use : v.uses) {
      kernels_[size_t(use.kernel)].after.push_back(v.kernel);
      const UOp loaded = read(v.storage, flat_index(u, use.place), use.place.valid);
      v.exprs.push_back(k.value ? as_stored(k.value, root.place, loaded, use.place) : loaded);
    }
  }

  /// What is loaded of a value, with what its kernel knows of its place: scores that a mask made -inf are masked again, and what such
  /// scores made 0 is a WEIGHT. It tells loops what they may leave out.
  static UOp as_stored(const UOp& stored, const Place& stored_at, const UOp& loaded, const Place& at) {
    if (!is_float(stored.dtype())) return loaded;
    NodeMap<UOp> there;
    for (size_t i = 0; i < at.at.size(); ++i)
      if (stored_at.at[i].is(Op::RANGE)) there[stored_at.at[i]] = at.at[i];
    const auto known_there = [&](Idle idle) {
      Conditions all, out;
      add_conditions(stored, idle, all);
      for (const Condition& c : all)
        if (is_of_places_only(c.test) && std::ranges::all_of(ranges_of(c.test), [&](const UOp& r) { return there.contains(r); }))
          out.push_back({substitute(c.test, there), c.is});
      return out;
    };
    if (const UOp counts = all_hold(known_there(Idle::weight))) return UOp(Op::WEIGHT, loaded.dtype(), {loaded, counts});
    const UOp counts = all_hold(known_there(Idle::least));
    return counts ? where(counts, loaded, constant(min_value(stored.dtype()))) : loaded;
  }

  /// The gate only keeps the access inside the memory: what is read where it is false does not matter.
  static UOp read(const UOp& memory, const UOp& at, const UOp& valid) {
    const bool gated = valid && !is_const(valid, 1) && !always_inside(at, memory);
    return load(gated ? index_valid(memory, at, valid) : index(memory, at));
  }

  static bool always_inside(const UOp& at, const UOp& memory) {
    const SInt size = numel(shape_of(memory));
    const symbolic::Bounds b = symbolic::bounds(at);
    return size.known() && b.min >= 0 && b.max < size.value();
  }

  /// `u` at a place, from the expressions of its sources.
  UOp expression(const UOp& u, const Use& use) {
    auto source = [&](size_t i) -> const UOp& { return value(u.src(i)).exprs[size_t(use.source_uses[i])]; };
    switch (u.op()) {
      case Op::CONST: return constant(u.arg_as<ConstArg>().value);
      case Op::VAR: return u;
      case Op::IOTA: return cast(use.place.at[0], u.dtype());
      case Op::PARAM:
      case Op::AFTER: return read_state(u, use);
      case Op::RESHAPE:
      case Op::PERMUTE:
      case Op::EXPAND:
      case Op::SHRINK:
      case Op::FLIP:
      case Op::CONTIGUOUS: return source(0);
      case Op::PAD: return padded(u, use, source(0));
      case Op::REDUCE: return reduced(u, use, source(0));
      case Op::STACK: {
        UOp out = source(0);
        for (size_t i = 1; i < u.src_count(); ++i) out = where(use.place.at[0] < int64_t(i), out, source(i));
        return out;
      }
      default: {
        UOps sources;
        for (size_t i = 0; i < u.src_count(); ++i) sources.push_back(source(i));
        return UOp(u.op(), u.dtype(), sources, u.arg());
      }
    }
  }

  UOp read_state(const UOp& state, const Use& use) {
    kernels_[size_t(use.kernel)].reads.push_back(state);
    Place p = use.place;
    const UOp* t = &state;
    for (; !t->is(Op::PARAM); t = &t->src(0))
      if (!t->is(Op::AFTER)) p = source_place(*t, p);
    return read(*t, p.at[0], p.valid);
  }

  static UOp padded(const UOp& u, const Use& use, const UOp& inside) {
    const UOp valid = source_place(u, {use.place.at, {}}).valid;
    if (!valid || is_const(valid, 1)) return inside;
    const bool gated = inside.is(Op::LOAD) && inside.src(0).src_count() == 3 && inside.src(0).src(2) == both(use.place.valid, valid);
    return gated ? inside : where(valid, inside, constant(u.dtype(), 0));
  }

  static bool is_of_places_only(const UOp& condition) {
    const std::vector<UOp> nodes = toposort(condition);
    return std::none_of(nodes.begin(), nodes.end(), [](const UOp& u) { return u.is(Op::LOAD) || u.is(Op::REDUCE); });
  }

  /// A sum of sums, each perhaps padded with zeros, is one sum over all their ranges; over ranges of its own, as others may be summed
  /// over only some of them.
  UOp nested_sum(const UOp& outer) {
    const UOp& x = outer.src(0);
    if (outer.arg_as<ReduceArg>().op != Op::ADD || is_general_reduce(outer)) return outer;
    const bool gated = x.is(Op::WHERE) && is_const(x.src(2), 0) && is_of_places_only(x.src(0));
    const UOp& inner = gated ? x.src(1) : x;
    if (!inner.is(Op::REDUCE) || inner.arg_as<ReduceArg>().op != Op::ADD || inner.dtype() != x.dtype()) return outer;
    UOps closed(closed_ranges(outer));
    const std::span<const UOp> below = closed_ranges(inner);
    closed.append(below.begin(), below.end());
    const UOp key(Op::TUPLE, DType::void_, closed);
    UOps* own = reduce_ranges_.find(key);
    if (!own) {
      held_.push_back(key);
      UOps made;
      for (const UOp& r : closed) made.push_back(new_range(SInt(r.src(0)), AxisKind::reduce, {}));
      own = &(reduce_ranges_[key] = made);
    }
    NodeMap<UOp> to_own;
    for (size_t i = 0; i < closed.size(); ++i) to_own[closed[i]] = (*own)[i];
    UOps sources{substitute(gated ? where(x.src(0), inner.src(0), x.src(2)) : inner.src(0), to_own)};
    sources.append(own->begin(), own->end());
    return UOp(Op::REDUCE, outer.dtype(), sources, outer.arg());
  }

  UOp reduced(const UOp& u, const Use& use, const UOp& x) {
    UOps ranges;
    for (const UOp& r : use.ranges)
      if (r.is(Op::RANGE)) ranges.push_back(r);
    const bool general = u.src_count() > 1;  // identity, step and merge follow
    const Op op = u.arg_as<ReduceArg>().op;
    if (ranges.empty() && !general) return x;
    if (ranges.size() == 1 && op == Op::ADD)
      if (const UOp one = selected(x, ranges[0])) return one;
    UOps sources{x};
    for (size_t i = 1; i < u.src_count(); ++i) sources.push_back(u.src(i));
    sources.append(ranges.begin(), ranges.end());
    return nested_sum(UOp(Op::REDUCE, u.dtype(), sources, ReduceArg{op, {}}));
  }

  const std::vector<UOp>& order_;
  const std::vector<const UOp*>& joinable_;
  const Effects& effects_;
  const TargetOf& target_of_;
  const NodeSet* forced_ = nullptr;
  const NodeSet* expected_ = nullptr;
  const CostModel model_{};
  int32_t next_slot_;
  const NodeSet broadcasts_;
  NodeMap<int> numbers_;
  std::vector<Value> values_;
  double longest_ = 0;
  std::vector<Kernel> kernels_;
  std::vector<double> weights_;  ///< of what each kernel computes and loads so far
  std::vector<RangeInfo> ranges_;
  std::vector<UOp> temporaries_;
  UOps root_place_;
  NodeSet elided_;
  NodeSet in_one_sum_;  ///< what is summed up as it is: sums of it are one sum with the other
  NodeMap<int> store_of_, store_use_, store_kernel_;
  NodeMap<Use> root_uses_;
  std::unordered_map<uint64_t, int> last_use_;  ///< of a value in a kernel
  NodeMap<UOps> reduce_ranges_, joined_ranges_;
  std::vector<UOp> held_;
};

/// True if a kernel reads what it writes over at another element than the one it writes.
bool overlaps_itself(const Kernel& k, const Effects& effects) {
  if (k.store < 0 || !k.value) return false;
  const UOp state = state_of(effects.stores()[size_t(k.store)].src(0));
  if (std::find(k.reads.begin(), k.reads.end(), state) == k.reads.end()) return false;
  for (const UOp& u : toposort(k.value))
    if (u.is(Op::INDEX) && u.src(0) == k.target && u.src(1) != k.target_index) return true;
  return false;
}

/// More than the device takes as arguments.
bool has_too_many_arguments(const Kernel& k, size_t most) {
  if (!k.value) return false;
  NodeSet memory;
  memory.insert(k.target);
  for (const UOp& root : {k.value, k.target_index})
    for (const UOp* u : borrowed_toposort(root))
      if (u->is(Op::PARAM)) memory.insert(*u);
  return memory.size() > most;
}

}  // namespace

Kernels rangeify(const std::vector<UOp>& order, const Effects& effects, const TargetOf& target_of, int32_t first_temporary) {
  NodeSet forced;
  for (const UOp& u : effects.hazards(order)) forced.insert(u);
  // Users decide before their sources, so what a value costs is known only if one expects which of its sources are stored. The first
  // round expects none, the others what the round before chose.
  std::vector<int> chosen;
  const std::vector<const UOp*> joinable = joinable_reduces(order);
  for (;;) {
    Kernels out;
    for (int round = 0; round < most_rounds; ++round) {
      NodeSet expected(chosen.size());
      for (int i : chosen) expected.insert(order[size_t(i)]);
      Rangeify pass(order, joinable, effects, target_of, first_temporary);
      std::vector<int> now = pass.place(forced, expected);
      const bool settled = now == chosen;
      chosen = std::move(now);
      if (settled || round + 1 == most_rounds) {
        out = pass.lower();
        break;
      }
    }
    bool again = false;
    NodeSet stored(chosen.size());
    for (int i : chosen) stored.insert(order[size_t(i)]);
    for (const Kernel& k : out.kernels) {
      if (overlaps_itself(k, effects)) again = forced.insert(k.root.is(Op::STORE) ? k.root.src(1) : k.root) || again;
      const auto most = size_t(target_of(k.device).max_buffers);
      if (!has_too_many_arguments(k, most)) continue;
      for (const UOp& u : argument_cuts(k.root, most - 1, stored)) again = forced.insert(u) || again;
    }
    if (again) continue;
    const std::vector<UOp> breakers = circle_breakers(out.kernels, effects);
    if (std::ranges::none_of(breakers, [&](const UOp& u) { return forced.insert(u); })) return out;
  }
}

}  // namespace tinygrad::schedule
