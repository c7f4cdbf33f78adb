#include "schedule/kernel_calls.h"

#include <algorithm>

#include "shape/ranges.h"
#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::schedule {

UOp linear_of(std::span<const UOp> steps) { return UOp(Op::LINEAR, DType::void_, steps, LinearArg{0}); }

UOp loop_around(std::span<const UOp> steps, const UOp& range) { return end(linear_of(steps), std::span(&range, 1)); }

UOp kernel_of(std::span<const UOp> nests, std::span<const UOp> binds) {
  UOps sources{sink(nests)};
  sources.append(binds.begin(), binds.end());
  return UOp(Op::CALL, DType::void_, sources);
}

UOp copy_between(const UOp& transfer, const UOp& target, const UOp& source) {
  const UOp from(Op::PARAM, source.dtype(), source.src(), ParamArg{.slot = 1, .device = source.arg_as<ParamArg>().device});
  const UOp body(transfer.op(), target.dtype(), {from}, transfer.arg());
  return UOp(Op::CALL, DType::void_, {body, target, source});
}

CopyRange range_of_copy(const UOp& copy) {
  const UOp& from = copy.src(0);
  const int64_t to = copy.arg_as<DeviceArg>().begin;
  if (!from.is(Op::SHRINK)) return {to, 0, const_value(from.src(0))->as_int()};
  const int64_t begin = const_value(from.src(1))->as_int(), end = const_value(from.src(2))->as_int();
  return {to, begin, end - begin};
}

UOp copy_of_range(const UOp& target, const UOp& source, const CopyRange& range) {
  const UOp from(Op::PARAM, source.dtype(), source.src(), ParamArg{.slot = 1, .device = source.arg_as<ParamArg>().device});
  const bool is_all = range.count == const_value(source.src(0))->as_int();
  const UOp part = is_all ? from : shrink(from, {range.from, range.from + range.count});
  const UOp body(Op::COPY, target.dtype(), {part}, DeviceArg{target.arg_as<ParamArg>().device.only(), range.to});
  return UOp(Op::CALL, DType::void_, {body, target, source});
}

UOp nest_of(std::span<const UOp> stores, std::span<const UOp> loops) { return end(group(stores), loops); }

std::span<const UOp> loops_of(const UOp& nest) { return nest.is(Op::END) ? closed_ranges(nest) : std::span<const UOp>(); }

std::span<const UOp> stores_of(const UOp& nest) {
  const UOp& stores = nest.is(Op::END) ? nest.src(0) : nest;
  return stores.is(Op::GROUP) ? stores.src() : std::span(&stores, 1);
}

UOp stored(const UOp& target, const UOp& place, const UOp& value) { return store(index(target, place), value); }

Devices devices_of_call(const UOp& call) {
  const UOp& target = is_copy(call) ? copied_to(call) : stored_to(stores_of(only_nest(call))[0]);
  return target.arg_as<ParamArg>().device;
}

std::vector<UOp> temporaries_of(const UOp& linear, int32_t first) {
  NodeSet seen;
  std::vector<UOp> out;
  for (const UOp& call : linear.src())
    for (const UOp& a : call.src())
      if (a.is(Op::PARAM) && a.arg_as<ParamArg>().slot >= first && seen.insert(a)) out.push_back(a);
  std::ranges::sort(out, {}, [](const UOp& t) { return t.arg_as<ParamArg>().slot; });
  return out;
}

}  // namespace tinygrad::schedule
