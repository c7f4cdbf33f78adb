#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "renderer/cstyle/dialect.h"
#include "renderer/cstyle/value.h"
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::renderer::cstyle {

/// Asynchronous products and tensor memory, as a language writes them: one object for each kernel that has such products. It gives
/// statements for the place where it is asked for them.
class AsyncProducts {
 public:
  using Lines = std::vector<std::string>;

  virtual ~AsyncProducts() = default;

  /// Begins a product of the factors that two pointers name. `sums` is what it is added to, null for a tile, to which it is added in place.
  /// The value of the product, which is there once it was waited for.
  virtual Value begin(const UOp& product, const TensorCore& core, std::string_view a, std::string_view b, const Value* sums,
                      Lines& lines) = 0;
  /// Waits for all that were begun.
  virtual Lines wait() = 0;
  /// The barrier of the group, behind which such cores see what the items wrote before it.
  virtual Lines barrier() = 0;
  /// A loop begins or ends here: what stands next may run behind what is not in front of it.
  virtual void join() {}

  // Tiles in tensor memory, given by their BUFFERs.
  virtual void add_tile(const UOp& tile);
  virtual Lines clear(const UOp& tile);
  virtual Value load(const UOp& tile, Lines& lines);

  /// Adds what stands in front of the kernel's body and behind it, and memory of the group behind the first `group_bytes`.
  virtual void surround(KernelText& text, int64_t group_bytes);
};

}  // namespace tinygrad::renderer::cstyle
