#include "schedule/merge_kernels.h"

#include <algorithm>
#include <optional>
#include <queue>

#include "schedule/cost.h"
#include "schedule/kernel_calls.h"
#include "schedule/merge_facts.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

constexpr size_t most_permuted = 4;       ///< axes whose orders are tried
constexpr size_t most_sharers = 8;        ///< kernels that read the same memory and are tried
constexpr double small_kernel = 1 << 12;  ///< elements up to which a launch costs more than the work

const UOp& memory(const UOp& index) { return index.src(0); }

bool contains(std::span<const UOp> all, const UOp& u) { return std::ranges::find(all, u) != all.end(); }

struct Group {
  UOps loops;
  std::vector<UOp> stores;
  UOp copy;  ///< the call, if it is one
  std::vector<UOp> loads;
  std::vector<ReduceLoop> reduces;
  std::vector<int> after;    ///< groups that must run before
  std::vector<int> made_of;  ///< kernels of the list
  bool streams = true, reducing = false;
};

/// Whether two kernels become one.
struct Verdict {
  Merge reason = Merge::nothing_saved;
  double number = 0, most = 0;  ///< where a limit decided
};

class Merger {
 public:
  Merger(const TargetOf& target_of, int32_t first_temporary, Explainer* explainer)
      : target_of_(target_of), first_temporary_(first_temporary), explainer_(explainer) {}

  void add(const UOp& call) {
    Group g;
    g.made_of = {int(targets_.size())};
    if (is_copy(call)) {
      g.copy = call;
    } else {
      const UOp& nest = only_nest(call);
      g.loops = UOps(loops_of(nest));
      g.stores = {stores_of(nest)[0]};
      MergeFacts f = merge_facts(stored_value(g.stores[0]));
      g.loads = std::move(f.loads);
      g.reduces = std::move(f.reduces);
      g.streams = f.streams;
      g.reducing = !g.reduces.empty() || !f.streams;
      // Indices are read from memory too.
      for (const UOp& u : toposort(stored_at(g.stores[0])))
        if (u.is(Op::LOAD)) g.loads.push_back(u.src(0));
    }
    targets_.push_back(first_target(g));
    g.after = dependences(g);
    const int into = g.copy ? -1 : merged_into(g);
    const int place = into >= 0 ? into : int(groups_.size());
    if (into < 0) groups_.push_back(std::move(g));
    note_accesses(place, call);
  }

  UOp take() {
    drop_unread_temporaries();
    std::vector<UOp> out;
    for (int i : sorted()) {
      const Group& g = groups_[size_t(i)];
      if (!g.copy && g.stores.empty()) continue;
      if (explainer_) explainer_->merged(explained(g));
      const UOp nest = g.copy ? UOp() : nest_of(g.stores, g.loops);
      out.push_back(g.copy ? g.copy : kernel_of(std::span(&nest, 1)));
    }
    return linear_of(out);
  }

 private:
  /// Who touched a PARAM, in the order given.
  struct Accesses {
    int writer = -1;
    std::vector<int> readers;  ///< since then
  };

