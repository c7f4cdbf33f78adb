#pragma once
/// Kernels whose loops become loops around kernels.

#include <vector>

#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::schedule {

bool reads(const UOp& nest, const UOp& memory);

/// How many elements a PARAM has, and how many iterations a RANGE: 0 where that is not known before launch.
int64_t elements(const UOp& memory);
int64_t size_of(const UOp& range);
/// True for a loop over results, false for one of a reduction.
bool is_output_loop(const UOp& range);

/// Whether the iterations of the range touch one part each of the memory, in order: the place is the range times the part's size, and an
/// element of the part.
bool moves_by_parts(const UOp& at, const UOp& memory, const UOp& range);

/// The sums over the range, if each store of the nest is made of such; none if they cannot be added up from one part of it to the next.
std::vector<UOp> sums_over(const UOp& nest, const UOp& range);

/// The nest, `at_once` iterations of the range `taken` in each of the loop over a VAR, with parts of some memories: `parts` has them.
UOp in_loop(const UOp& nest, const UOp& taken, const UOp& loop, int64_t at_once, const NodeMap<UOp>& parts);

}  // namespace tinygrad::schedule
