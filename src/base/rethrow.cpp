#include "base/rethrow.h"

#include <tinygrad/errors.h>

namespace tinygrad {

namespace {

/// The types that a text may be added to.
template <class... Errors>
struct Types {};

template <class First, class... Rest>
[[noreturn]] void rethrow(Types<First, Rest...>, FunctionRef<std::string(std::string_view)> text) {
  try {
    if constexpr (sizeof...(Rest) > 0)
      rethrow(Types<Rest...>(), text);
    else
      throw;
  } catch (const First& e) {
    throw First(text(e.what()));
  }
}

}  // namespace

void rethrow_as(FunctionRef<std::string(std::string_view what)> text) {
  rethrow(Types<ShapeError, DTypeError, DeviceError, CompileError, OutOfMemoryError, IndexError, ValueError, IoError, FormatError>(), text);
}

}  // namespace tinygrad
