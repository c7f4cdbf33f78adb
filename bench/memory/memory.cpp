// Three training steps of ResNet-18, batch 32 at 64x64, SGD with momentum: how much more memory the process held at its peak than before
// the network was built, in MB, as one JSON object. "eager" leaves out the jit.
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "models/resnet.h"

using namespace tinygrad;

namespace {

/// A line of /proc/self/status, in MB.
double status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (double kb = 0; word == name + ":" && file >> kb) return kb / 1e3;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool eager = argc > 1 && std::string_view(argv[1]) == "eager";
  const Tensor images = Tensor::randn({32, 3, 64, 64}).realize(), classes = Tensor::randint({32}, 0, 1000).realize();
  const double before = status("VmRSS");
  const apps::ResNet18 net;
  nn::optim::SGD optimizer(nn::state::get_parameters(net), {.lr = 0.01, .momentum = 0.9});
  const Context training{{.training = true}};
  const auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = net(x).sparse_categorical_crossentropy(y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto jitted = jit(step);
  float loss = 0;
  for (int i = 0; i < 3; ++i) loss = (eager ? step(images, classes) : jitted(images, classes)).item<float>();
  std::printf(R"({"megabytes": %.1f, "before": %.1f, "loss": %.3f})"
              "\n",
              status("VmHWM") - before, before, static_cast<double>(loss));
}
