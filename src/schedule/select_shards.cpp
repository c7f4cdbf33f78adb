#include "schedule/select_shards.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "schedule/kernel_calls.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

namespace {

const Devices& devices_of_memory(const UOp& memory) { return memory.arg_as<ParamArg>().device; }
int64_t elements(const UOp& memory) { return const_value(memory.src(0))->as_int(); }

/// An all-reduce of which less goes to each goes to everyone at once.
constexpr int64_t least_sliced_bytes = 64 << 10;

/// Also what is gathered of a constant, which is on one device alone.
bool is_for_shards(const UOp& call) {
  return call.src(0).is(Op::COLLECTIVE) ||
         std::ranges::any_of(call.src(), [](const UOp& a) { return a.is(Op::PARAM) && devices_of_memory(a).are_several(); });
}

/// What a kernel adds up: memory, from an element on that may be a variable's.
struct Term {
  UOp memory;
  int64_t begin = 0;
};

class Selector {
 public:
  Selector(const UOp& linear, const TargetOf& target_of, int32_t first_temporary, Symbol only)
      : target_of_(target_of), only_(only), first_temporary_(first_temporary), next_slot_(first_temporary) {
    for (const UOp& t : temporaries_of(linear, first_temporary)) next_slot_ = std::max(next_slot_, t.arg_as<ParamArg>().slot + 1);
  }

  void add(const UOp& call) {
    const UOp& body = call.src(0);
    if (!is_for_shards(call))
      push(call);
    else if (body.is(Op::COLLECTIVE))
      add_collective(body.arg_as<CollectiveArg>(), copied_to(call), copied_from(call));
    else
      add_kernel(call);
  }

  UOp take() const { return linear_of(calls_); }

 private:
  bool is_wanted(Symbol device) const { return only_.empty() || device == only_; }
  void push(const UOp& call) {
    if (is_wanted(devices_of_memory(call.src(1)).only())) calls_.push_back(call);
  }

  /// A part of memory, where a shard has it.
  UOp part(const UOp& memory, size_t shard) {
    const Devices& devices = devices_of_memory(memory);
    if (!devices.are_several()) return memory;
    ParamArg arg = memory.arg_as<ParamArg>();
    if (arg.slot >= first_temporary_) {
      const int32_t next = next_slot_;
      const auto [first, is_new] = first_slots_.insert(memory, next);
      if (is_new) next_slot_ += int32_t(devices.part_count());
      arg.slot = *first;
    }
    arg.slot += int32_t(devices.part_of(shard));
    arg.device = devices[shard];
    return UOp(Op::PARAM, memory.dtype(), memory.src(), arg);
  }

  void add_kernel(const UOp& call) {
    const UOp body = without_devices(call.src(0));
    const Devices& devices = devices_of_memory(call.src(1));
    for (size_t p = 0; p < devices.part_count(); ++p) {
      const size_t shard = devices.first_shard(p);
      if (!is_wanted(devices[shard])) continue;
      UOps sources{body};
      for (const UOp& a : call.src().subspan(1)) {
        if (a.is(Op::PARAM))
          sources.push_back(part(a, shard));
        else if (a.is(Op::VAR) && !a.arg_as<VarArg>().devices.empty())
          sources.push_back(bind(without_devices(a), int64_t(a.arg_as<VarArg>().devices.value_of(shard))));
        else
          sources.push_back(a);
      }
      push(call.with_src(sources));
    }
  }

  /// The kernel is the same whatever devices it is for.
  UOp without_devices(const UOp& body) {
    if (const UOp* known = plain_.find(body)) return *known;
    NodeMap<UOp> map;
    for (const UOp& u : toposort(body)) {
      if (!u.is(Op::VAR) || u.arg_as<VarArg>().devices.empty()) continue;
      VarArg arg = u.arg_as<VarArg>();
      arg.devices = {};
      map[u] = UOp(Op::VAR, u.dtype(), {}, arg);
    }
    return plain_[body] = map.size() ? substitute(body, map) : body;
  }

