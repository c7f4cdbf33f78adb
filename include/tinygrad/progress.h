#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <tinygrad/export.h>

namespace tinygrad {

struct ProgressArgs {
  std::string description = {};
  int64_t total = -1;  ///< steps to do, -1 when unknown
  std::string unit = "it";
  bool disable = false;  ///< show nothing
};

/// A bar on standard error: description, percentage, count, time taken and left, rate, and a text of the user. On a terminal
/// it is redrawn in place some times a second, elsewhere only its last state is printed. Threads may share one.
class TINYGRAD_EXPORT ProgressBar {
 public:
  explicit ProgressBar(ProgressArgs args = {});
  /// Closes it.
  ~ProgressBar();
  ProgressBar(ProgressBar&&) noexcept;
  ProgressBar& operator=(ProgressBar&&) noexcept;

  void update(int64_t steps = 1);
  void set_description(std::string text);
  /// The text at the end of the line, such as "loss 0.31".
  void set_postfix(std::string text);
  /// Prints the last state and ends the line. Later calls do nothing.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A range that shows how far the loop over it is; see tqdm() and trange().
template <class Range>
class Tqdm {
  using Inner = decltype(std::begin(std::declval<Range&>()));
  using InnerEnd = decltype(std::end(std::declval<Range&>()));

 public:
  class Iterator {
   public:
    Iterator(Inner it, ProgressBar* bar) : it_(std::move(it)), bar_(bar) {}
    decltype(auto) operator*() const { return *it_; }
    Iterator& operator++() {
      ++it_;
      bar_->update();
      return *this;
    }
    bool operator!=(const InnerEnd& end) const { return it_ != end; }

   private:
    Inner it_;
    ProgressBar* bar_;
  };

  Tqdm(Range&& range, ProgressArgs args) : range_(std::forward<Range>(range)), bar_(with_total(range_, std::move(args))) {}

  Iterator begin() { return Iterator(std::begin(range_), &bar_); }
  InnerEnd end() { return std::end(range_); }
  /// For a text from inside the loop: `auto steps = trange(100); for (auto i : steps) steps.bar().set_postfix(...);`.
  ProgressBar& bar() { return bar_; }

 private:
  static ProgressArgs with_total(const std::remove_reference_t<Range>& range, ProgressArgs args) {
    if constexpr (requires { std::size(range); }) {
      if (args.total < 0) args.total = static_cast<int64_t>(std::size(range));
    }
    return args;
  }

  Range range_;
  ProgressBar bar_;
};

/// `for (auto& batch : tqdm(batches, {.description = "train"}))`. A temporary range is kept, any other is referred to.
template <class Range>
Tqdm<Range> tqdm(Range&& range, ProgressArgs args = {}) {
  return Tqdm<Range>(std::forward<Range>(range), std::move(args));
}

namespace detail {
/// The integers from 0 to below `count`.
struct Counting {
  struct Iterator {
    int64_t value;
    int64_t operator*() const { return value; }
    Iterator& operator++() {
      ++value;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return value != other.value; }
  };
  int64_t count;
  Iterator begin() const { return {0}; }
  Iterator end() const { return {count}; }
  size_t size() const { return static_cast<size_t>(count); }
};
}  // namespace detail

/// `for (int64_t step : trange(100))`: the steps 0 to 99 with a bar. A count below zero is none.
inline Tqdm<detail::Counting> trange(int64_t count, ProgressArgs args = {}) {
  return tqdm(detail::Counting{count < 0 ? 0 : count}, std::move(args));
}

}  // namespace tinygrad
