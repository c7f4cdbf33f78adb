#pragma once
/// Graphs as bytes, for files that any process reads: little-endian, and nothing in them is trusted.

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "uop/graph.h"

namespace tinygrad::tensor {

class ByteWriter {
 public:
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void put(T value) {
    static_assert(std::endian::native == std::endian::little, "files are little-endian");
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text);
  void put_bytes(std::string_view bytes) { bytes_.append(bytes); }
  /// A node written before, or null.
  void put_node(const UOp& u);
  /// All nodes below the roots, bodies included, sources first. ValueError for a node that files cannot hold.
  void put_graph(std::span<const UOp> roots);
  const std::string& bytes() const { return bytes_; }

 private:
  void put_arg(const UOp& u);

  std::string bytes_;
  NodeMap<uint32_t> numbers_;  // of nodes, from 1
};

/// Throws FormatError where the bytes end too early or hold what cannot be.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  /// A number of things of at least one byte each that follow.
  uint32_t take_count();
  std::string take_text();
  bool take_bool() { return take_up_to<uint8_t>(1) != 0; }
  /// A number, or an enum's, from 0 to `most`.
  template <class T>
  T take_up_to(uint64_t most) {
    using Number =
        std::make_unsigned_t<typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>, std::type_identity<T>>::type>;
    const auto value = take<Number>();
    if (value > most) wrong("a number is too large");
    return static_cast<T>(value);
  }
  DType take_dtype();
  std::span<const std::byte> take_bytes(uint64_t count);
  UOp take_node();
  void take_graph();
  void expect_end() const {
    if (!bytes_.empty()) wrong("more bytes than there should be");
  }
  [[noreturn]] static void wrong(std::string_view what);

 private:
  Arg take_arg(Op op, DType dtype);

  std::span<const std::byte> bytes_;
  std::vector<UOp> nodes_;
};

}  // namespace tinygrad::tensor