  void add_collective(const CollectiveArg& arg, const UOp& to, const UOp& from) {
    if (arg.kind == Collective::allreduce) return add_allreduce(arg, to, from);
    const Devices& devices = devices_of_memory(to);
    for (size_t p = 0; p < devices.part_count(); ++p) {
      const size_t shard = devices.first_shard(p);
      if (!is_wanted(devices[shard])) continue;
      const UOp target = part(to, shard);
      const int64_t n = elements(target), at = arg.at(shard);
      switch (arg.kind) {
        case Collective::scatter: copy(target, part(from, shard), {0, at * n, n}); break;
        case Collective::gather:
        case Collective::allgather: {
          int64_t begin = 0;
          for (size_t s : arg.line(shard)) {
            const UOp source = part(from, s);
            copy(target, source, {begin, 0, elements(source)});
            begin += elements(source);
          }
          break;
        }
        case Collective::reducescatter: add_up(arg, std::span(&target, 1), from, shard, at * n); break;
        case Collective::allreduce: break;
      }
    }
  }

  /// One kernel for all targets of a line, where their devices reach each other's memory; each line's on another device in turn.
  void add_allreduce(const CollectiveArg& arg, const UOp& to, const UOp& from) {
    const Devices& devices = devices_of_memory(to);
    std::vector<bool> is_done(devices.part_count());
    for (size_t p = 0; p < is_done.size(); ++p) {
      if (is_done[p]) continue;
      const std::vector<size_t> line = arg.line(devices.first_shard(p));
      std::vector<std::vector<UOp>> groups;  // of targets that reach each other
      std::map<std::pair<int, Symbol>, size_t> group_of;
      for (size_t q = p; q < is_done.size(); ++q) {
        const size_t shard = devices.first_shard(q);
        if (is_done[q] || arg.line(shard)[0] != line[0]) continue;
        is_done[q] = true;
        const UOp target = part(to, shard);
        const auto [group, is_new] = group_of.try_emplace(reach_of(target), groups.size());
        if (is_new || groups[group->second].size() + line.size() >= most_arguments(target)) {
          group->second = groups.size();
          groups.emplace_back();
        }
        groups[group->second].push_back(target);
      }
      for (std::vector<UOp>& targets : groups)
        std::ranges::rotate(targets, targets.begin() + std::ptrdiff_t(next_device_++ % targets.size()));
      const int64_t bytes = elements(groups[0][0]) * int64_t(itemsize(to.dtype()));
      if (groups.size() > 2 && bytes * int64_t(groups.size()) >= least_sliced_bytes)
        add_sliced_allreduce(arg, groups, from, devices.first_shard(p));
      else
        for (const std::vector<UOp>& targets : groups) add_up(arg, targets, from, devices.first_shard(p), 0);
    }
  }

  /// Each of several groups adds up a slice, and gives it to the others: what goes to each is twice what there is, however many they are.
  void add_sliced_allreduce(const CollectiveArg& arg, std::span<const std::vector<UOp>> groups, const UOp& from, size_t shard) {
    struct Slice {
      UOp memory;
      int64_t begin;
      std::vector<Term> terms;
    };
    const UOp& whole = groups[0][0];
    const auto count_of_groups = int64_t(groups.size());
    const int64_t most = (elements(whole) / (16 * count_of_groups) + 1) * 16;
    std::vector<Slice> slices;
    for (const std::vector<UOp>& targets : groups) {
      const int64_t begin = int64_t(slices.size()) * most, count = std::min(most, elements(whole) - begin);
      if (count <= 0) break;
      const UOp memory = temporary(targets[0], count);
      slices.push_back({memory, begin, terms_for(arg, memory, from, shard, begin)});
    }
    for (const Slice& s : slices) sum(arg.op, std::span(&s.memory, 1), s.terms);
    for (const Slice& s : slices)
      for (const std::vector<UOp>& targets : groups)
        for (const UOp& target : targets) copy(target, s.memory, {s.begin, 0, elements(s.memory)});
  }

  /// Equal for devices whose kernels can use each other's memory: its rank, and a device that does not share its memory.
  std::pair<int, Symbol> reach_of(const UOp& memory) const {
    const Symbol device = devices_of_memory(memory).only();
    return {rank_of(device), target_of_(device).shares_memory ? Symbol() : device};
  }
  /// Whether kernels of the device that has `mine` can use `other`.
  bool reaches(const UOp& mine, const UOp& other) const { return reach_of(mine) == reach_of(other); }
  size_t most_arguments(const UOp& of_kernel) const {
    return size_t(std::max(target_of_(devices_of_memory(of_kernel).only()).max_buffers, 3));
  }

