#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "renderer/kernel_info.h"

namespace tinygrad::renderer::llvmir {

/// Which arguments of a kernel share no memory: a PARAM of alias class c > 0 shares none with one of another class > 0. Metadata on each
/// access says so.
class Aliases {
 public:
  explicit Aliases(const KernelInfo& info);
  /// What follows an access to the argument of a slot; empty where there is nothing to tell apart.
  std::string suffix(int32_t slot) const;
  /// The nodes that suffixes name, and !0, the empty one.
  std::string metadata() const;

 private:
  std::map<uint16_t, int> scopes_;  ///< the number of the node, by class
  std::map<int32_t, int> by_slot_;  ///< the same for arguments that have a class
};

}  // namespace tinygrad::renderer::llvmir
