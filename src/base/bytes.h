#pragma once
/// Numbers, texts and lists as bytes, little-endian. What is read may be damaged, or made by anybody: then it is a FormatError, and takes
/// no more memory than its bytes deserve.

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad {

template <class T>
concept PlainNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class ByteWriter {
 public:
  template <PlainNumber T>
  void put(T value) {
    static_assert(std::endian::native == std::endian::little, "bytes are little-endian");
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_bytes(std::string_view bytes) { bytes_.append(bytes); }
  void put_count(size_t count) {
    if (count > std::numeric_limits<uint32_t>::max()) throw ValueError(fmt::format("{} elements are too many to be written", count));
    put(static_cast<uint32_t>(count));
  }
  void put_text(std::string_view text) {
    put_count(text.size());
    put_bytes(text);
  }
  template <class List, class Put>
  void put_each(const List& list, Put put) {
    put_count(list.size());
    for (const auto& x : list) put(x);
  }

  /// Numbers, texts, vectors, and structs whose members fields(archive, struct) gives to an archive, which writes or reads.
  template <class... T>
  void operator()(const T&... members) {
    (member(members), ...);
  }

  const std::string& bytes() const { return bytes_; }
  std::string take() && { return std::move(bytes_); }

 private:
  void member(const std::string& text) { put_text(text); }
  template <class T>
  void member(const std::vector<T>& list) {
    put_each(list, [&](const T& x) { member(x); });
  }
  template <class T>
  void member(const T& value) {
    if constexpr (PlainNumber<T>)
      put(value);
    else
      fields(*this, value);
  }

  std::string bytes_;
};

class ByteReader {
 public:
  /// `what` they are, for errors.
  ByteReader(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}
  ByteReader(std::string_view bytes, std::string_view what) : ByteReader(std::as_bytes(std::span(bytes)), what) {}

  template <PlainNumber T>
  T take() {
    if constexpr (std::is_same_v<T, bool>) {
      return take_up_to<uint8_t>(1) != 0;
    } else {
      T value;
      std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
      return value;
    }
  }
  /// A number, or an enum's, from 0 to `most`.
  template <class T>
  T take_up_to(uint64_t most) {
    using Number =
        std::make_unsigned_t<typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>, std::type_identity<T>>::type>;
    const auto value = take<Number>();
    if (value > most) wrong("a number is too large");
    return static_cast<T>(value);
  }
  std::span<const std::byte> take_bytes(uint64_t count) {
    if (count > bytes_.size()) wrong("the end comes too early");
    const auto taken = bytes_.first(static_cast<size_t>(count));
    bytes_ = bytes_.subspan(static_cast<size_t>(count));
    return taken;
  }
  std::string take_text() {
    const auto bytes = take_bytes(take<uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// Calls read() for each element of a list. Nobody knows that there are so many before they have been read.
  template <class Read>
  void take_each(Read read) {
    for (auto left = take<uint32_t>(); left > 0; --left) {
      if (bytes_.empty()) wrong("a list has fewer elements than it should have");
      read();
    }
  }

  /// What a ByteWriter made of the same.
  template <class... T>
  void operator()(T&... members) {
    (member(members), ...);
  }

  void expect_end() const {
    if (!bytes_.empty()) wrong("more bytes than there should be");
  }
  [[noreturn]] void wrong(std::string_view how) const { throw FormatError(fmt::format("{}: {}", what_, how)); }

 private:
  void member(std::string& text) { text = take_text(); }
  template <class T>
  void member(std::vector<T>& list) {
    list.clear();
    take_each([&] { member(list.emplace_back()); });
  }
  template <class T>
  void member(T& value) {
    if constexpr (PlainNumber<T>)
      value = take<T>();
    else
      fields(*this, value);
  }

  std::span<const std::byte> bytes_;
  std::string_view what_;
};

/// What fields() of both archives takes a struct as: const where it is written.
template <class Archive, class T>
using Field = std::conditional_t<std::is_same_v<Archive, ByteWriter>, const T&, T&>;

}  // namespace tinygrad
