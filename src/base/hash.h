#pragma once

#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace tinygrad {

/// xxh3 of bytes: the same in every run and on every machine of one byte order.
uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0) noexcept;

/// Mixes a value into a running hash; order matters.
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) noexcept {
  // xxh3's avalanche over a multiply by an odd constant: cheap, and good enough for the low bits that tables use.
  uint64_t h = (seed ^ (value * 0x9E3779B185EBCA87ULL)) * 0xC2B2AE3D27D4EB4FULL + 0x165667B19E3779F9ULL;
  h ^= h >> 37;
  h *= 0x165667919E3779F9ULL;
  return h ^ (h >> 32);
}

/// hash_value(x) for the types that keys are made of; other types join by declaring their own in their namespace.
template <class T>
  requires(std::integral<T> || std::is_enum_v<T>)
constexpr uint64_t hash_value(T value) noexcept {
  return hash_combine(0, static_cast<uint64_t>(value));
}
inline uint64_t hash_value(std::string_view text) noexcept { return hash_bytes(text.data(), text.size()); }
/// A hash of the bits: -0.0 and 0.0 differ, a NaN equals itself.
constexpr uint64_t hash_value(double value) noexcept { return hash_combine(0, std::bit_cast<uint64_t>(value)); }

template <class T>
uint64_t hash_range(std::span<const T> values) noexcept {
  if constexpr (std::integral<T> || std::is_enum_v<T>) {
    return hash_bytes(values.data(), values.size_bytes());
  } else {
    uint64_t h = values.size();
    for (const T& v : values) h = hash_combine(h, hash_value(v));
    return h;
  }
}

/// hash_all(a, b, c): one hash of several values.
template <class... T>
uint64_t hash_all(const T&... values) noexcept {
  uint64_t h = sizeof...(values);
  ((h = hash_combine(h, hash_value(values))), ...);
  return h;
}

/// A 128-bit content hash: equal keys are taken to mean equal content. Zero means "no key".
struct ContentKey {
  uint64_t lo = 0, hi = 0;

  std::string to_hex() const;  ///< 32 lower-case digits, high word first
  static std::optional<ContentKey> from_hex(std::string_view text);
  explicit operator bool() const noexcept { return (lo | hi) != 0; }

  friend bool operator==(const ContentKey&, const ContentKey&) = default;
  friend constexpr std::strong_ordering operator<=>(const ContentKey& a, const ContentKey& b) noexcept {
    return a.hi != b.hi ? a.hi <=> b.hi : a.lo <=> b.lo;
  }
};
inline uint64_t hash_value(const ContentKey& key) noexcept { return hash_combine(key.hi, key.lo); }

/// The key of a run of bytes.
ContentKey content_key(const void* data, size_t size) noexcept;
inline ContentKey content_key(std::string_view text) noexcept { return content_key(text.data(), text.size()); }

/// Builds a ContentKey from pieces. Text carries its length, so ("ab", "c") and ("a", "bc") differ.
class ContentHasher {
 public:
  ContentHasher() noexcept;

  /// Raw bytes, as they are.
  ContentHasher& bytes(const void* data, size_t size) noexcept;
  ContentHasher& add(std::string_view text) noexcept;
  ContentHasher& add(const ContentKey& key) noexcept;
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  ContentHasher& add(T value) noexcept {
    return bytes(&value, sizeof value);
  }
  ContentKey finish() const noexcept;

 private:
  // Room for XXH3_state_t, so that xxhash.h stays out of the headers.
  alignas(64) unsigned char state_[576];
};

}  // namespace tinygrad

template <>
struct std::hash<tinygrad::ContentKey> {
  size_t operator()(const tinygrad::ContentKey& key) const noexcept { return tinygrad::hash_value(key); }
};
