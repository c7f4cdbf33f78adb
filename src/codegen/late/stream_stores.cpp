#include "codegen/late/stream_stores.h"

#include <algorithm>

#include "codegen/late/distance.h"
#include "codegen/rebuild.h"
#include "kernel/accessed_memory.h"
#include "shape/shape.h"
#include "symbolic/known_divisors.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t line_bytes = 64;

/// One run of whole native vectors.
bool is_whole(const UOp& store, const Target& target) {
  const int64_t bytes = store.src(0).arg_as<IndexArg>().width * int64_t(itemsize(store.src(0).dtype()));
  return bytes * 8 % std::max(target.vector_bits, 128) == 0;
}

bool has_mask(const UOp& store) { return store.src_count() > 2 && !shape_of(store.src(2)).empty(); }

/// The bytes that neighbouring stores write together, as runs from a base.
class WrittenTogether {
 public:
  void add(const UOp& place) {
    const Distance d = distance_of(place.src(1));
    const auto item = int64_t(itemsize(place.dtype())), begin = d.elements * item;
    of(memory_of(place), d.from).runs.push_back({begin, begin + place.arg_as<IndexArg>().width * item});
  }

  /// Whether all of the lines that a store writes to are written, as far as known divisors tell where lines begin.
  bool fill_lines(const UOp& place, symbolic::KnownDivisors& divisors) {
    const Distance d = distance_of(place.src(1));
    const auto item = int64_t(itemsize(place.dtype()));
    if (d.from && (item << std::min(divisors.power_of_two(d.from), 10)) % line_bytes != 0) return false;
    const std::vector<Run>& runs = of(memory_of(place), d.from).runs;
    const int64_t begin = d.elements * item, end = begin + place.arg_as<IndexArg>().width * item;
    for (int64_t line = begin - (begin % line_bytes + line_bytes) % line_bytes; line < end; line += line_bytes) {
      int64_t written = 0;  // runs do not overlap
      for (const Run& r : runs) written += std::max<int64_t>(0, std::min(r.end, line + line_bytes) - std::max(r.begin, line));
      if (written < line_bytes) return false;
    }
    return true;
  }

 private:
  struct Run {
    int64_t begin, end;
  };
  struct Group {
    UOp memory, base;
    std::vector<Run> runs;
  };

  Group& of(const UOp& memory, const UOp& base) {
    const auto g = std::ranges::find_if(groups_, [&](const Group& x) { return x.memory == memory && x.base == base; });
    return g != groups_.end() ? *g : groups_.emplace_back(Group{memory, base, {}});
  }

  std::vector<Group> groups_;
};

}  // namespace

UOp stream_stores(const UOp& sink, const Target& target) {
  if (!target.has_cache_hints) return sink;
  const int64_t most_kept = target.l3_bytes / 2;  // the other half is for what the kernel reads
  NodeSet loaded;
  WrittenTogether together;
  bool any = false, reduces = false;
  for (const UOp* u : borrowed_toposort(sink)) {
    if (u->is(Op::LOAD)) loaded.insert(memory_of(u->src(0)));
    reduces = reduces || (u->is(Op::RANGE) && u->arg_as<RangeArg>().kind == AxisKind::reduce);
    if (!u->is(Op::STORE) || memory_bytes(memory_of(u->src(0))) <= most_kept) continue;
    any = true;
    if (is_whole(*u, target) && !has_mask(*u)) together.add(u->src(0));
  }
  if (!any) return sink;
  symbolic::KnownDivisors divisors;
  const auto begins_line = [&](const UOp& place) {
    const int64_t bytes = std::min(line_bytes, place.arg_as<IndexArg>().width * int64_t(itemsize(place.dtype())));
    return ((int64_t(itemsize(place.dtype())) << std::min(divisors.power_of_two(place.src(1)), 10)) % bytes) == 0;
  };
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    UOp same = u.with_src(sources);
    if (!same.is(Op::STORE)) return same;
    const UOp &place = same.src(0), memory = memory_of(place);
    if (memory_bytes(memory) <= most_kept || loaded.contains(memory) || !is_whole(same, target) || !begins_line(place)) return same;
    if (reduces && (has_mask(same) || !together.fill_lines(place, divisors))) return same;
    IndexArg arg = place.arg_as<IndexArg>();
    arg.streams = true;
    UOps streaming(sources);
    streaming[0] = place.with_arg(arg);
    return same.with_src(streaming);
  });
}

}  // namespace tinygrad::codegen
