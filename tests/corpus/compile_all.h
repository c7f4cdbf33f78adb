#pragma once
#include <functional>
#include <string>

namespace tinygrad::test {

struct Compiled {
  size_t kernels = 0, failed = 0, with_tensor_cores = 0;
  std::string first_failure = {};
};

/// Compiles every different source of the corpus once, as the device NULL renders it for a language and an architecture. `compile` throws
/// an Error for what fails; sources with `tensor_core` in them use one.
Compiled compile_all(const std::string& renderer, const std::string& arch, const std::function<void(const std::string& source)>& compile,
                     std::string_view tensor_core);

}  // namespace tinygrad::test