  std::vector<int> dependences(const Group& g) {
    std::vector<int> all;
    auto read = [&](const UOp& m) {
      if (const Accesses* a = accesses_.find(m); a && a->writer >= 0) all.push_back(a->writer);
    };
    for (const UOp& i : g.loads) read(memory(i));
    if (g.copy) read(copied_from(g.copy));
    if (const Accesses* a = accesses_.find(first_target(g))) {
      if (a->writer >= 0) all.push_back(a->writer);
      all.insert(all.end(), a->readers.begin(), a->readers.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  void note_accesses(int place, const UOp& call) {
    // What was handed over is noted as read: it is, in the order of the groups.
    auto read = [&](const UOp& m) {
      auto& readers = accesses_[m].readers;
      if (readers.empty() || readers.back() != place) readers.push_back(place);
    };
    if (is_copy(call)) {
      read(copied_from(call));
    } else {
      const UOp& store = stores_of(only_nest(call))[0];
      for (const UOp& root : {stored_value(store), stored_at(store)})
        for (const UOp& u : toposort(root))
          if (u.is(Op::LOAD)) read(memory(u.src(0)));
    }
    accesses_[targets_.back()] = {place, {}};
  }

  /// The group that took the kernel in, or -1.
  int merged_into(Group& g) {
    std::vector<int> candidates(g.after.rbegin(), g.after.rend());
    for (const UOp& i : g.loads)
      if (const Accesses* a = accesses_.find(memory(i)))
        for (size_t n = 0; n < a->readers.size() && n < most_sharers; ++n) candidates.push_back(a->readers[a->readers.size() - 1 - n]);
    if (elements(g) <= small_kernel && !groups_.empty()) candidates.push_back(int(groups_.size()) - 1);
    std::vector<int> tried;
    for (int c : candidates) {
      if (contains_number(tried, c)) continue;
      tried.push_back(c);
      Group& into = groups_[size_t(c)];
      const std::optional<UOps> loops = loops_for(into, g);
      const Verdict verdict = !loops ? Verdict{has_equal_sizes(into, g) ? Merge::other_places : Merge::other_loops}
                              : waits_for_through_others(g, c) ? Verdict{Merge::between}
                                                               : merge(into, g, *loops);
      // Kernels of different spaces that only read the same are no candidates.
      if (explainer_ && (loops || contains_number(g.after, c))) note(into, g, verdict);
      if (!are_merged(verdict.reason)) continue;
      into.made_of.insert(into.made_of.end(), g.made_of.begin(), g.made_of.end());
      for (int a : g.after)
        if (a != c && !contains_number(into.after, a)) into.after.push_back(a);
      return c;
    }
    return -1;
  }

  void note(const Group& into, const Group& g, const Verdict& v) {
    explainer_->compared({into.made_of.front(), g.made_of.front(), v.reason, v.number, v.most});
  }
  Explainer::Group explained(const Group& g) const {
    Explainer::Group out{g.made_of, {}, {}};
    for (const UOp& s : g.stores) out.targets.push_back(stored_to(s));
    if (g.copy) out.targets.push_back(copied_to(g.copy));
    for (int k : g.made_of)
      if (!contains(out.targets, targets_[size_t(k)])) out.handed_on.push_back(k);
    return out;
  }

  static bool contains_number(const std::vector<int>& all, int n) { return std::find(all.begin(), all.end(), n) != all.end(); }

  /// The loops of `a` that stand for those of `b`, in b's order; empty if the spaces differ. Where `b` reads what `a` writes with its axes
  /// in another order, that decides; else the orders are equal.
  static std::optional<UOps> loops_for(Group& a, const Group& b) {
    const UOps &ra = a.loops, &rb = b.loops;
    if (a.copy || devices_of_group(a) != devices_of_group(b) || ra.size() != rb.size()) return {};
    std::vector<size_t> order(ra.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto same_sizes = [&] {
      for (size_t i = 0; i < order.size(); ++i)
        if (ra[order[i]].src(0) != rb[i].src(0)) return false;
      return true;
    };
    const auto reordered = [&] {
      UOps out;
      for (size_t i : order) out.push_back(ra[i]);
      return out;
    };
    const UOp* read = nullptr;
    for (const UOp& index : b.loads)
      if (!read && writes(a, memory(index))) read = &index.src(1);
    if (!read || order.size() > most_permuted) return same_sizes() ? std::optional(reordered()) : std::nullopt;
    const UOp* written = nullptr;
    for (const UOp& index : b.loads)
      if (const UOp* o = writes(a, memory(index)); o && &index.src(1) == read) written = &stored_at(*o);
    do {
      if (same_sizes() && symbolic::simplify_index(substitute(*read, loop_map(rb, reordered()))) == *written) return reordered();
    } while (std::next_permutation(order.begin(), order.end()));
    return {};
  }
  /// In any order.
  static bool has_equal_sizes(const Group& a, const Group& b) {
    const auto size = [](const UOp& r) { return r.src(0); };
    return std::ranges::is_permutation(a.loops, b.loops, {}, size, size);
  }
  static NodeMap<UOp> loop_map(const UOps& from, const UOps& to) {
    NodeMap<UOp> map;
    for (size_t i = 0; i < from.size(); ++i) map[from[i]] = to[i];
    return map;
  }

  static double elements(const Group& g) {
    double n = 1;
    for (const UOp& r : g.loops) n *= const_value(r.src(0)) ? double(const_value(r.src(0))->as_int()) : small_kernel;
    return n;
  }

  /// True if another group that `g` waits for waits for group `c`.
  bool waits_for_through_others(const Group& g, int c) {
    std::vector<int> stack;
    std::vector<bool> seen(groups_.size());
    for (int a : g.after)
      if (a != c) stack.push_back(a);
    while (!stack.empty()) {
      const int a = stack.back();
      stack.pop_back();
      if (a == c) return true;
      if (seen[size_t(a)]) continue;
      seen[size_t(a)] = true;
      stack.insert(stack.end(), groups_[size_t(a)].after.begin(), groups_[size_t(a)].after.end());
    }
    return false;
  }

  static UOp* writes(Group& g, const UOp& m) {
    const auto s = std::ranges::find_if(g.stores, [&](const UOp& store) { return stored_to(store) == m; });
    return s == g.stores.end() ? nullptr : &*s;
  }
  static const UOp& first_target(const Group& g) { return g.copy ? copied_to(g.copy) : stored_to(g.stores[0]); }
  static Devices devices_of_group(const Group& g) { return first_target(g).arg_as<ParamArg>().device; }

  /// Takes `b`, one kernel, into the `loops` of `a`, if that is possible and worth it.
  Verdict merge(Group& a, const Group& b, const UOps& loops) {
    if (a.reducing && b.reducing && !(a.streams && b.streams)) return {Merge::two_products};
    if (b.reducing && !b.streams) return {Merge::product_behind};
    const NodeMap<UOp> to_a = loop_map(b.loops, loops);
    const UOp& given = b.stores[0];
    std::vector<UOp> moved = substitute(std::vector<UOp>{stored_at(given), stored_value(given)}, to_a);
    const UOp &target = stored_to(given), at = symbolic::simplify_index(moved[0]);
    UOp& value = moved[1];
    const UOp* before = writes(a, target);
    if (before && stored_at(*before) != at) return {Merge::other_writes};
    for (const UOp& i : a.loads)
      if (memory(i) == target && i.src(1) != at) return {Merge::other_places};

    const double most_elements = std::max(elements(a), elements(b));
    bool takes_result = false;
    if (!hand_over(a, value, takes_result)) return {Merge::other_places};
    const bool is_step = takes_result && !a.reducing && !b.reducing && most_elements <= small_value;
    const double most = is_step ? most_chain_weight : most_joined_weight;
    MergeFacts f = merge_facts(value);
    bool shares_reads = false;
    if (a.streams) {
      share_reduces(a, value, f);
      shares_reads = std::ranges::any_of(f.loads, [&](const UOp& i) { return contains(a.loads, i); });
    }
    const bool is_small = most_elements <= small_kernel;
    if (!takes_result && !before && !shares_reads && !is_small) return {Merge::nothing_saved};
    const auto most_arguments = size_t(target_of_(devices_of_group(a).first()).max_buffers);
    if (const size_t n = buffers(a, f); n > most_arguments) return {Merge::arguments, double(n), double(most_arguments)};
    if (const double w = weight(a, value); w > most) return {Merge::weight, w, most};
    take_in(a, stored(target, at, value), std::move(f));
    return {takes_result ? Merge::takes_result : before ? Merge::same_memory : shares_reads ? Merge::shared_reads : Merge::small};
  }

  /// Replaces what `value` reads of the outputs of `a`. False if it reads them elsewhere than the same iteration writes.
  static bool hand_over(Group& a, UOp& value, bool& saves) {
    NodeMap<UOp> known;
    for (const UOp& u : toposort(value)) {
      if (!u.is(Op::LOAD)) continue;
      const UOp& index = u.src(0);
      const UOp* s = writes(a, memory(index));
      if (!s) continue;
      if (index.src(1) != stored_at(*s) && symbolic::simplify_index(index.src(1)) != stored_at(*s)) return false;
      known[u] = index.src_count() > 2 ? where(index.src(2), stored_value(*s), constant(u.dtype(), 0)) : stored_value(*s);
    }
    saves = saves || known.size() != 0;
    if (known.size() != 0) value = substitute(value, known);
    return true;
  }

  /// Loops of `a` in place of equal ones of `value`, so that both read the same in one.
  static void share_reduces(const Group& a, UOp& value, MergeFacts& f) {
    NodeMap<UOp> to_a;
    for (const ReduceLoop& mine : f.reduces) {
      const bool clear = std::all_of(f.reduces.begin(), f.reduces.end(),
                                     [&](const ReduceLoop& o) { return o.key == mine.key || !contains(o.ranges, mine.ranges[0]); });
      for (const ReduceLoop& theirs : a.reduces) {
        if (!clear || !(theirs.key == mine.key)) continue;
        for (size_t i = 0; i < mine.ranges.size(); ++i)
          if (mine.ranges[i] != theirs.ranges[i]) to_a[mine.ranges[i]] = theirs.ranges[i];
        break;
      }
    }
    if (to_a.size() == 0) return;
    value = substitute(value, to_a);
    f = merge_facts(value);
  }

  static size_t buffers(const Group& a, const MergeFacts& f) {
    NodeSet all;
    for (const UOp& s : a.stores) all.insert(stored_to(s));
    for (const UOp& i : a.loads) all.insert(memory(i));
    for (const UOp& i : f.loads) all.insert(memory(i));
    return all.size() + 1;
  }

  static double weight(const Group& a, const UOp& value) {
    std::vector<UOp> values{value};
    for (const UOp& s : a.stores) values.push_back(stored_value(s));
    double sum = 0;
    for (const UOp& u : toposort(values)) sum += compile_weight(u);
    return sum;
  }

  static void take_in(Group& a, UOp store, MergeFacts f) {
    a.loads.insert(a.loads.end(), f.loads.begin(), f.loads.end());
    a.reduces.insert(a.reduces.end(), f.reduces.begin(), f.reduces.end());
    a.reducing = a.reducing || !f.reduces.empty();
    a.streams = a.streams && f.streams;
    if (UOp* before = writes(a, stored_to(store)))
      *before = std::move(store);
    else
      a.stores.push_back(std::move(store));
  }

  void drop_unread_temporaries() {
    NodeSet read;
    for (const Group& g : groups_) {
      if (g.copy) read.insert(copied_from(g.copy));
      for (const UOp& s : g.stores)
        for (const UOp& u : toposort(stored_value(s)))
          if (u.is(Op::LOAD)) read.insert(memory(u.src(0)));
    }
    for (Group& g : groups_)
      std::erase_if(g.stores, [&](const UOp& s) { return is_temporary(stored_to(s)) && !read.contains(stored_to(s)); });
  }
  bool is_temporary(const UOp& memory) const { return memory.arg_as<ParamArg>().slot >= first_temporary_; }

  /// The groups in an order that respects `after`, earlier made ones first.
  std::vector<int> sorted() const {
    std::vector<int> waits(groups_.size());
    std::vector<std::vector<int>> next(groups_.size());
    for (size_t i = 0; i < groups_.size(); ++i)
      for (int a : groups_[i].after) {
        next[size_t(a)].push_back(int(i));
        ++waits[i];
      }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i] == 0) ready.push(int(i));
    std::vector<int> out;
    for (; !ready.empty();) {
      const int i = ready.top();
      ready.pop();
      out.push_back(i);
      for (int n : next[size_t(i)])
        if (--waits[size_t(n)] == 0) ready.push(n);
    }
    return out;
  }

  const TargetOf& target_of_;
  const int32_t first_temporary_;
  Explainer* explainer_;
  std::vector<UOp> targets_;  ///< of the kernels of the list
  std::vector<Group> groups_;
  NodeMap<Accesses> accesses_;
};

}  // namespace

UOp merge_kernels(const UOp& linear, const TargetOf& target_of, int32_t first_temporary, Explainer* explainer) {
  Merger m(target_of, first_temporary, explainer);
  for (const UOp& call : linear.src()) m.add(call);
  return m.take();
}

}  // namespace tinygrad::schedule
