#pragma once
/// A text of a file for a parser of JSON: how far it has come is the place that errors name.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tinygrad::frontend {

class CountedText {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Iterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
    reference operator*() const { return *at_; }
    Iterator& operator++() {
      *furthest_ = ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const char* at_;
    const char** furthest_;
  };

  /// `file_offset` is that of the text.
  CountedText(std::string_view text, size_t file_offset) : text_(text), offset_(file_offset), furthest_(text.data()) {}
  CountedText(const CountedText&) = delete;
  CountedText& operator=(const CountedText&) = delete;

  Iterator begin() { return {text_.data(), &furthest_}; }
  Iterator end() { return {text_.data() + text_.size(), &furthest_}; }
  /// Of the file, behind what was read.
  size_t byte() const { return offset_ + static_cast<size_t>(furthest_ - text_.data()); }

 private:
  std::string_view text_;
  size_t offset_;
  const char* furthest_;
};

}  // namespace tinygrad::frontend
