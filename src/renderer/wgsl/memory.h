#pragma once
#include <string>
#include <vector>

#include "renderer/wgsl/value.h"

namespace tinygrad::renderer::wgsl {

/// An argument or memory of the kernel's own.
struct Memory {
  std::string name;
  DType dtype = DType::void_;
  std::string first = {};    ///< of an argument: the element that index 0 means
  bool is_written = false;   ///< an argument
  bool is_variable = false;  ///< a single element instead of an array

  bool is_argument() const { return !first.empty(); }
  /// Several elements are in a word of 32 bits, of which only an argument has any: WGSL stores nothing smaller than a word, so parts of it
  /// are replaced by atomic operations.
  bool is_packed() const { return is_argument() && itemsize(dtype) < 4 && dtype != DType::float16; }
};

/// "array<f32>", "array<atomic<u32>>"
std::string array_type(Prelude& prelude, const Memory& memory, int64_t size = 0);

/// The element at an index.
Expr element(Prelude& prelude, const Memory& memory, const Expr& at);
/// Statements that store to the element at an index; a name for the index where it is used more than once.
std::vector<std::string> store_element(Prelude& prelude, const Memory& memory, const Expr& at, const Expr& value);

}  // namespace tinygrad::renderer::wgsl
