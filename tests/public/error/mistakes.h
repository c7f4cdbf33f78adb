#pragma once
/// A table of mistakes: what a user calls, the error that it is, and what the message must say. Nothing may have changed after it.

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <typeinfo>
#include <vector>

#include <tinygrad/tinygrad.h>

namespace tinygrad::test {

/// Tensors as users have them, in memory but for the last.
struct Givens {
  Tensor matrix{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};  // (2, 3)
  Tensor square{{1.0, 2.0}, {3.0, 4.0}};
  Tensor vector{1.0, 2.0, 3.0};
  Tensor ints{{0, 1, 2}, {2, 1, 0}};
  Tensor mask = Tensor(std::vector<uint8_t>{1, 0, 1}, TensorOptions{.dtype = DType::bool_});
  Tensor image = Tensor(std::vector<float>(64, 1.0F), Sizes{1, 4, 4, 4});
  Tensor kernel = Tensor(std::vector<float>(72, 1.0F), Sizes{2, 4, 3, 3});
  Tensor scalar = Tensor(std::vector<float>{2}, Sizes{});
  Tensor none = Tensor::empty({0, 3});
  Tensor away = Tensor({1.0, 2.0, 3.0}, {.device = "CPU"});
  Tensor lazy = vector * 2;

  std::vector<Tensor> stored() const { return {matrix, square, vector, ints, mask, image, kernel, scalar, none, away}; }
};

struct Mistake {
  std::string name;
  std::function<void(Givens&)> make;
  const std::type_info* error;
  std::string says;  ///< a part of the message
};

inline void PrintTo(const Mistake& m, std::ostream* out) { *out << m.name; }

/// `make` throws an E whose message has `says` in it.
template <class E>
Mistake mistake(std::string name, std::string says, std::function<void(Givens&)> make) {
  return {std::move(name), std::move(make), &typeid(E), std::move(says)};
}

class Mistakes : public testing::TestWithParam<Mistake> {};

inline std::string name_of(const testing::TestParamInfo<Mistake>& info) { return info.param.name; }

}  // namespace tinygrad::test
