#include "codegen/late/coalesce.h"

#include <algorithm>
#include <bit>
#include <deque>

#include "codegen/late/distance.h"
#include "codegen/rebuild.h"
#include "kernel/accessed_memory.h"
#include "shape/shape.h"
#include "symbolic/known_divisors.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::codegen {

namespace {

constexpr int group_alignment = 16;  // bytes, of each memory of a group

/// A scalar access to memory that has an address.
bool may_join(const UOp& u) {
  if (!u.is(Op::LOAD) && !u.is(Op::STORE)) return false;
  const UOp& place = u.src(0);
  if (!place.is(Op::INDEX) || place.arg_as<IndexArg>().width != 1 || !shape_of(place).empty() || is_bool(place.dtype())) return false;
  if (u.is(Op::LOAD) && u.src_count() == 3 && !const_value(u.src(1))) return false;
  const UOp memory = memory_of(place.src(0));
  return memory.is(Op::PARAM) || (memory.is(Op::BUFFER) && memory.arg_as<BufferArg>().scope == Scope::group);
}

UOp gate_of(const UOp& access) { return access.src_count() == 3 ? UOp(access.src(2)) : UOp(); }

/// Accesses of one memory in one state, with one gate, that differ by numbers.
struct Neighbours {
  UOp key;
  Distance first;
  std::vector<std::pair<int64_t, UOp>> accesses;
};

/// Accesses of a set that become one access.
struct Run {
  UOp from;
  int64_t first = 0;
  std::vector<UOp> lanes;
  UOp made;
};

class Coalescing {
 public:
  explicit Coalescing(const Target& target) : target_(target) {}

  UOp run(const UOp& sink) {
    const std::vector<UOp> nodes = toposort(sink);
    find_runs(nodes);
    for (const UOp& u : nodes) done_[u] = rebuilt(u);
    return done_[sink];
  }

 private:
  void find_runs(const std::vector<UOp>& nodes) {
    NodeMap<int> users(nodes.size());
    for (const UOp& u : nodes)
      for (const UOp& s : u.src()) ++users[s];
    for (const UOp& u : nodes) {
      if (!u.is(Op::GROUP)) continue;
      std::vector<UOp> stores;
      for (const UOp& s : u.src())
        if (s.is(Op::STORE) && may_join(s) && users[s] == 1) stores.push_back(s);
      join(stores);
    }
    const NodeSet copied = join_copied(nodes, users);
    std::vector<UOp> loads;
    for (const UOp& u : nodes)
      if (u.is(Op::LOAD) && may_join(u) && !copied.contains(u)) loads.push_back(u);
    join(loads);
  }

  /// LOADs that are only copied to group memory. They are joined as their STOREs are, since a copy must be one access on both sides.
  NodeSet join_copied(const std::vector<UOp>& nodes, NodeMap<int>& users) {
    NodeSet copied;
    const auto is_copy = [&](const UOp& store) {
      const UOp& x = store.src(1);
      return x.is(Op::LOAD) && may_join(x) && users[x] == 1 && memory_of(store.src(0).src(0)).is(Op::BUFFER);
    };
    std::vector<std::vector<UOp>> together;
    for (const auto& run : runs_) {
      if (!std::ranges::all_of(run.lanes, is_copy)) continue;
      together.emplace_back();
      for (const UOp& s : run.lanes) copied.insert(together.back().emplace_back(s.src(1)));
    }
    for (const std::vector<UOp>& loads : together) join(loads);
    for (const UOp& u : nodes)
      if (target_.async_copy_bytes != 0 && u.is(Op::STORE) && may_join(u) && !place_.contains(u) && is_copy(u)) copied.insert(u.src(1));
    return copied;
  }

  void join(const std::vector<UOp>& accesses) {
    std::deque<Neighbours> all;
    NodeMap<Neighbours*> by_key;
    for (const UOp& u : accesses) {
      const Distance d = distance_of(u.src(0).src(1));
      UOps same{u.src(0).src(0)};
      if (d.from) same.push_back(d.from);
      if (const UOp gate = gate_of(u)) same.push_back(gate);
      const UOp key(Op::TUPLE, DType::void_, same);
      if (!by_key.contains(key)) by_key[key] = &all.emplace_back(Neighbours{key, d, {}});
      by_key[key]->accesses.emplace_back(d.elements, u);
    }
    for (Neighbours& n : all) cut(n);
  }

  /// Cuts neighbours into runs as long as one access may be.
  void cut(Neighbours& n) {
    auto& all = n.accesses;
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto same_place = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (std::adjacent_find(all.begin(), all.end(), same_place) != all.end()) return;  // of two stores to a place one is the last
    const int64_t most = most_at_once(all[0].second, n.first.from);
    for (size_t i = 0; i < all.size();) {
      size_t length = size_t(most);
      while (length > 1 && !is_run(all, i, length)) length /= 2;
      if (length > 1) add_run(n.first.from, std::span(all).subspan(i, length));
      i += length;
    }
  }

  bool is_run(const std::vector<std::pair<int64_t, UOp>>& all, size_t first, size_t length) const {
    if (first + length > all.size() || all[first + length - 1].first - all[first].first != int64_t(length) - 1) return false;
    return target_.unaligned_vectors || all[first].first % int64_t(length) == 0;
  }

