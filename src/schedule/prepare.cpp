#include "schedule/prepare.h"

#include "rewrite/rewrite.h"
#include "shape/device.h"
#include "symbolic/simplify.h"

namespace tinygrad::schedule {

using namespace rewrite;

bool is_whole_memory(const UOp& view) {
  const UOp* u = &view;
  while (u->is(Op::RESHAPE)) u = &u->src(0);
  return u->is(Op::PARAM);
}

namespace {

constexpr Capture x{0}, target{1}, copy{2};

bool is_stored(const UOp& u) { return is_whole_memory(u) || u.is(Op::CONTIGUOUS) || u.is(Op::COPY); }

const Rules<void>& rules() {
  static const Rules<void>& table = *new Rules<void>(Rules<void>{
                                                         {pat(Op::DETACH, {x}), x},
                                                         {pat(Op::CONTIGUOUS_BACKWARD, {x}), x},
                                                         {pat(Op::CONTIGUOUS, {Pat(x).where(is_stored)}), x},
                                                         {pat(Op::STORE, {target, pat(Op::CONTIGUOUS, {x})}),
                                                          [](const Match& m) { return UOp(Op::STORE, DType::void_, {m[target], m[x]}); }},
                                                         {pat(Op::COPY, {x}).named(copy),
                                                          [](const Match& m) {
                                                            const Symbol from = device_of(m[x]);
                                                            if (from.empty() || from == m[copy].arg_as<DeviceArg>().device) return m[x];
                                                            if (is_stored(m[x])) return UOp();
                                                            return m[copy].with_src(UOps{UOp(Op::CONTIGUOUS, m[x].dtype(), {m[x]})});
                                                          }},
                                                     } +
                                                     symbolic::data_rules() + symbolic::movement_rules());
  return table;
}

}  // namespace

UOp prepare(const UOp& sink) { return graph_rewrite(sink, rules(), {.name = "prepare"}); }

}  // namespace tinygrad::schedule
