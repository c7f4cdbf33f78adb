#include "schedule/repeat_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "schedule/cost.h"
#include "schedule/kernel_calls.h"
#include "schedule/looped_kernel.h"
#include "shape/ranges.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

struct Access {
  UOp memory, at;  ///< null places of copies
  bool writes = false;
};

/// A step and what it touches.
struct Item {
  UOp step;
  std::vector<Access> accesses;
  NodeSet touched, written;

  explicit Item(UOp s) : step(std::move(s)) { add(step); }
  bool may_repeat() const { return is_kernel(step); }
  const UOp& nest() const { return only_nest(step); }

 private:
  void add(const UOp& step);
  void add(const UOp& memory, const UOp& at, bool writes) {
    accesses.push_back({memory, at, writes});
    touched.insert(memory);
    if (writes) written.insert(memory);
  }
};

void Item::add(const UOp& s) {
  if (is_loop(s)) {
    for (const UOp& inner : s.src(0).src()) add(inner);
  } else if (is_copy(s)) {
    add(copied_from(s), {}, false);
    add(copied_to(s), {}, true);
  } else {
    for (const UOp& u : toposort(only_nest(s)))
      if (u.is(Op::LOAD)) add(u.src(0).src(0), u.src(0).src(1), false);
    for (const UOp& store : stores_of(only_nest(s))) add(stored_to(store), stored_at(store), true);
  }
}

/// For each item the earlier ones that it must run behind, without those that these must run behind themselves.
std::vector<std::vector<size_t>> needs_of(const std::vector<Item>& items) {
  struct State {
    std::optional<size_t> writer;
    std::vector<size_t> readers;  // since then
  };
  NodeMap<State> states;
  std::vector<std::vector<size_t>> needs(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    std::vector<size_t>& own = needs[i];
    for (const Access& a : items[i].accesses) {
      const State& s = states[a.memory];
      if (s.writer) own.push_back(*s.writer);
      if (a.writes) own.insert(own.end(), s.readers.begin(), s.readers.end());
    }
    std::erase(own, i);
    std::ranges::sort(own);
    own.erase(std::ranges::unique(own).begin(), own.end());
    for (const Access& a : items[i].accesses)
      if (!a.writes) states[a.memory].readers.push_back(i);
    for (const Access& a : items[i].accesses)
      if (a.writes) states[a.memory] = {i, {}};
  }
  return needs;
}

double bytes(const UOp& memory) { return double(elements(memory)) * double(itemsize(memory.dtype())); }

/// Kernels for a loop around them, in their order, with the range of each that the loop takes over.
struct Group {
  std::vector<size_t> members;
  std::vector<UOp> ranges;
  int64_t size = 0;         ///< iterations of such a range
  std::vector<UOp> passed;  ///< temporaries that they alone touch
  int64_t at_once = 1;      ///< iterations of it in one of the loop

  double passed_bytes() const {
    double sum = 0;
    for (const UOp& m : passed) sum += bytes(m);
    return sum;
  }
};

/// What making a temporary again may cost, beside writing it to far memory: the memory is worth something, too.
constexpr double most_to_make_again = 2;
constexpr size_t most_members = 64;

class Repeater {
 public:
  /// Of `own` among the temporaries no other kernels know.
  Repeater(std::span<const UOp> steps, std::span<const UOp> own, int32_t& next_slot, const TargetOf& target_of)
      : own_(own.begin(), own.end()), next_slot_(next_slot), target_of_(target_of) {
    for (const UOp& t : own_) is_own_.insert(t);
    std::vector<Item> items;
    for (const UOp& s : steps) items.emplace_back(s);
    set_items(std::move(items));
  }

  std::vector<UOp> run() {
    for (const UOp& memory : large_in_order()) {
      if (const std::optional<Group> g = group_around(memory))
        repeat(*g);
      else
        make_again(memory);
    }
    std::vector<UOp> out;
    for (Item& i : items_) out.push_back(std::move(i.step));
    return out;
  }

