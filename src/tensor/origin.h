#pragma once
/// Where values come from, for errors that come only when they are computed.

#include <string>

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

/// Throws the error that is being handled again: it says which operation of `sink`, what a realize ran, it comes from, and of an
/// OutOfMemoryError which tensors have most of the memory. `compile`, which throws what it throws, compiles what another SINK needs.
[[noreturn]] void rethrow_explained(const UOp& sink, FunctionRef<void(const UOp& sink)> compile);

}  // namespace tinygrad::tensor
