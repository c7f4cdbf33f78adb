#pragma once
#include <string>
#include <string_view>

#include "target/target.h"

namespace tinygrad::compiler {

/// An ELF file of a kernel's object that runs wherever its segments are put, as they are, and needs nothing else: for processors that are
/// not the host's. From the disk cache where it is known. Throws CompileError if lld is missing or the object needs what is not there.
std::string link_image(const std::string& object, std::string_view entry, const Target& target);

/// The program that runs kernels for a target (sources.h), ready to start.
std::string compile_runner(const Target& target);

/// Why nothing can be linked; empty if it can.
std::string image_missing();

}  // namespace tinygrad::compiler