 private:
  static double near_bytes(const Target& target) { return double(std::max(target.l2_bytes, target.l3_bytes / 2)); }
  const Target& target_of(const UOp& memory) const { return target_of_(memory.arg_as<ParamArg>().device.first()); }

  std::vector<size_t> users_of(const UOp& memory) const {
    std::vector<size_t> out;
    for (size_t i = 0; i < items_.size(); ++i)
      if (items_[i].touched.contains(memory)) out.push_back(i);
    return out;
  }

  // Which kernels.

  /// The large temporaries of our own, those that are made first first.
  std::vector<UOp> large_in_order() const {
    std::vector<UOp> out;
    NodeSet seen;
    for (const Item& i : items_)
      for (const Access& a : i.accesses)
        if (a.writes && is_own_.contains(a.memory) && is_large(a.memory) && !target_of(a.memory).has_groups && seen.insert(a.memory))
          out.push_back(a.memory);
    return out;
  }
  bool is_large(const UOp& memory) const { return bytes(memory) * 2 >= near_bytes(target_of(memory)); }

  std::optional<Group> group_around(const UOp& memory) const {
    const std::vector<size_t> users = users_of(memory);
    if (users.size() < 2 || !items_[users[0]].may_repeat()) return {};
    for (const UOp& r : loops_of(items_[users[0]].nest())) {
      Group g;
      g.size = size_of(r);
      if (g.size < 2 || !take_in(g, users)) continue;
      while (grow(g)) {}
      g.passed = passed_on(g);
      g.at_once = iterations_at_once(g);
      if (pays(g)) return g;
    }
    return {};
  }

  /// Takes in all users of another large temporary that members touch.
  bool grow(Group& g) const {
    for (size_t n : g.members)
      for (const Access& a : items_[n].accesses) {
        if (!is_own_.contains(a.memory) || !is_large(a.memory) || is_passed_on(g, a.memory)) continue;
        Group larger = g;
        if (!take_in(larger, users_of(a.memory))) continue;
        g = std::move(larger);
        return true;
      }
    return false;
  }

  /// Adds kernels, and those between them that must stay there. False, and no change, if not all of them can have the loop around them.
  bool take_in(Group& g, std::vector<size_t> numbers) const {
    numbers.insert(numbers.end(), g.members.begin(), g.members.end());
    do {
      std::ranges::sort(numbers);
      numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
      const auto may = [&](size_t n) {
        return items_[n].may_repeat() && devices_of_call(items_[n].step) == devices_of_call(items_[numbers[0]].step);
      };
      if (numbers.size() > most_members || !std::ranges::all_of(numbers, may)) return false;
    } while (add_between(numbers));
    const NodeSet shared = shared_memory(numbers);
    std::vector<UOp> ranges;
    for (size_t n : numbers) {
      ranges.push_back(range_for(items_[n], g.size, shared));
      if (!ranges.back()) return false;
    }
    g.members = std::move(numbers);
    g.ranges = std::move(ranges);
    return true;
  }

  /// The items that must run behind some of these, themselves not included.
  std::vector<bool> waiting_for(const std::vector<size_t>& members) const {
    std::vector<bool> waits(items_.size());
    for (size_t i = members.front() + 1; i < items_.size(); ++i) {
      const auto is_awaited = [&](size_t n) { return waits[n] || std::ranges::binary_search(members, n); };
      waits[i] = !std::ranges::binary_search(members, i) && std::ranges::any_of(needs_[i], is_awaited);
    }
    return waits;
  }

  /// Adds what must run behind one of these and before another; false if there is nothing.
  bool add_between(std::vector<size_t>& numbers) const {
    const std::vector<bool> waits = waiting_for(numbers);
    const size_t before = numbers.size();
    for (size_t i = 0; i < before; ++i)
      for (size_t n : needs_[numbers[i]])
        if (waits[n]) numbers.push_back(n);
    return numbers.size() > before;
  }

