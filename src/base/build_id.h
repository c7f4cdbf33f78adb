#pragma once
#include <string>

namespace tinygrad {

/// What tells one build of this library from any other: the linker's identifier of the file that it is in (GNU build ID). Empty where the
/// file has none.
const std::string& build_id();

}  // namespace tinygrad
