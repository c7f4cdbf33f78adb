#pragma once
/// The list of a schedule while it is made:
///
///   LINEAR(step...; LinearArg{0})
///   step: CALL(SINK(nest...), BIND(VAR, RANGE)...)   a kernel, whose PARAMs have the slots of the schedule until finish_kernels
///         CALL(COPY, target, source)                 a copy between devices
///         END(LINEAR(step...), RANGE)                a loop around steps, which have its range in their BINDs until unroll_loops
///   nest: END(STORE | GROUP(STORE...), RANGE...)

#include <span>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::schedule {

inline bool is_loop(const UOp& step) { return step.is(Op::END); }
inline bool is_kernel(const UOp& step) { return step.is(Op::CALL) && step.src(0).is(Op::SINK); }
inline bool is_copy(const UOp& step) { return step.is(Op::CALL) && step.src(0).is(Op::COPY); }

UOp linear_of(std::span<const UOp> steps);
UOp loop_around(std::span<const UOp> steps, const UOp& range);

/// A kernel of nests that run one after another.
UOp kernel_of(std::span<const UOp> nests, std::span<const UOp> binds = {});
UOp copy_between(const UOp& target, const UOp& source);
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

/// The device that a kernel runs on, or that a copy goes to.
Symbol device_of_call(const UOp& call);

/// The temporaries among the arguments of finished calls, by slot: from `first` on.
std::vector<UOp> temporaries_of(const UOp& linear, int32_t first);

}  // namespace tinygrad::schedule
