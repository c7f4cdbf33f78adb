#pragma once
/// From lazy values to memory.

#include <span>
#include <vector>

#include "tensor/cell.h"
#include "tensor/claims.h"

namespace tinygrad::tensor {

/// Computes the values of cells into memory, with the stores that they wait for, in one schedule. Stores run after every live tensor that
/// reads the state they replace has got memory of its own. Then every live tensor reads the new memory instead of computing what is in
/// it. Whatever throws leaves all tensors as they were.
///
/// What it computes is found, and published, under the lock of the states. In between, while it schedules, compiles and launches, it has
/// claims on the memory that it reads and writes: realizes that have nothing to do with each other do not wait for each other.
void realize(std::span<const detail::CellPtr> cells);

/// Writes what `value` gives, which has the shape and dtype of the cell's, into its memory, where every tensor that is a view of it sees
/// the change; a value that has no memory is replaced. `value` is asked under the lock of the states, perhaps several times. The store runs
/// when its result is needed, or when many wait.
void assign(detail::TensorCell& cell, FunctionRef<UOp()> value);

/// Before a replay, or whatever else works with memory that tensors show, outside of a realize: runs the stores that wait on that memory,
/// and computes the live tensors that read what it will write. If it writes anything, the claims on all of it are held until they go.
Claims settle(Claims used);

/// Gives these values memory that they are stored into when they are needed; every live tensor reads that from now on.
void give_memory(std::span<const UOp> values);

/// The stores of a graph of effects, as the scheduler takes them, that realize() would run for these cells.
UOp effects_of(std::span<const detail::CellPtr> cells);
UOp effects_of(std::span<const Tensor> tensors);

}  // namespace tinygrad::tensor
