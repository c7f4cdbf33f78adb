#pragma once
/// A way from a kernel's linear program to a binary: data and pure functions, which need no device. A device that runs what comes out
/// names one; what is not here can be compiled for as well.

#include <span>
#include <string>
#include <string_view>

#include <tinygrad/export.h>
#include <tinygrad/kernel_info.h>
#include <tinygrad/target.h>

namespace tinygrad {

/// A renderer and its compiler.
struct CodePath {
  std::string_view renderer;  ///< "LLVM"
  /// What the option DEV may name as its architecture ("sm_90a"), as a Target of its own; of "", a usual one or the machine's. Throws
  /// ValueError for a name that it does not know.
  Target (*target)(std::string_view arch) = nullptr;
  /// The source text of a linear program, as DEBUG=4 shows it.
  std::string (*render)(const Target& target, const UOp& linear, const KernelInfo& info) = nullptr;
  /// The binary of a source text, from the disk cache where it is known. Throws CompileError. Null where a driver compiles: devices load
  /// the text then.
  std::string (*compile)(const Target& target, const std::string& source) = nullptr;
  /// What DEBUG=7 shows of a binary; null if there is nothing to show.
  std::string (*disassemble)(const Target& target, const std::string& binary) = nullptr;
  /// Why kernels that are not in the disk cache cannot be compiled; empty if they can. May take long. Null if nothing can be missing.
  std::string (*missing_compiler)() = nullptr;
  std::string_view arch = {};  ///< of a processor that is emulated; empty: the machine's
};

/// The one that a choice of a renderer names, or the first. Throws InternalError for a name that is not among them.
TINYGRAD_EXPORT const CodePath& find_code_path(std::span<const CodePath> paths, std::string_view renderer);

}  // namespace tinygrad
