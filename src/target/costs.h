#pragma once
/// What operations and memory cost, for all who choose by it: fusion (schedule/cost.h), opts (codegen/choose/), Winograd's convolutions
/// (ops/winograd.h) and the search (search/program_cost.h). The numbers are estimates, the same for nearly all Targets; each model has a
/// unit of its own, and only compares sums in that unit.

#include <cstdint>

#include "target/target.h"

namespace tinygrad {

/// One operation, as each of the models counts.
struct OpCost {
  double cycles;    ///< of a core, on a scalar: what opts are chosen by
  double fused;     ///< in simple operations of a vectorized kernel: what fusion pays for computing a value once more
  double compiled;  ///< operations that a target without it writes it by: what compiling it costs
};

struct OpCosts {
  OpCost simple{0.5, 1, 1};          ///< two start in each cycle
  OpCost root{4, 4, 1};              ///< SQRT, RECIPROCAL, FDIV
  OpCost quotient{10, 4, 1};         ///< of integers: CDIV, CMOD, FLOORDIV, FLOORMOD
  OpCost exponential{10, 16, 16};    ///< EXP2, LOG2: a polynomial
  OpCost trigonometric{40, 16, 48};  ///< SIN, POW: a reduction of the argument besides, or two functions
  OpCost random{60, 128, 48};        ///< THREEFRY: twenty rounds

  const OpCost& of(Op op) const;
};

struct MemoryCosts {
  // In fusion, in the unit of OpCost::fused.

  double loaded_byte = 1;  ///< a read that comes from a near cache on average
  /// A write that goes to memory: a vector unit does some 4 operations in the time of a byte, a write moves it twice.
  double stored_byte = 8;
  /// A write of more than the caches hold: memory, which all cores share, moves it three times with the read.
  double far_byte = 40;
  double launch = 20000;      ///< of a kernel, and its scheduling
  double group_launch = 1e6;  ///< the same on a device with many groups: a few microseconds of a faster machine

  // In opts, in cycles of a core.

  double long_run = 1024;      ///< contiguous bytes from which on the processor fetches ahead
  double streams = 16;         ///< of these runs that it follows at once
  int64_t line_bytes = 64;     ///< of a cache
  int64_t page_bytes = 4096;   ///< lines at this distance are in the same set of a first cache
  double copied_vector = 12;   ///< to copy a vector of a row that begins anywhere
  double copied_element = 3;   ///< to copy elements one by one
  double stream_store = 8;     ///< that a vector's store takes longer where several rows are written at once
  int64_t stream_bytes = 256;  ///< that such rows lie apart, at least

  // In Winograd's convolutions, in products.

  double moved_element = 12;  ///< to memory or back
};

/// Instructions of a program, in cycles, caches left out: what the search tells from before it compiles.
struct InstructionCosts {
  double float_vector = 0.5, other_vector = 0.25, access = 1;
};

struct Costs {
  OpCosts ops;
  MemoryCosts memory;
  InstructionCosts instructions;

  double launch(const Target& target) const { return target.has_groups ? memory.group_launch : memory.launch; }
};

/// The same for all Targets; what differs between processors is in Target::core.
const Costs& general_costs();

/// What the caches and the memory of a CPU give in a cycle of the model by which opts are chosen. That cycle starts two vector operations,
/// however many a core starts, and the model adds up what a core does at once, the loads of a product beside its multiply-adds. So these
/// are fitted, to measured kernels of Zen 3 (vectors of 256 bits) and Zen 4. A machine that `tg tune` measured has more or less of them, as
/// it differs from its kind.
struct CacheRates {
  double l2 = 0, l3 = 0, memory = 0;  ///< bytes, of one core
  double short_runs = 0;              ///< bytes from memory in runs that are not fetched ahead

  explicit CacheRates(const Target& target);
};
/// Multiply-adds in flight that hide how long one takes.
double independent_operations(const Target& target);

}  // namespace tinygrad
