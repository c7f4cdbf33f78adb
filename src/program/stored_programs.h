#pragma once
/// Programs as bytes, for the disk cache.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel_info.h"

namespace tinygrad {

/// What a kernel of a CPU is loaded from.
struct StoredProgram {
  KernelInfo info;
  std::string binary;
  friend bool operator==(const StoredProgram&, const StoredProgram&) = default;
};

std::string pack_programs(std::span<const StoredProgram> programs);
/// Throws FormatError for bytes that pack_programs() of this build did not make.
std::vector<StoredProgram> unpack_programs(std::string_view bytes);

}  // namespace tinygrad
