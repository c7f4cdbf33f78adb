#pragma once
/// From lazy values to memory.

#include <mutex>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "tensor/cell.h"

namespace tinygrad::tensor {

/// Computes the values of cells into memory, with the stores that they wait for, in one schedule. Stores run after every live tensor that
/// reads the state they replace has got memory of its own. Then every live tensor reads the new memory instead of computing what is in
/// it. Whatever throws leaves all tensors as they were.
void realize(std::span<const detail::CellPtr> cells);

/// Writes `value`, which has the shape and dtype of the cell's, into its memory, where every tensor that is a view of it sees the change;
/// a value that has no memory is replaced. The store runs when its result is needed, or when many wait.
void assign(detail::TensorCell& cell, const UOp& value);

/// The memory that a replay uses, by the ids of its BUFFERs.
struct MemoryUse {
  FunctionRef<bool(uint64_t)> used, written;
  bool writes_any = false;
};

/// Before a replay: runs the stores that wait on memory it uses, and computes the live tensors that read what it will write. The lock is to
/// be held while it writes; it is free if nothing is written.
std::unique_lock<std::mutex> settle(const MemoryUse& used);

/// Gives these values memory that they are stored into when they are needed; every live tensor reads that from now on.
void give_memory(std::span<const UOp> values);

/// The stores of a graph of effects, as the scheduler takes them, that realize() would run for these cells.
UOp effects_of(std::span<const detail::CellPtr> cells);

}  // namespace tinygrad::tensor
