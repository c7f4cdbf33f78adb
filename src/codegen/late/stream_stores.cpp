#include "codegen/late/stream_stores.h"

#include <algorithm>

#include "codegen/rebuild.h"
#include "kernel/accessed_memory.h"
#include "shape/shape.h"
#include "symbolic/known_divisors.h"

namespace tinygrad::codegen {

namespace {

constexpr int64_t line_bytes = 64;

/// One run of whole native vectors, without a mask.
bool is_whole(const UOp& store, const Target& target) {
  const int64_t bytes = store.src(0).arg_as<IndexArg>().width * int64_t(itemsize(store.src(0).dtype()));
  const bool has_mask = store.src_count() > 2 && !shape_of(store.src(2)).empty();
  return bytes * 8 % std::max(target.vector_bits, 128) == 0 && !has_mask;
}

}  // namespace

UOp stream_stores(const UOp& sink, const Target& target) {
  if (!target.has_cache_hints) return sink;
  const int64_t most_kept = target.l3_bytes / 2;  // the other half is for what the kernel reads
  NodeSet loaded;
  bool any = false;
  for (const UOp* u : borrowed_toposort(sink)) {
    if (u->is(Op::LOAD)) loaded.insert(memory_of(u->src(0)));
    any = any || (u->is(Op::STORE) && memory_bytes(memory_of(u->src(0))) > most_kept);
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
    IndexArg arg = place.arg_as<IndexArg>();
    arg.streams = true;
    UOps streaming(sources);
    streaming[0] = place.with_arg(arg);
    return same.with_src(streaming);
  });
}

}  // namespace tinygrad::codegen