  /// What one of them writes and another touches.
  NodeSet shared_memory(const std::vector<size_t>& numbers) const {
    NodeSet shared;
    for (size_t n : numbers)
      for (const Access& a : items_[n].accesses) {
        const auto touches = [&](size_t o) { return o != n && items_[o].touched.contains(a.memory); };
        if (a.writes && std::ranges::any_of(numbers, touches)) shared.insert(a.memory);
      }
    return shared;
  }

  /// A loop of so many iterations that moves by parts of all that is shared: one over outputs, or of sums that are not shared.
  static UOp range_for(const Item& item, int64_t size, const NodeSet& shared) {
    const auto fits = [&](const UOp& r) {
      return size_of(r) == size && std::ranges::all_of(item.accesses, [&](const Access& a) {
               return !shared.contains(a.memory) || ((is_output_loop(r) || !a.writes) && moves_by_parts(a.at, a.memory, r));
             });
    };
    const UOp& k = item.nest();
    const std::span<const UOp> loops = loops_of(k);
    if (const auto r = std::ranges::find_if(loops, fits); r != loops.end()) return *r;
    for (const UOp& u : toposort(k))
      if (u.is(Op::REDUCE))
        for (const UOp& r : closed_ranges(u))
          if (fits(r) && !sums_over(k, r).empty()) return r;
    return {};
  }

  bool is_passed_on(const Group& g, const UOp& memory) const {
    return std::ranges::all_of(users_of(memory), [&](size_t n) { return std::ranges::binary_search(g.members, n); });
  }
  std::vector<UOp> passed_on(const Group& g) const {
    std::vector<UOp> out;
    NodeSet seen;
    for (size_t n : g.members)
      for (const Access& a : items_[n].accesses)
        if (a.writes && is_own_.contains(a.memory) && seen.insert(a.memory) && is_passed_on(g, a.memory) && users_of(a.memory).size() > 1)
          out.push_back(a.memory);
    return out;
  }

  // What is needed again much later.

  /// Where a loop cannot go around all users of the memory, since too much must run between them, the later ones get it made again, each
  /// part when it is needed, if that costs little beside keeping all of it: the scores of an attention for its gradient.
  void make_again(const UOp& memory) {
    const std::vector<size_t> users = users_of(memory);
    const size_t first_late = users_together(users);
    if (first_late < 2 || first_late == users.size()) return;
    const size_t at = users[first_late];
    double cost = 0;
    std::vector<Item> copies;
    const UOp again = copied(memory, at, copies, cost);
    if (!again || cost > most_to_make_again * bytes(memory) * general_costs().memory.far_byte) return;
    std::vector<Item> changed = items_, kept = std::move(items_);
    for (size_t i = first_late; i < users.size(); ++i) changed[users[i]] = with_memory(changed[users[i]], memory, again);
    changed.insert(changed.begin() + std::ptrdiff_t(at), copies.begin(), copies.end());
    set_items(std::move(changed));
    const std::optional<Group> late = group_around(again);
    if (!late || !group_around(memory)) return set_items(std::move(kept));
    repeat(*late);
    if (const std::optional<Group> early = group_around(memory)) repeat(*early);  // of what the other loop has left
  }

  /// How many of the users, from the first on, can have a loop around them.
  size_t users_together(const std::vector<size_t>& users) const {
    size_t most = 0;
    if (users.empty() || !items_[users[0]].may_repeat()) return most;
    for (const UOp& r : loops_of(items_[users[0]].nest())) {
      Group g;
      g.size = size_of(r);
      size_t n = 0;
      while (g.size > 1 && n < users.size() && take_in(g, {users[n]})) ++n;
      most = std::max(most, n);
    }
    return most;
  }

