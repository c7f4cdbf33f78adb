#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "kernel/kernel_info.h"

namespace tinygrad::renderer::llvmir {

/// Tells LLVM which accesses of a kernel may overlap, by metadata on each. A PARAM of alias class c > 0 overlaps neither a PARAM of another
/// class > 0 nor a place in the scratch area; places in the scratch area do not overlap each other.
class Aliases {
 public:
  /// For a kernel's arguments and `places` places in its scratch area.
  Aliases(const KernelInfo& info, int32_t places);
  /// The number that suffix() has for a place.
  static int32_t number_of_place(int32_t place) { return -2 - place; }
  /// The text behind an access to the argument of a slot or to a place; empty for other memory (-1), and if there is nothing to tell apart.
  std::string suffix(int32_t number) const;
  /// The nodes that suffixes name, and !0, the empty one.
  std::string metadata() const;

 private:
  std::map<int32_t, int> scopes_;     ///< the metadata node of each class
  std::map<int32_t, int> by_number_;  ///< the metadata node of each slot or place that has a class
};

}  // namespace tinygrad::renderer::llvmir
