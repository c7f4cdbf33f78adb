// A user's program: trains a line through points, and says so when the result is right.
#include <cmath>
#include <cstdio>

#include <tinygrad/tinygrad.h>
using namespace tinygrad;

struct Line : nn::Module {
  nn::Linear layer{1, 1};
  Tensor operator()(const Tensor& x) const { return layer(x); }
  TG_FIELDS(layer)
};

int main() {
  const Tensor x = Tensor::arange(8).reshape({8, 1}) / 8.0, y = x * 3.0 + 1.0;
  const Line line;
  nn::optim::SGD optimizer(nn::state::get_parameters(line), {.lr = 0.5});
  const Context training{{.training = true}};
  for (int step = 0; step < 100; step++) {
    optimizer.zero_grad();
    ((line(x) - y) * (line(x) - y)).mean().backward();
    optimizer.step();
  }
  const double slope = line.layer.weight.item(), offset = line.layer.bias.item();
  std::printf("y = %.2f x + %.2f\n", slope, offset);
  return std::abs(slope - 3) < 0.02 && std::abs(offset - 1) < 0.02 ? 0 : 1;
}
