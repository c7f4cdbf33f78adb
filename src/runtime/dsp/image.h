#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tinygrad::runtime {

/// The code and data of a linked kernel as they lie in memory, wherever that is.
struct Image {
  std::string bytes;
  uint32_t entry = 0;  ///< where in them the kernel begins

  /// Of an ELF file as compile_hexagon() makes it. Throws FormatError for any other bytes.
  explicit Image(std::string_view elf);
};

}  // namespace tinygrad::runtime
