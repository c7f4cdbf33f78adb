#pragma once
/// Libraries that decode, opened when they are first needed.

#include <string_view>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/dylib.h"

namespace tinygrad::media {

/// The functions of a library, a struct whose first member opens it. That it is missing is the system's fault.
template <class Library>
const Library& opened(std::string_view what, std::string_view package) {
  try {
    static const Library& library = *new Library;
    return library;
  } catch (const DeviceError& e) {
    throw IoError(fmt::format("{}: {}; install the Debian package {}", what, e.what(), package));
  }
}

}  // namespace tinygrad::media
