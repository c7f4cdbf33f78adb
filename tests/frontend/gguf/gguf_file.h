#pragma once
/// GGUF files byte by byte, good ones and others.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::test {

/// Numbers and texts one after another.
class GgufBytes {
 public:
  template <class T>
  GgufBytes& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  GgufBytes& text(std::string_view value) {
    number(uint64_t(value.size()));
    bytes_ += value;
    return *this;
  }
  GgufBytes& raw(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  GgufBytes& beginning(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
    return raw("GGUF").number(version).number(tensors).number(pairs);
  }
  /// A key and the number of its type.
  GgufBytes& key(std::string_view name, uint32_t type) { return text(name).number(type); }
  GgufBytes& tensor(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset) {
    text(name).number(uint32_t(sizes.size()));
    for (const uint64_t s : sizes) number(s);
    return number(type).number(offset);
  }
  /// Zeros up to a multiple, then `size` bytes of data.
  GgufBytes& data(size_t size, size_t alignment = 32) {
    bytes_.append((alignment - bytes_.size() % alignment) % alignment, '\0');
    bytes_.append(size, 'd');
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  operator const std::string&() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace tinygrad::test
