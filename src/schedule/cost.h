#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/function_ref.h"
#include "target/costs.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// The cost model of fusion. Everything is in units of one simple scalar operation of a vectorized kernel; what matters is only which of
/// two sums is smaller:
///
///   inline   every evaluation pays the value's arithmetic and its loads again
///   store    one evaluation an element, a write and the reads of it, and a kernel more to launch
///
/// Evaluations are counted on the kernels as they would be after substitution: the product of the sizes of all loops the value would stand
/// in, for each distinct place it is used at. The costs of operations and memory are in target/costs.h.

inline constexpr double register_tile = 4;     ///< elements of a reducing kernel that are computed together and share what they load
inline constexpr double enough_parallel = 64;  ///< loops of a kernel that are this wide can use the whole machine

/// How many elements a value of a tensor graph has, at most.
double most_elements(const UOp& u);

/// Outputs of one joined reduction that are computed together: half of the registers for them, the other for what they are made of. On a
/// CPU those that registers don't hold are spilled to a cache.
double joined_accumulators(const Target& target);
/// To write `elements` in a kernel of its own and to read them `times` times; if in so many `parts` one after another, one part is in
/// memory at a time.
double store_cost(const Target& target, double elements, double times, DType dtype, double parts = 1);

struct InlineCost {
  double cost = 0;      ///< arithmetic and loaded bytes of one element
  double products = 0;  ///< the part of it that products take, where it is asked for
  double reuse = 1;     ///< how often a REDUCE at the root uses each element of memory below it; its loads are shared by a register tile
};

/// What one element of `u` costs if everything below it is computed in place, down to memory and to what `is_stored` says is stored. A node
/// that is reached twice counts once: equal places are shared. Gives up, with a large cost, past a few hundred nodes.
InlineCost inline_cost(const UOp& u, const Target& target, const std::function<bool(const UOp&)>& is_stored, bool with_products = false);

/// Why a value is stored, or computed at each place that needs it.
enum class Reason : uint8_t {
  // It is stored.
  result,       ///< the program stores it
  asked_for,    ///< CONTIGUOUS or COPY
  long_reduce,  ///< the chunks of a reduction that was cut in two (split_reduces.h)
  overwritten,  ///< it is made of memory that is written over before all of its users have run
  overlap,      ///< its kernel would read elements that it has written over already
  arguments,    ///< its kernel would have more arguments than the device takes
  circle,       ///< kernels would wait for each other
  full_kernel,  ///< a kernel that needs it is full (`most_weight`)
  many_uses,    ///< it is needed at very many places
  inner_loop,   ///< a reduction that would be computed element by element in the loops of its kernel
  few_outputs,  ///< a reduction in a kernel of few outputs, which would leave most of the machine idle
  cheaper_stored,
  // It is computed.
  at_hand,    ///< loops have it at hand: places, and tests of them
  carried,    ///< a loop of the kernel carries it (online_reduce.h)
  used_once,  ///< there is nothing to be saved: each element is needed once
  padding,    ///< what is inside of its padding is stored instead
  cheaper_computed,
};

/// What placing knows of a value that could be stored, if it is computed at each place that needs it.
struct Demand {
  DType dtype = DType::void_;
  double elements = 1, evaluations = 0;  ///< how many it has, and how often one is computed
  size_t uses = 0;                       ///< places that need it
  double parts = 1;                      ///< into which it may be taken apart, one in memory at a time
  bool is_carried = false;               ///< at each of them by a loop that is there anyway
  bool overfills = false;                ///< a kernel that is full already
  bool starves = false;                  ///< a reduction whose only kernel has few outputs
  bool is_hoisted = false;               ///< a reduction outside of some loops of its only kernel
  bool is_summed = false;                ///< a reduction inside of another one
  bool is_scattered = false;             ///< in loops of a reduction, which take elements one by one, neighbours apart
  bool is_padding = false;               ///< around something that can be stored and is not
};

/// The costs are filled in where they decided, in operations.
struct Decision {
  bool stores = false;
  Reason reason = Reason::used_once;
  double computing = 0, storing = 0;  ///< each evaluation after the first of an element, against writing and reading it

  friend bool operator==(const Decision&, const Decision&) = default;
};

/// Nothing if it takes the cost of an element to decide.
std::optional<Decision> decide_by_uses(const Demand& demand);
Decision decide_by_cost(const Demand& demand, const InlineCost& one, const Target& target);

/// What a node of a kernel takes to compile, in operations: those that targets lack are written by many, and each REDUCE is a loop more
/// that the choice of vectors and tiles has to weigh. Nodes of a tensor graph, or of a kernel.
double compile_weight(const UOp& u);

/// What computing a value of what is in memory takes, PARAMs and what `is_stored` says; or more than `most`, if it is more. A node that is
/// reached twice counts twice.
double compile_weight_of(const UOp& value, double most, FunctionRef<bool(const UOp&)> is_stored);

/// A kernel that weighs so much takes in nothing more that could be stored: what it takes to compile grows faster than what it computes. A
/// chain of any length becomes kernels of this size, of which those of equal steps are equal.
inline constexpr double most_weight = 256;
/// The same where a few numbers that many steps depend on, one after another, are at hand to be stored: with less at once, the kernels of
/// equal steps are equal from the first on, and nothing is computed again in the loops of the steps after it.
inline constexpr double most_step_weight = 80;
/// The same for kernels that are joined, which share loops and loads.
inline constexpr double most_joined_weight = 768;
/// The same for what a kernel would hand over to the next, a few numbers without a reduction: a chain that was cut stays cut.
inline constexpr double most_chain_weight = 384;
/// Places that need a value, beyond which it is stored whatever it costs.
inline constexpr size_t most_uses = 16;
/// Elements that are written and read in less time than a launch takes.
inline constexpr double small_value = 1024;

/// What one evaluation of a kernel's scalar expression costs: its arithmetic and loaded bytes, in all the loops of the REDUCEs in it.
double scalar_cost(const UOp& x, const Costs& costs);

/// What the arithmetic of a kernel's scalar expression costs in all iterations of its loops, where each part runs in those alone that it
/// depends on.
double arithmetic_cost(const UOp& x, const Costs& costs);

}  // namespace tinygrad::schedule
