#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::renderer::cstyle {

/// How the private memory (BUFFER) of a program is declared.
class PrivateMemory {
 public:
  explicit PrivateMemory(const UOp& linear);

  /// A BUFFER whose every access has one width and is aligned to it is an array of that many vectors. Its elements are then named by
  /// numbers that are known, or by one index.
  struct Layout {
    int width = 0;              ///< of its elements; 0 until an access is seen
    bool regular = true;        ///< else an array of scalars, accessed through casts
    int32_t first_access = -1;  ///< position in the list
  };
  const Layout& layout(const UOp& buffer) const { return layouts_[static_cast<size_t>(*number_.find(buffer))]; }
  /// The index of an INDEX of private memory, where it is known.
  static std::optional<int64_t> constant_index(const UOp& index);

 private:
  std::vector<Layout> layouts_;
  NodeMap<int32_t> number_;
};

}  // namespace tinygrad::renderer::cstyle
