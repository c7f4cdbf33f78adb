#include "schedule/prepare.h"

#include "rewrite/rewrite.h"
#include "schedule/kernel_calls.h"
#include "shape/device.h"
#include "shape/shape.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/reduce.h"

namespace tinygrad::schedule {

using namespace rewrite;

bool is_whole_memory(const UOp& view) {
  const UOp* u = &view;
  while (u->is(Op::RESHAPE)) u = &u->src(0);
  return u->is(Op::PARAM);
}

namespace {

constexpr Capture x{0}, target{1}, copy{2}, all{3};

bool has_no_elements(const UOp& u) { return is_empty(shape_of(u)); }

/// Values with elements of a value that has none: what a reduction starts with, and the border of a PAD.
UOp of_nothing(const Match& m) {
  const UOp& u = m[all];
  if (has_no_elements(u) || !all_known(shape_of(u))) return {};
  const UOp value = u.is(Op::PAD) ? constant(u.dtype(), 0) : reduce_identity(u.arg_as<ReduceArg>().op, u.dtype());
  return expand(reshape(value, Shape(shape_of(u).size(), 1)), shape_of(u));
}
/// General reductions carry several values.
bool is_by_one_op(const UOp& reduce) { return reduce.src_count() == 1 && reduce.arg_as<ReduceArg>().op != Op::FUNCTION; }

bool is_stored(const UOp& u) { return is_whole_memory(u) || u.is(Op::CONTIGUOUS) || is_transfer(u); }

/// Whether it can be moved as it lies in memory.
bool is_as_stored(const UOp& u) { return u.is(Op::RESHAPE) ? is_as_stored(u.src(0)) : is_stored(u); }

const Rules<void>& rules() {
  static const Rules<void>& table = *new Rules<void>(
      Rules<void>{
          {pat(Op::DETACH, {x}), x},
          {pat(Op::KNOWN, {x}, rest), x},
          {pat(Op::CONTIGUOUS_BACKWARD, {x}), x},
          {pat(Op::WEAK, {x}), x},
          {pat(Op::CONTIGUOUS, {Pat(x).where(is_stored)}), x},
          {pat(Op::CONTIGUOUS, {Pat(x).where(has_no_elements)}), x},
          {pat(Op::REDUCE, {Pat(x).where(has_no_elements)}).where(is_by_one_op).named(all), of_nothing},
          {pat(Op::PAD, {Pat(x).where(has_no_elements)}, rest).named(all), of_nothing},
          {pat(Op::STORE, {target, pat(Op::CONTIGUOUS, {x})}),
           [](const Match& m) { return UOp(Op::STORE, DType::void_, {m[target], m[x]}); }},
          {pat(Op::COPY, {x}).named(copy),
           [](const Match& m) {
             const Symbol from = device_of(m[x]);
             if (from.empty() || from == m[copy].arg_as<DeviceArg>().device) return m[x];
             if (is_as_stored(m[x])) return UOp();
             return m[copy].with_src(UOps{UOp(Op::CONTIGUOUS, m[x].dtype(), {m[x]})});
           }},
          {pat(Op::COLLECTIVE, {x}).named(all),
           [](const Match& m) { return is_as_stored(m[x]) ? UOp() : m[all].with_src(UOps{UOp(Op::CONTIGUOUS, m[x].dtype(), {m[x]})}); }},
      } +
      symbolic::data_rules() + symbolic::movement_rules());
  return table;
}

bool is_view_of_memory(const UOp& view) {
  const UOp* u = &view;
  while (u->in(Group::movement)) u = &u->src(0);
  return u->is(Op::PARAM) || u->is(Op::AFTER);
}

/// Who uses a computed value that the graph also stores reads what is stored: computed again it could be rounded differently.
UOp stored_once(const UOp& sink) {
  const std::vector<UOp> order = toposort(sink);
  NodeSet stored;
  // Between devices, each computes what is on none.
  const bool has_several = std::ranges::any_of(order, is_transfer);
  for (const UOp& u : order)
    if (u.is(Op::CONTIGUOUS) && !is_view_of_memory(u.src(0)) && !(has_several && devices_of(u.src(0)).empty())) stored.insert(u.src(0));
  if (stored.size() == 0) return sink;
  NodeMap<UOp> rebuilt(order.size());
  for (const UOp& u : order) {
    UOps sources;
    for (const UOp& s : u.src()) {
      const UOp* r = rebuilt.find(s);  // none inside a closed scope
      const bool reads = stored.contains(s) && !u.is(Op::CONTIGUOUS);
      sources.push_back(!r ? s : reads ? UOp(Op::CONTIGUOUS, s.dtype(), {*r}) : *r);
    }
    rebuilt[u] = u.with_src(sources);
  }
  return rebuilt[sink];
}

}  // namespace

UOp prepare(const UOp& sink) { return stored_once(graph_rewrite(sink, rules(), {.name = "prepare"})); }

}  // namespace tinygrad::schedule
