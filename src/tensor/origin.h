#pragma once
/// Where values come from, for errors that come only when they are computed.

#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "uop/uop.h"

namespace tinygrad::tensor {

/// Part of a user's program.
struct SourcePlace {
  std::string file, function;
  int line = 0, end_line = 0;
  int column = 0, end_column = 0;  ///< bytes; 0 and 0 if only the line is known
};

/// What asks, for every tensor that is made, which part of a program makes it. Places live as long as the process. Null: there is no
/// telling.
using PlaceProvider = const SourcePlace* (*)() noexcept;
void set_place_provider(PlaceProvider provider);

/// Which operation made a value, and where it was called.
struct ValueOrigin {
  const char* operation = "";
  const SourcePlace* place = nullptr;

  static ValueOrigin of(const char* operation) noexcept;
};

/// ", at train.py:12 in forward: x @ w"; "" where the place is not known.
std::string place_text(const ValueOrigin& origin);

/// "matmul: (8, 4) float32 of (8, 16) and (16, 4), at train.py:12 in forward: x @ w"; `tensor` is a TENSOR.
std::string describe(const UOp& tensor);

/// What `sink` computes, in words, without keeping it.
class Computed {
 public:
  Computed() = default;
  explicit Computed(const UOp& sink);
  /// A line for each of the last operations, each after a line break.
  std::string text() const;

 private:
  struct Value {
    std::string what;
    ValueOrigin origin;
  };
  std::vector<Value> last_;
  size_t more_ = 0;
};

/// Throws the error that is being handled again: it says where in a replay it came up (", kernel E_4"), what that computes, and of an
/// OutOfMemoryError which tensors have most of the memory.
[[noreturn]] void rethrow_in_replay(std::string_view where, const Computed& computed);

/// Throws the error that is being handled again: it says which operation of `sink`, what a realize ran, it comes from, and of an
/// OutOfMemoryError which tensors have most of the memory. `compile`, which throws what it throws, compiles what another SINK needs.
[[noreturn]] void rethrow_explained(const UOp& sink, FunctionRef<void(const UOp& sink)> compile);

}  // namespace tinygrad::tensor
