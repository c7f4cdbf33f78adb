#pragma once
/// Errors on their way out that are told more.

#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace tinygrad {

/// Throws the error of the library that is being handled again, as the same type with the text that `text` makes of its own. What is no
/// fault of what was asked for (Cancelled, CommError, JitError, InternalError) stays as it is.
[[noreturn]] void rethrow_as(FunctionRef<std::string(std::string_view what)> text);

}  // namespace tinygrad
