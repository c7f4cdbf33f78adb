#pragma once
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace tinygrad::test {

/// Seeded choices, the same with every standard library (its distributions are not).
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  /// low ... high, both included.
  int64_t number(int64_t low, int64_t high) { return low + int64_t(random_() % uint64_t(high - low + 1)); }
  bool chance(int percent) { return number(0, 99) < percent; }
  uint64_t bits() { return random_(); }
  /// From [0, 1).
  double fraction() { return double(random_() >> 11) * 0x1p-53; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[size_t(number(0, int64_t(from.size()) - 1))];
  }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[number(0, int64_t(from.size()) - 1)];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace tinygrad::test