  void add_run(const UOp& from, std::span<const std::pair<int64_t, UOp>> accesses) {
    Run& run = runs_.emplace_back(Run{.from = from, .first = accesses[0].first, .lanes = {}, .made = {}});
    for (size_t i = 0; i < accesses.size(); ++i) {
      run.lanes.push_back(accesses[i].second);
      place_[accesses[i].second] = {&run, i};
    }
  }

  /// The elements, a power of two, that one access may move if it begins at a multiple of as many.
  int64_t most_at_once(const UOp& access, const UOp& from) {
    const UOp& place = access.src(0);
    const auto item = int64_t(itemsize(place.dtype()));
    int64_t most = std::max<int64_t>(target_.vector_bits / 8 / item, 1);
    if (target_.most_lanes != 0) most = std::min<int64_t>(most, target_.most_lanes);
    if (!target_.unaligned_vectors) {
      most = std::min(most, std::max<int64_t>(alignment(memory_of(place.src(0))) / item, 1));
      if (from) most = std::min(most, int64_t{1} << std::min(divisors_.power_of_two(from), 10));
    }
    return int64_t(std::bit_floor(uint64_t(most)));
  }

  int64_t alignment(const UOp& memory) const {
    if (memory.is(Op::BUFFER)) return group_alignment;
    return std::max<int64_t>(memory.arg_as<ParamArg>().align, target_.memory_alignment);
  }

  // The graph anew.

  struct Lane {
    Run* run = nullptr;
    size_t number = 0;
  };

  UOp rebuilt(const UOp& u) {
    const Lane* lane = place_.find(u);
    if (lane && u.is(Op::LOAD)) return lane_at(load(*lane->run), lane->number);
    UOps sources;
    for (const UOp& s : u.src()) {
      const Lane* of = s.is(Op::STORE) ? place_.find(s) : nullptr;
      if (of && of->run->made) continue;
      sources.push_back(of ? store(*of->run) : done_[s]);
    }
    if (u.is(Op::STACK))
      if (const UOp whole = whole_vector(sources)) return whole;
    return u.is(Op::GROUP) ? group(sources) : u.with_src(sources);
  }

  UOp address(const Run& run) {
    const UOp& place = run.lanes[0].src(0);
    IndexArg arg = place.arg_as<IndexArg>();
    arg.width = int32_t(run.lanes.size());
    UOp at = run.from ? done_[run.from] : constant(place.src(1).dtype(), run.first);
    if (run.from && run.first != 0) at = at + run.first;
    return UOp(Op::INDEX, place.dtype(), {done_[place.src(0)], at}, arg);
  }

  const UOp& load(Run& run) {
    if (run.made) return run.made;
    UOps sources{address(run)};
    if (const UOp gate = gate_of(run.lanes[0])) {
      UOps instead;
      for (const UOp& l : run.lanes) instead.push_back(l.src(1));
      sources.push_back(stack(instead));
      sources.push_back(done_[gate]);
    }
    return run.made = run.lanes[0].with_src(sources);
  }

  const UOp& store(Run& run) {
    UOps values;
    for (const UOp& l : run.lanes) values.push_back(done_[l.src(1)]);
    const UOp whole = whole_vector(values);
    UOps sources{address(run), whole ? whole : stack(values)};
    if (const UOp gate = gate_of(run.lanes[0])) sources.push_back(done_[gate]);
    return run.made = run.lanes[0].with_src(sources);
  }

  static UOp lane_at(const UOp& v, size_t i) { return UOp(Op::INDEX, v.dtype(), {v, constant(DType::int32, int64_t(i))}, IndexArg{}); }

  /// The vector that has these lanes, if there is one.
  static UOp whole_vector(const UOps& lanes) {
    const UOp& first = lanes[0];
    if (!first.is(Op::INDEX) || first.src(0).in(Group::memory)) return {};
    const UOp& vector = first.src(0);
    const Shape& shape = shape_of(vector);
    if (shape.size() != 1 || shape[0].value() != int64_t(lanes.size())) return {};
    for (size_t i = 0; i < lanes.size(); ++i)
      if (lanes[i] != lane_at(vector, i)) return {};
    return vector;
  }

  const Target& target_;
  symbolic::KnownDivisors divisors_;
  std::deque<Run> runs_;
  NodeMap<Lane> place_;
  NodeMap<UOp> done_;
};

/// The kernel with its arguments' promises: that they are aligned to the widest of their accesses.
UOp promise_alignment(const UOp& sink) {
  NodeMap<int64_t> bytes;
  for (const UOp& u : toposort(sink)) {
    if (!u.is(Op::INDEX) || u.arg_as<IndexArg>().width == 1) continue;
    if (const UOp memory = memory_of(u.src(0)); memory.is(Op::PARAM)) {
      int64_t& most = bytes[memory];
      most = std::max(most, int64_t(u.arg_as<IndexArg>().width) * int64_t(itemsize(u.dtype())));
    }
  }
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    const int64_t* most = u.is(Op::PARAM) ? bytes.find(u) : nullptr;
    if (!most) return u.with_src(sources);
    ParamArg arg = u.arg_as<ParamArg>();
    arg.align = std::max(arg.align, uint16_t(*most));
    return u.with_src(sources).with_arg(arg);
  });
}

}  // namespace

UOp coalesce(const UOp& sink, const Target& target) {
  if (target.vector_math || target.vector_bits == 0) return sink;
  const UOp joined = Coalescing(target).run(sink);
  return target.unaligned_vectors ? joined : promise_alignment(joined);
}

}  // namespace tinygrad::codegen
