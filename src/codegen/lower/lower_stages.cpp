#include "codegen/lower/lower_stages.h"

#include <algorithm>
#include <deque>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "codegen/kernel_axes.h"
#include "codegen/lower/stage_memory.h"
#include "codegen/rebuild.h"
#include "shape/ranges.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

class StageLowering {
 public:
  StageLowering(const UOp& sink, const Target& target)
      : target_(target), next_range_(next_range_id(sink)), next_buffer_(next_memory_id(sink)), items_(item_ranges(sink)) {}

  UOp run(const UOp& sink) {
    return rebuild(sink, [&](const UOp& u, const UOps& sources) -> UOp {
      if (u.is(Op::INDEX) && u.src(0).is(Op::STAGE)) return read(sources[0], sources[1]);
      return u.is(Op::WMMA) ? with_places(u, sources) : u.with_src(sources);
    });
  }

 private:
  /// What a tensor core reads from memory is not loaded for it.
  static UOp with_places(const UOp& wmma, UOps sources) {
    const TensorCore* core = find_tensor_core(wmma.arg_as<WmmaArg>().name);
    if (core->a.in_memory) sources[0] = UOp(sources[0].src(0));
    if (core->b.in_memory) sources[1] = UOp(sources[1].src(0));
    return wmma.with_src(sources);
  }

  struct Filled {
    StageMemory memory;
    UOp state;
  };

  UOp read(const UOp& stage, const UOp& element) {
    const Filled** known = filled_.find(stage);
    const Filled& f = known ? **known : fill(stage);
    return f.memory.read(f.state, index_const(0), element);
  }

  const Filled& fill(const UOp& stage) {
    StageMemory memory(stage, items_, target_, next_buffer_++);
    UOp done = memory.fill(stage.src(0), index_const(0), memory.after({}, memory.loops()), next_range_);
    if (memory.is_fetched()) done = wait(std::vector{commit(done)}, 0);
    all_.push_back({memory, memory.after(std::span(&done, 1), {})});
    held_.push_back(stage);
    filled_[stage] = &all_.back();
    return all_.back();
  }

  const Target& target_;
  int32_t next_range_;
  uint64_t next_buffer_;
  std::vector<UOp> items_, held_;
  std::deque<Filled> all_;
  NodeMap<const Filled*> filled_;
};

void check_group_memory(const UOp& sink, const Target& target) {
  int64_t bytes = 0, for_sums = 0;
  for (const UOp* u : borrowed_toposort(sink)) {
    const TensorCore* core = u->is(Op::WMMA) ? find_tensor_core(u->arg_as<WmmaArg>().name) : nullptr;
    if (core && core->tensor_memory && target.has_groups) for_sums = tensor_memory_group_bytes;
    if (u->is(Op::BUFFER) && u->arg_as<BufferArg>().scope == Scope::group)
      bytes += group_array_bytes(u->arg_as<BufferArg>().size * int64_t(itemsize(u->dtype())));
  }
  bytes += for_sums;
  if (bytes > target.group_memory_bytes)
    throw ValueError(
        fmt::format("opts of kernel {}: tiles and partial results take {} bytes of a group's memory, the target has {}; use "
                    "smaller tiles, fewer work-items or fewer copies",
                    to_string(sink.arg()), bytes, target.group_memory_bytes));
}

}  // namespace

UOp lower_stages(const UOp& sink, const Target& target) {
  const bool any = std::ranges::any_of(borrowed_toposort(sink), [](const UOp* u) { return u->is(Op::STAGE) || u->is(Op::WMMA); });
  const UOp lowered = any ? StageLowering(sink, target).run(sink) : sink;
  check_group_memory(lowered, target);
  return lowered;
}

}  // namespace tinygrad::codegen
