#pragma once
/// Names that compare as fast as pointers.

#include <compare>
#include <cstdint>
#include <functional>
#include <string_view>

#include <tinygrad/export.h>

namespace tinygrad {

/// An interned, immutable string in 8 bytes. Equal text means the same pointer; the order is that of the text, so it does
/// not change from run to run. The text lives as long as the process. Safe for many threads.
class TINYGRAD_EXPORT Symbol {
 public:
  /// The empty string.
  constexpr Symbol() = default;
  Symbol(std::string_view text);
  Symbol(const char* text) : Symbol(std::string_view(text)) {}

  std::string_view str() const noexcept;
  bool empty() const noexcept { return entry_ == nullptr; }
  /// A hash of the text: the same in every run.
  uint64_t hash() const noexcept;

  friend bool operator==(Symbol a, Symbol b) noexcept { return a.entry_ == b.entry_; }
  friend std::strong_ordering operator<=>(Symbol a, Symbol b) noexcept {
    return a.entry_ == b.entry_ ? std::strong_ordering::equal : a.str() <=> b.str();
  }

 private:
  struct Entry;
  static const Entry* intern(std::string_view text);

  const Entry* entry_ = nullptr;
};

inline uint64_t hash_value(Symbol symbol) noexcept { return symbol.hash(); }

}  // namespace tinygrad

template <>
struct std::hash<tinygrad::Symbol> {
  size_t operator()(tinygrad::Symbol symbol) const noexcept { return symbol.hash(); }
};
