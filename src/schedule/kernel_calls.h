#pragma once
/// The list of a schedule while it is made:
///
///   LINEAR(step...; LinearArg{0})
///   step: CALL(SINK(nest...), BIND(VAR, RANGE)...)   a kernel, whose PARAMs have the slots of the schedule until finish_kernels
///         CALL(COPY, target, source)                 a copy between devices, of a part of the memory where the COPY is of a SHRINK
///         CALL(COLLECTIVE, target, source)           what shards give to each other, until select_shards
///         END(LINEAR(step...), RANGE)                a loop around steps, which have its range in their BINDs until unroll_loops
///   nest: END(STORE | GROUP(STORE...), RANGE...)

#include <span>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::schedule {

inline bool is_loop(const UOp& step) { return step.is(Op::END); }
inline bool is_kernel(const UOp& step) { return step.is(Op::CALL) && step.src(0).is(Op::SINK); }
/// What moves between devices.
inline bool is_transfer(const UOp& u) { return u.is(Op::COPY) || u.is(Op::COLLECTIVE); }
inline bool is_copy(const UOp& step) { return step.is(Op::CALL) && is_transfer(step.src(0)); }

UOp linear_of(std::span<const UOp> steps);
UOp loop_around(std::span<const UOp> steps, const UOp& range);

/// A kernel of nests that run one after another.
UOp kernel_of(std::span<const UOp> nests, std::span<const UOp> binds = {});
/// As `transfer`, a COPY or COLLECTIVE, does.
UOp copy_between(const UOp& transfer, const UOp& target, const UOp& source);
UOp nest_of(std::span<const UOp> stores, std::span<const UOp> loops);

inline std::span<const UOp> nests_of(const UOp& kernel) { return kernel.src(0).src(); }
/// Of a kernel that is not joined with others yet.
inline const UOp& only_nest(const UOp& kernel) { return kernel.src(0).src(0); }
inline std::span<const UOp> binds_of(const UOp& kernel) { return kernel.src().subspan(1); }

/// The loops of a nest, outermost first, and the stores in them.
std::span<const UOp> loops_of(const UOp& nest);
std::span<const UOp> stores_of(const UOp& nest);

inline const UOp& stored_to(const UOp& store) { return store.src(0).src(0); }
inline const UOp& stored_at(const UOp& store) { return store.src(0).src(1); }
inline const UOp& stored_value(const UOp& store) { return store.src(1); }
UOp stored(const UOp& target, const UOp& place, const UOp& value);

inline const UOp& copied_to(const UOp& copy) { return copy.src(1); }
inline const UOp& copied_from(const UOp& copy) { return copy.src(2); }

/// The devices that a kernel runs on, or that a copy goes to.
Devices devices_of_call(const UOp& call);

/// The elements that a copy reads and writes.
struct CopyRange {
  int64_t to = 0, from = 0, count = 0;
};
CopyRange range_of_copy(const UOp& copy);
UOp copy_of_range(const UOp& target, const UOp& source, const CopyRange& range);

/// The temporaries among the arguments of finished calls, by slot: from `first` on.
std::vector<UOp> temporaries_of(const UOp& linear, int32_t first);

}  // namespace tinygrad::schedule
