#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tinygrad::runtime {

/// The code and data of a linked kernel as they lie in memory, wherever that is.
struct Image {
  std::string bytes;
  uint64_t entry = 0;  ///< where in them the kernel begins
  uint32_t pointer_bytes = 0;

  /// From an ELF file as link_image() makes it. Throws FormatError for any other bytes.
  explicit Image(std::string_view elf);
};

}  // namespace tinygrad::runtime
