#include "codegen/late/speculate_loads.h"

#include <algorithm>

#include <tinygrad/dtype.h>

#include "codegen/rebuild.h"
#include "kernel/accessed_memory.h"
#include "shape/shape.h"
#include "symbolic/bounds.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

/// The number of elements, 0 if it is not known.
int64_t elements(const UOp& memory) {
  const Shape& shape = shape_of(memory);
  return shape.size() == 1 && shape[0].known() ? shape[0].value() : 0;
}

/// Masked loads of which no lane is made cost x86 hundreds of cycles if their address is of no page that it knows. What is a page or a
/// small part of the memory away, as the edges of a padded picture are, is seldom such an address.
bool may_be_far(const UOp& place) {
  constexpr int64_t page = 4096, small_part = 16;
  const int64_t size = elements(place.src(0)), width = place.arg_as<IndexArg>().width;
  const symbolic::Bounds at = symbolic::bounds(place.src(1));
  if (size == 0 || !at.has_min() || !at.has_max()) return false;
  const int64_t outside = std::max(-at.min, at.max - (size - width));
  return outside > page / int64_t(itemsize(place.src(0).dtype())) && outside > size / small_part;
}

/// What all lanes of a gate have in common, and if that is the whole gate.
struct Common {
  UOp gate;
  bool is_all = false;
};

Common common_of(const UOp& gate) {
  if (gate.is(Op::EXPAND)) return {.gate = gate.src(0), .is_all = true};
  if (!gate.is(Op::AND)) return {.gate = {}, .is_all = false};
  const Common a = common_of(gate.src(0)), b = common_of(gate.src(1));
  return {.gate = a.gate && b.gate ? a.gate & b.gate : a.gate ? a.gate : b.gate, .is_all = a.is_all && b.is_all};
}

UOp load_run(const UOp& load, const UOps& sources, bool is_written) {
  const UOp &place = sources[0], &at = place.src(1), &alternative = sources[1];
  const Common common = common_of(sources[2]);
  if (!common.gate || !may_be_far(place)) return load.with_src(sources);
  const UOp near = place.with_src(UOps{place.src(0), where(common.gate, at, constant(at.dtype(), 0))});
  if (common.is_all && !is_written && place.arg_as<IndexArg>().width <= elements(place.src(0)))
    return where(sources[2], UOp(Op::LOAD, load.dtype(), {near}), alternative);
  return load.with_src(UOps{near, alternative, sources[2]});
}

UOp load_elements(const UOp& load, const UOps& sources) {
  const UOp &place = sources[0], &at = place.src(1), &gate = sources[2];
  UOp zero = constant(at.dtype(), 0);
  if (const Shape& shape = shape_of(at); !shape.empty())
    zero = UOp(Op::EXPAND, zero.dtype(), {zero, constant(DType::int32, shape[0].value())});
  return where(gate, UOp(Op::LOAD, load.dtype(), {index(place.src(0), where(gate, at, zero))}), sources[1]);
}

}  // namespace

UOp speculate_loads(const UOp& sink) {
  const std::vector<const UOp*> nodes = borrowed_toposort(sink);
  if (std::ranges::none_of(nodes, [](const UOp* u) { return u->is(Op::LOAD) && u->src_count() == 3; })) return sink;
  NodeSet written;
  for (const UOp* u : nodes)
    if (u->is(Op::STORE)) written.insert(memory_of(u->src(0)));
  return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
    if (!u.is(Op::LOAD) || sources.size() != 3) return u.with_src(sources);
    const UOp& place = sources[0];
    const bool is_written = written.contains(memory_of(place));  // another thread may be writing element 0
    if (place.arg_as<IndexArg>().width != 1) return load_run(u, sources, is_written);
    // One gate for all lanes of a vector of addresses keeps its branch: it saves them all.
    if (is_written || elements(place.src(0)) == 0 || shape_of(place.src(1)) != shape_of(sources[2])) return u.with_src(sources);
    return load_elements(u, sources);
  });
}

}  // namespace tinygrad::codegen
