#pragma once
/// What a program on many devices would take, where there is one of them: its schedule is made for all, what one of them does is measured,
/// and what goes between them is counted.

#include <cstdint>
#include <span>

#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad {

/// How long a message is under way: latency and bytes / bytes_per_s.
struct Link {
  double latency_s = 0, bytes_per_s = 0;
};

/// Ranks on nodes. Each rank has a link to the others of its node, each node one to the other nodes; both carry as much in each direction
/// at the same time. Nothing else is shared.
struct Network {
  int ranks_per_node = 1;
  Link within, between;
};

/// A step of one rank.
struct Simulation {
  double step_s = 0;            ///< all of it: nothing is sent while something is computed
  double compute_s = 0;         ///< measured here
  double exchange_s = 0;        ///< by the network's numbers
  int64_t exchanges = 0;        ///< waits for others; messages of one are under way together
  int64_t bytes_received = 0;   ///< by a rank, of others
  int64_t bytes_per_link = 0;   ///< into the busiest link: a rank's, or that of a node with several
  int64_t memory_per_rank = 0;  ///< parameters, state, inputs and what is between kernels
  size_t kernels = 0;
};

struct SimulateOptions {
  int repeats = 5;  ///< the median of so many runs behind the first counts
};

/// What realize() of the tensors would take, whose graph is on the shards `NULL`, `NULL:1`, ..., one a rank; the kernels of the first are
/// those of the CPU, and run on it with zeros as values. Throws ValueError for tensors that are not on several devices, for a
/// link without speed, and for several nodes of which one is not full.
TINYGRAD_EXPORT Simulation simulate(std::span<const Tensor> tensors, const Network& network, const SimulateOptions& options = {});

/// Seconds that realize() of the tensors takes on the devices where they are, to compare with. The tensors stay as they are, but memory
/// that realize() would write to is written. All ranks call it.
TINYGRAD_EXPORT double measure_step(std::span<const Tensor> tensors, const SimulateOptions& options = {});

}  // namespace tinygrad
