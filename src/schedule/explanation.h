#pragma once
/// Why a schedule is as it is: for DEBUG=3, and for tools that show schedules.

#include <optional>
#include <string>
#include <vector>

#include "schedule/kernel.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// Why a kernel was merged into one before it, or was not.
enum class Merge : uint8_t {
  // They are one.
  takes_result,  ///< it reads at each place what the other one writes there
  same_memory,   ///< both write the same elements
  shared_reads,  ///< both read the same elements
  small,         ///< a launch costs more than they do
  // They are not.
  other_loops,     ///< their spaces differ
  between,         ///< another kernel has to run between them
  two_products,    ///< both reduce, and one of them reads its elements for several outputs each
  product_behind,  ///< a matrix product does not stand behind stores
  other_writes,    ///< both write the memory, at different places
  other_places,    ///< it reads what the other one writes at other places than the same iteration writes
  nothing_saved,
  arguments,  ///< the device takes fewer
  weight,     ///< it would take too long to compile
};
inline bool are_merged(Merge m) { return m <= Merge::small; }

struct MergeNote {
  int before = 0, kernel = 0;
  Merge reason = Merge::nothing_saved;
  double number = 0, most = 0;        ///< arguments, or weight
  UOp value_before = {}, value = {};  ///< that they store

  friend bool operator==(const MergeNote&, const MergeNote&) = default;
};

/// A kernel, or loop nests that are one kernel, as it is called.
struct KernelNote {
  Symbol name;
  size_t nests = 1;
  size_t calls = 1;  ///< one for each iteration of a loop around it and others (repeat_kernels.h)
  bool is_in_loop = false;
};

struct Explanation {
  std::vector<KernelNote> kernels;  ///< in the order in which they run, those of a loop once
  std::vector<ValueNote> values;    ///< from inputs to outputs
  std::vector<MergeNote> merges;

  /// A block of lines a kernel: what it stores and what it computes again, and which kernels it could have been one with.
  std::string text() const;
};

/// Collects notes while a schedule is made. Kernels are numbered by their places in the list of rangeify, whatever becomes of them.
class Explainer {
 public:
  std::vector<UOp> cuts;  ///< CONTIGUOUS nodes that split_reduces made

  /// What was placed, and the order of its kernels in the list.
  void placed(Kernels kernels, const std::vector<int>& order);
  void compared(MergeNote note);

  /// Kernels that became one.
  struct Group {
    std::vector<int> kernels;
    std::vector<UOp> targets;    ///< PARAMs that it writes
    std::vector<int> handed_on;  ///< kernels whose values it need not write
  };
  void merged(Group group) { groups_.push_back(std::move(group)); }

  /// By the calls that came of them.
  Explanation explain(const UOp& linear) const;

 private:
  std::vector<UOp> roots_;  ///< of kernels: what they store
  std::vector<ValueNote> values_;
  std::vector<MergeNote> merges_;
  std::vector<Group> groups_;
};

}  // namespace tinygrad::schedule
