// What users may write, and with TG_MISTAKES what must be refused: see refused.cmake.
#include <functional>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include <tinygrad/jit.h>
#include <tinygrad/module.h>
#include <tinygrad/tensor.h>

using namespace tinygrad;

struct Block : nn::Module {
  Tensor weight;
  TG_FIELDS(weight)
};

struct Result {
  Tensor loss;
  double rate;
};

struct Net : nn::Module {
  std::vector<Block> blocks;
  std::vector<std::function<Tensor(const Tensor&)>> functions;
  double rate = 0;
#ifdef TG_MISTAKES
  // refused: TG_FIELDS: a field is a Tensor, a Module, or
  TG_FIELDS(blocks, functions)
#else
  TG_FIELDS(blocks)
#endif
};

int main() {
  const Tensor x = Tensor::arange(4).reshape({2, 2});
  const auto step = jit([](const Tensor& t) { return std::pair(t, t + 1); });
  const auto rated = jit([](const Tensor& t) { return Result{t, 0.5}; });
  step(x).first.item();
  x[0][1].item();
  x[{0, 1}].item();
  Tensor y = x[0], z;
  y = x[1];
  std::tie(y, z) = std::pair(x[0], x[1]);
  std::cout << y;
#ifdef TG_MISTAKES
  // refused: comma
  x[0, 1].item();
  // refused: jit: the function returns something besides tensors
  rated(x).loss.item();
  // refused: Tensor: is made of vectors, arrays or spans of numbers
  const Tensor words(std::vector<std::string>{"a", "b"});
  // refused: Tensor: Tensor::stack() joins tensors along a new axis
  const Tensor joined(std::vector<Tensor>{x, x});
  // refused: use of deleted function
  x[0] = Tensor{1.0, 1.0};
  // refused: operator=(const tinygrad::Tensor&) &&
  x.grad() = x;
  // refused: Tensor: text is no list of numbers
  const Tensor text(std::string("file"));
#endif
}
