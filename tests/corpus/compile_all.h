#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/compile_report.h>

namespace tinygrad::test {

/// A text without its numbers, the names of kernels and the comment at its head: what kernels that differ in these alone have in common.
std::string structure_of(std::string_view source);

/// The corpus as the device NULL renders it for a language and an architecture, one kernel of each structure.
std::vector<KernelSource> rendered_corpus(const std::string& renderer, const std::string& arch);

/// Kernels of the C family as one text, that a compiler starts once for: each in a namespace of its own. Their names must differ.
std::string as_one_text(std::span<const KernelSource> kernels);

struct Compiled {
  size_t kernels = 0, failed = 0;
  std::string first_failure = {};
};

/// Compiles kernels in parallel, together those of up to `most_bytes` that have different names. `compile` throws an Error for what fails;
/// what failed together is tried one by one.
Compiled compile_all(std::span<const KernelSource> kernels, size_t most_bytes,
                     const std::function<void(std::span<const KernelSource> kernels)>& compile);

}  // namespace tinygrad::test
