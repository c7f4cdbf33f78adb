#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::test {

/// A text without its numbers, the names of kernels and the comment at its head: what kernels that differ in these alone have in common.
std::string structure_of(std::string_view source);

/// The corpus as the device NULL renders it for a language and an architecture, one kernel of each structure.
std::vector<std::string> rendered_corpus(const std::string& renderer, const std::string& arch);

/// What stands behind "void " in front of the parameters: the name of the only kernel of a source of the C family.
std::string kernel_in(const std::string& source);

/// Kernels of the C family as one text, that a compiler starts once for: each in a namespace of its own. Their names must differ.
std::string as_one_text(std::span<const std::string> sources);

struct Compiled {
  size_t kernels = 0, failed = 0;
  std::string first_failure = {};
};

/// Compiles sources in parallel, together those of up to `most_bytes` that have different names. `compile` throws an Error for what fails;
/// what failed together is tried one by one.
Compiled compile_all(std::span<const std::string> sources, size_t most_bytes,
                     const std::function<void(std::span<const std::string> sources)>& compile);

}  // namespace tinygrad::test