  /// A copy of the memory, made by `copies` of the kernels that make it from what is not large, to run at step `at`; null if that is not
  /// the same there.
  UOp copied(const UOp& memory, size_t at, std::vector<Item>& copies, double& cost) {
    const size_t maker = users_of(memory)[0];
    const Item& item = items_[maker];
    if (!item.may_repeat() || stores_of(item.nest()).size() != 1 || !item.written.contains(memory)) return {};
    Item copy = item;
    for (const Access& a : item.accesses) {
      if (a.writes || !copy.touched.contains(a.memory)) continue;
      const bool is_kept = users_of(a.memory).back() >= at;
      if (is_own_.contains(a.memory) && is_large(a.memory) && !is_kept) {
        const UOp other = copied(a.memory, at, copies, cost);
        if (!other) return {};
        copy = with_memory(copy, a.memory, other);
      } else {
        for (size_t i = maker + 1; i < at; ++i)
          if (items_[i].written.contains(a.memory)) return {};
      }
    }
    const UOp again = new_temporary(memory.dtype(), elements(memory), devices_of_call(item.step));
    own_.push_back(again);
    is_own_.insert(again);
    copies.push_back(with_memory(copy, memory, again));
    cost += arithmetic_cost(stored_value(stores_of(item.nest())[0]), general_costs());
    return again;
  }

  static Item with_memory(const Item& item, const UOp& memory, const UOp& other) {
    NodeMap<UOp> map;
    map[memory] = other;
    const UOp nest = substitute(item.nest(), map);
    return Item(kernel_of(std::span(&nest, 1), binds_of(item.step)));
  }

  // What for.

  /// The most whose share of what is passed on is near; a divisor of their number.
  int64_t iterations_at_once(const Group& g) const {
    const double one = g.passed_bytes() / double(g.size), most = near_bytes(target_of(g.passed[0]));
    int64_t out = 1;
    for (int64_t n = 2; n <= g.size && one * double(n) <= most; ++n)
      if (g.size % n == 0) out = n;
    return out;
  }

  bool pays(const Group& g) const {
    const Target& target = target_of(g.passed[0]);
    if (g.passed_bytes() <= double(std::max(target.l2_bytes, target.l3_bytes))) return false;
    const bool sums = !std::ranges::all_of(g.ranges, is_output_loop);
    if (sums && g.at_once == 1) return false;
    // What does not move with the loop is read in each iteration again.
    double again = 0;
    NodeSet counted;
    for (size_t i = 0; i < g.members.size(); ++i)
      for (const Access& a : items_[g.members[i]].accesses)
        if (!is_open_over(a.at, std::span(&g.ranges[i], 1)) && counted.insert(a.memory)) again += bytes(a.memory);
    const int64_t more = g.size / g.at_once - 1;
    const double times = double(more), launches = double(g.members.size()) * general_costs().launch(target);
    const MemoryCosts& costs = general_costs().memory;
    const double per_byte = again > near_bytes(target) / 2 ? costs.far_byte : costs.stored_byte;
    return g.passed_bytes() * costs.stored_byte > times * (launches + again * per_byte);
  }

  // The loop.

  void repeat(const Group& g) {
    const int64_t times = g.size / g.at_once;
    const UOp loop = variable(new_name(g), 0, times - 1);
    const UOp around = range(times, int32_t(binds_of(items_[g.members[0]].step).size()));
    const UOp bound(Op::BIND, DType::index, {loop, around});
    NodeMap<UOp> parts;
    std::vector<UOp> inner;
    for (const UOp& m : g.passed) {
      inner.push_back(param(m.dtype(), elements(m) / g.size * g.at_once, m.arg_as<ParamArg>()));
      parts[m] = inner.back();
    }
    std::vector<UOp> kernels;
    std::vector<Item> ends;
    for (size_t i = 0; i < g.members.size(); ++i) {
      const Item& member = items_[g.members[i]];
      UOps binds(binds_of(member.step));
      const UOp summed = is_output_loop(g.ranges[i]) ? UOp(member.nest()) : added_up(member.step, g.ranges[i], loop, ends);
      const UOp nest = in_loop(summed, g.ranges[i], loop, g.at_once, parts);
      binds.push_back(bound);
      kernels.push_back(kernel_of(std::span(&nest, 1), binds));
    }
    put(g, Item(loop_around(Repeater(kernels, inner, next_slot_, target_of_).run(), around)), std::move(ends));
  }

