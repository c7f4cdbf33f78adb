#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

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

}  // namespace tinygrad::test
