#include "schedule/unroll_loops.h"

#include <vector>

#include "schedule/kernel_calls.h"
#include "uop/build.h"

namespace tinygrad::schedule {

namespace {

UOp in_iteration(const UOp& call, const UOp& range, int64_t i) {
  UOps sources(call.src());
  for (UOp& s : sources)
    if (s.is(Op::BIND) && s.src(1) == range) s = bind(s.src(0), i);
  return call.with_src(sources);
}

}  // namespace

UOp unroll_loops(const UOp& linear) {
  std::vector<UOp> out;
  for (const UOp& step : linear.src()) {
    if (!is_loop(step)) {
      out.push_back(step);
      continue;
    }
    const UOp body = unroll_loops(step.src(0)), &range = step.src(1);
    const int64_t times = const_value(range.src(0))->as_int();
    for (int64_t i = 0; i < times; ++i)
      for (const UOp& call : body.src()) out.push_back(in_iteration(call, range, i));
  }
  return linear_of(out);
}

}  // namespace tinygrad::schedule