  /// That no variable of the kernels has.
  Symbol new_name(const Group& g) const {
    std::vector<Symbol> names;
    for (size_t n : g.members)
      for (const UOp& u : toposort(items_[n].nest()))
        if (u.is(Op::VAR)) names.push_back(u.arg_as<VarArg>().name);
    for (int i = 0;; ++i)
      if (const Symbol name(fmt::format("{}{}", loop_variable, i)); std::ranges::find(names, name) == names.end()) return name;
  }

  /// The nest of a kernel, adding the sums over the range to those of the iterations before; what is made of them in the end is added to
  /// `ends`.
  UOp added_up(const UOp& kernel, const UOp& range, const UOp& loop, std::vector<Item>& ends) {
    const UOp& k = only_nest(kernel);
    const std::span<const UOp> loops = loops_of(k), stores = stores_of(k);
    const std::vector<UOp> sums = sums_over(k, range);
    std::vector<UOp> added;
    const auto add = [&](const UOp& memory, const UOp& at, const UOp& sum) {
      const UOp before = where(loop < 1, constant(sum.dtype(), 0), load(index(memory, at)));
      added.push_back(stored(memory, at, before + sum));
    };
    if (stores.size() == 1 && stored_value(stores[0]) == sums[0] && !reads(k, stored_to(stores[0]))) {
      add(stored_to(stores[0]), stored_at(stores[0]), sums[0]);
      return nest_of(added, loops);
    }
    UOp at = index_const(0);
    int64_t count = 1;
    for (const UOp& r : loops) at = at * size_of(r) + r, count *= size_of(r);
    NodeMap<UOp> in_memory;
    for (const UOp& sum : sums) {
      const UOp memory = new_temporary(sum.dtype(), count, devices_of_call(kernel));
      add(memory, symbolic::simplify_index(at), sum);
      in_memory[sum] = load(index(memory, symbolic::simplify_index(at)));
    }
    std::vector<UOp> results;
    for (const UOp& s : stores) results.push_back(stored(stored_to(s), stored_at(s), substitute(stored_value(s), in_memory)));
    const UOp end = nest_of(results, loops);
    ends.emplace_back(kernel_of(std::span(&end, 1), binds_of(kernel)));
    return nest_of(added, loops);
  }

  UOp new_temporary(DType dtype, int64_t size, const Devices& device) {
    return param(dtype, size, {.slot = next_slot_++, .device = device});
  }

  /// The loop in place of its kernels: others between them that wait for one of them run behind it and its ends, the rest before it.
  void put(const Group& g, Item loop, std::vector<Item> ends) {
    const std::vector<bool> waits = waiting_for(g.members);
    std::vector<Item> before, behind;
    for (size_t i = 0; i < items_.size(); ++i)
      if (!std::ranges::binary_search(g.members, i)) (waits[i] || i > g.members.back() ? behind : before).push_back(std::move(items_[i]));
    before.push_back(std::move(loop));
    std::ranges::move(ends, std::back_inserter(before));
    std::ranges::move(behind, std::back_inserter(before));
    set_items(std::move(before));
  }

  void set_items(std::vector<Item> items) {
    items_ = std::move(items);
    needs_ = needs_of(items_);
  }

  std::vector<UOp> own_;
  NodeSet is_own_;
  int32_t& next_slot_;
  const TargetOf& target_of_;
  std::vector<Item> items_;
  std::vector<std::vector<size_t>> needs_;  ///< of each item
};

}  // namespace

UOp repeat_kernels(const UOp& linear, const TargetOf& target_of, int32_t first_temporary) {
  std::vector<UOp> own;
  NodeSet seen;
  int32_t next_slot = first_temporary;
  for (const UOp& step : linear.src())
    for (const Access& a : Item(step).accesses) {
      const int32_t slot = a.memory.arg_as<ParamArg>().slot;
      next_slot = std::max(next_slot, slot + 1);
      if (slot >= first_temporary && seen.insert(a.memory)) own.push_back(a.memory);
    }
  return linear_of(Repeater(linear.src(), own, next_slot, target_of).run());
}

}  // namespace tinygrad::schedule
