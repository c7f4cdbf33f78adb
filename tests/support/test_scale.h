#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tinygrad::test {

/// The unsigned decimal number in environment variable `name`; `fallback` when it is unset or not a number.
inline std::uint64_t env_number(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  const std::string_view view(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  return error == std::errc() && end == view.data() + view.size() ? value : fallback;
}

/// How many times more cases than usual a counted test runs: 1, or what TG_TEST_SCALE says (`make test-full`: 20).
inline int test_scale() {
  static const int scale = static_cast<int>(env_number("TG_TEST_SCALE", 1));
  return scale < 1 ? 1 : scale;
}

/// The seed of a randomized test, printed once a process: TG_TEST_SEED or a fixed number.
inline std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const std::uint64_t s = env_number("TG_TEST_SEED", 20240229);
    std::printf("TG_TEST_SEED=%llu\n", static_cast<unsigned long long>(s));
    return s;
  }();
  return value;
}

/// Of how many cases a sampled test takes one: 1, or what TG_TEST_SAMPLE says (see tests/deep.txt) unless the scale asks for more.
inline std::size_t sample_of() {
  static const auto of = test_scale() > 1 ? 1 : static_cast<std::size_t>(env_number("TG_TEST_SAMPLE", 1));
  return of < 1 ? 1 : of;
}

/// One of sample_of() cases, at least one, in their order. They follow from the seed, the share and the name of the test, so that tests
/// alike see different ones.
template <class T>
std::vector<T> sampled(std::vector<T> all) {
  if (sample_of() == 1 || all.empty()) return all;
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string text = std::to_string(seed()) + "/" + std::to_string(sample_of()) + "/" + (test ? test->name() : "");
  std::seed_seq seeds(text.begin(), text.end());
  std::mt19937_64 random(seeds);
  std::vector<T> out;
  std::sample(all.begin(), all.end(), std::back_inserter(out), static_cast<std::ptrdiff_t>((all.size() + sample_of() - 1) / sample_of()),
              random);
  return out;
}
/// The same of numbers below `count`.
inline std::vector<std::size_t> sampled_below(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return sampled(std::move(all));
}

}  // namespace tinygrad::test
