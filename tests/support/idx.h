#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::test {

/// The bytes of an IDX file of unsigned bytes.
inline std::string idx_bytes(const std::vector<uint32_t>& shape, std::string_view elements) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t s : shape)
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(s >> shift & 255);
  bytes += elements;
  return bytes;
}

}  // namespace tinygrad::test
