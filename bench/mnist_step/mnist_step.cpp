// A training step of the MNIST conv net, batch 512, Adam: seconds, kernels and bytes of a step as one JSON object. Pixels are random.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "models/mnist_net.h"

using namespace tinygrad;

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 5;
  constexpr int64_t batch = 512;
  const Tensor pixels = Tensor::randint({batch, 1, 28, 28}, 0, 256, {.dtype = DType::uint8}).realize();
  const Tensor labels = Tensor::randint({batch}, 0, 10, {.dtype = DType::uint8}).realize();
  const apps::MnistNet net;
  nn::optim::Adam optimizer(nn::state::get_parameters(net));
  const Context training{{.training = true}};
  const auto step = jit([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = net(x).sparse_categorical_crossentropy(y);
    loss.backward();
    optimizer.step();
    return loss.realize();
  });
  for (int i = 0; i < 3; ++i) step(pixels, labels).item();  // runs, is captured, is replayed
  std::vector<double> seconds;
  GlobalCounters::reset();
  for (int i = 0; i < steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step(pixels, labels).item();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf(R"({"seconds": %.4f, "kernels": %llu, "megabytes": %.1f})"
              "\n",
              seconds[seconds.size() / 2], static_cast<unsigned long long>(GlobalCounters::kernel_count / static_cast<uint64_t>(steps)),
              static_cast<double>(GlobalCounters::global_mem) / steps / 1e6);
}
