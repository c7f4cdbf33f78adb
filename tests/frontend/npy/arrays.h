#pragma once
/// Writes small files of NumPy for tests, right ones and wrong ones.

#include <fmt/format.h>

#include <string>

#include "base/archives.h"

namespace tinygrad::test {

/// A file of which this is the header's text.
inline std::string npy_with_header(const std::string& text, const std::string& elements = "", int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  out += version == 1 ? little(static_cast<uint16_t>(text.size())) : little(static_cast<uint32_t>(text.size()));
  return out + text + elements;
}

/// One as NumPy writes it.
inline std::string npy_of(const std::string& descr, const std::string& shape, const std::string& elements,
                          const std::string& fortran_order = "False", int version = 1) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran_order, shape);
  const size_t before = version == 1 ? 10 : 12;
  text.append(64 - (before + text.size()) % 64 - 1, ' ');
  return npy_with_header(text + "\n", elements, version);
}

}  // namespace tinygrad::test