  void copy(const UOp& target, const UOp& source, const CopyRange& range) {
    if (is_wanted(devices_of_memory(target).only())) calls_.push_back(copy_of_range(target, source, range));
  }

  UOp temporary(const UOp& beside, int64_t count) {
    return param(beside.dtype(), count, {.slot = next_slot_++, .device = devices_of_memory(beside)});
  }

  /// What the shards of a line have from an element on, in their order, for a kernel that writes to `target`. What its device does not
  /// reach is copied.
  std::vector<Term> terms_for(const CollectiveArg& arg, const UOp& target, const UOp& from, size_t shard, int64_t begin) {
    std::vector<Term> terms;
    if (!is_wanted(devices_of_memory(target).only())) return terms;
    for (size_t s : arg.line(shard)) {
      const UOp source = part(from, s);
      if (reaches(target, source)) {
        terms.push_back({source, begin});
        continue;
      }
      const UOp here = temporary(target, elements(target));
      copy(here, source, {0, begin, elements(target)});
      terms.push_back({here});
    }
    return terms;
  }

  /// Combines terms into each of the targets, by the device of the first.
  void sum(Op op, std::span<const UOp> targets, std::span<const Term> terms) {
    // A kernel has so many arguments at most: the next ones go on with what those before it stored.
    const size_t most = most_arguments(targets[0]) - targets.size();
    for (size_t i = 0; i < terms.size();) {
      const size_t n = std::min(most, terms.size() - i);
      push(sum_of(op, targets, terms.subspan(i, n), i > 0));
      i += n;
    }
  }

  void add_up(const CollectiveArg& arg, std::span<const UOp> targets, const UOp& from, size_t shard, int64_t begin) {
    sum(arg.op, targets, terms_for(arg, targets[0], from, shard, begin));
  }

  /// Combines the terms, behind what is in the targets already where it `goes_on`.
  static UOp sum_of(Op op, std::span<const UOp> targets, std::span<const Term> terms, bool goes_on) {
    const int64_t n = elements(targets[0]);
    int64_t most = n;
    for (const Term& t : terms) most = std::max(most, elements(t.memory));
    const UOp at = range(n, 0), first = variable("_begin", 0, most - n);
    UOps arguments;
    const auto argument = [&](const UOp& memory) {
      arguments.push_back(memory);
      return param(memory.dtype(), elements(memory), {.slot = int32_t(arguments.size() - 1), .alias = uint16_t(arguments.size())});
    };
    UOps places;
    for (const UOp& t : targets) places.push_back(index(argument(t), at));
    UOp sum = goes_on ? load(places[0]) : UOp();
    int64_t begin = 0;
    for (const Term& t : terms) {
      const UOp term = load(index(argument(t.memory), elements(t.memory) > n ? at + first : at));
      sum = sum ? alu(op, {sum, term}) : term;
      begin = std::max(begin, t.begin);
    }
    std::vector<UOp> stores;
    for (const UOp& p : places) stores.push_back(store(p, sum));
    const UOp effect = nest_of(stores, std::span(&at, 1));
    UOps sources{sink(std::span(&effect, 1), KernelArg{.name = Symbol(fmt::format("E_{}", n)), .opts = {}})};
    sources.append(arguments.begin(), arguments.end());
    if (std::ranges::any_of(terms, [&](const Term& t) { return elements(t.memory) > n; })) sources.push_back(bind(first, begin));
    return UOp(Op::CALL, DType::void_, sources);
  }

  const TargetOf& target_of_;
  const Symbol only_;
  const int32_t first_temporary_;
  int32_t next_slot_;
  size_t next_device_ = 0;
  std::vector<UOp> calls_;
  NodeMap<int32_t> first_slots_;
  NodeMap<UOp> plain_;
};

}  // namespace

UOp select_shards(const UOp& linear, const TargetOf& target_of, int32_t first_temporary, Symbol only) {
  if (std::ranges::none_of(linear.src(), is_for_shards)) return linear;
  Selector selector(linear, target_of, first_temporary, only);
  for (const UOp& call : linear.src()) selector.add(call);
  return selector.take();
}

}  // namespace tinygrad::schedule
