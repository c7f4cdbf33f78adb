#pragma once
/// Kernels whose loops become loops around kernels.

#include <vector>

#include "schedule/merge_kernels.h"
#include "uop/graph.h"

namespace tinygrad::schedule {

/// The expressions of a kernel: places and values.
std::vector<UOp> roots_of(const MergedKernel& k);
bool reads(const MergedKernel& k, const UOp& memory);

/// How many elements a PARAM has, and how many iterations a RANGE: 0 where that is not known before launch.
int64_t elements(const UOp& memory);
int64_t size_of(const UOp& range);
/// True for a loop over results, false for one of a reduction.
bool is_output_loop(const UOp& range);

/// Whether the iterations of the range touch one part each of the memory, in order: the place is the range times the part's size, and an
/// element of the part.
bool moves_by_parts(const UOp& at, const UOp& memory, const UOp& range);

/// The sums over the range, if each output is made of such; none if they cannot be added up from one part of it to the next.
std::vector<UOp> sums_over(const MergedKernel& k, const UOp& range);

/// The kernel, `at_once` iterations of the range `taken` in each of the loop over a VAR, with parts of some memories: `parts` has them.
MergedKernel in_loop(const MergedKernel& k, const UOp& taken, const UOp& loop, int64_t at_once, const NodeMap<UOp>& parts);

}  // namespace tinygrad::schedule
