#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "kernel/kernel_info.h"

namespace tinygrad::renderer::llvmir {

/// Which memory of a kernel is shared: a PARAM of alias class c > 0 shares none with one of another class > 0, nor with a place in the
/// scratch area, which are all apart. Metadata on each access says so.
class Aliases {
 public:
  /// Of a kernel's arguments and of this many places in its scratch area.
  Aliases(const KernelInfo& info, int32_t places);
  /// The number that suffix() has for a place.
  static int32_t number_of_place(int32_t place) { return -2 - place; }
  /// What follows an access to a place or to the argument of a slot; empty where there is nothing to tell apart, and for other memory, -1.
  std::string suffix(int32_t number) const;
  /// The nodes that suffixes name, and !0, the empty one.
  std::string metadata() const;

 private:
  std::map<int32_t, int> scopes_;     ///< the number of the node, by class
  std::map<int32_t, int> by_number_;  ///< the same for memory that has a class
};

}  // namespace tinygrad::renderer::llvmir
