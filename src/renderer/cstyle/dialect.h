#pragma once
/// The languages of the C family differ in names and in how a kernel begins: what one of them needs is a table.

#include <span>
#include <string>
#include <string_view>

#include "renderer/kernel_info.h"
#include "uop/uop.h"

namespace tinygrad::renderer::cstyle {

/// A word of the kernel's text that is defined only where it is used.
struct Definition {
  std::string_view word, text;
};

/// How a language writes what the others write differently. The words that all of them share are OpenCL's: float8, uint, v.s3, v.lo.
struct Dialect {
  std::string_view name;                           ///< for messages
  std::string_view types[dtype_count];             ///< of scalars; empty: must be lowered before rendering
  std::string_view literal_suffixes[dtype_count];  ///< of scalars
  std::span<const Definition> definitions;         ///< of types and functions that the language has under other names
  std::string_view helper;                         ///< what stands before the result type of a helper function
  std::string_view restricted;                     ///< of a pointer to memory that no other argument shares
  /// The definition of a vector type; empty where the language has it.
  std::string (*vector_type)(std::string_view element, int lanes, int itemsize);
  /// The kernel around its body; `parameters` are declarations like "float* x": buffers, variables, chunks, then memory in the scratch
  /// area, which begins at the places `scratch`.
  std::string (*kernel)(const KernelInfo& info, std::span<const std::string> parameters, std::span<const UOp> variables,
                        std::span<const int64_t> scratch, const std::string& body, bool in_chunks);
};

/// C as clang compiles it for the host.
const Dialect& clang_dialect();

}  // namespace tinygrad::renderer::cstyle
