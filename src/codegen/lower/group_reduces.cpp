#include "codegen/lower/group_reduces.h"

#include "codegen/kernel_axes.h"
#include "codegen/rebuild.h"
#include "codegen/reduce_op.h"
#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

/// The partial result of one work-item.
UOps partials_of(const UOp& reduce, const UOps& loops) {
  const UOps values = reduced_values(reduce);
  if (!loops.empty()) return reduce_results(make_reduce(reduce, values, loops));
  return is_general_reduce(reduce) ? reduce_step(reduce, reduce_identities(reduce), values) : values;
}

class GroupReduces {
 public:
  explicit GroupReduces(const UOp& sink) : next_range_(next_range_id(sink)) {}

  UOp run(const UOp& sink) {
    return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
      if (u.is(Op::REDUCE)) return (reduced_[u] = lower(u.with_src(sources)))[0];
      if (u.is(Op::GETTUPLE) && is_general_reduce(u.src(0))) return reduced_[u.src(0)][size_t(u.arg_as<TupleArg>().index)];
      return u.with_src(sources);
    });
  }

 private:
  UOps lower(const UOp& reduce) {
    UOps items, loops;
    for (const UOp& r : closed_ranges(reduce)) (r.arg_as<RangeArg>().kind == AxisKind::group ? items : loops).push_back(r);
    if (items.empty()) return reduce_results(reduce);
    int64_t count = 1;
    for (const UOp& r : items) count *= constant_size(r);
    const UOp item = range(count, next_range_++, AxisKind::reduce);
    UOps staged;
    for (const UOp& partial : partials_of(reduce, loops)) {
      UOps sources{partial};
      sources.append(items.begin(), items.end());
      const UOp stage(Op::STAGE, partial.dtype(), sources, StageArg{.scope = Scope::group});
      staged.push_back(UOp(Op::INDEX, partial.dtype(), {stage, item}, IndexArg{}));
    }
    return reduce_partials(reduce, staged, std::span(&item, 1));
  }

  int32_t next_range_;
  NodeMap<UOps> reduced_;
};

}  // namespace

UOp group_reduces(const UOp& sink) { return GroupReduces(sink).run(sink); }

}  // namespace tinygrad::codegen
