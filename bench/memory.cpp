// Three training steps of ResNet-18, batch 32 at 64x64, SGD with momentum: how much more memory the process held at its peak than before
// the network was built, in MB, as one JSON object. "eager" leaves out the jit.
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/tinygrad.h>

using namespace tinygrad;

namespace {

struct ConvNorm : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm norm;
  ConvNorm(int64_t in, int64_t out, int64_t size, int64_t stride)
      : conv(in, out, size, {.stride = {stride}, .padding = {size / 2}, .bias = false}), norm(out) {}
  Tensor operator()(const Tensor& x) const { return norm(conv(x)); }
  TG_FIELDS(conv, norm)
};

struct Block : nn::Module {
  ConvNorm first, second;
  std::optional<ConvNorm> shortcut;
  Block(int64_t in, int64_t out, int64_t stride) : first(in, out, 3, stride), second(out, out, 3, 1) {
    if (stride != 1 || in != out) shortcut.emplace(in, out, 1, stride);
  }
  Tensor operator()(const Tensor& x) const { return (second(first(x).relu()) + (shortcut ? (*shortcut)(x) : x)).relu(); }
  TG_FIELDS(first, second, shortcut)
};

struct ResNet18 : nn::Module {
  ConvNorm stem{3, 64, 7, 2};
  std::vector<Block> blocks;
  nn::Linear out{512, 1000};
  ResNet18() {
    int64_t in = 64;
    for (const int64_t width : {64, 128, 256, 512})
      for (int i = 0; i < 2; ++i, in = width) blocks.emplace_back(in, width, i == 0 && width > 64 ? 2 : 1);
  }
  Tensor operator()(const Tensor& images) const {
    Tensor x = stem(images).relu().max_pool2d({.kernel_size = {3, 3}, .stride = {2}, .padding = {1}});
    for (const Block& block : blocks) x = block(x);
    return out(x.mean({2, 3}));
  }
  TG_FIELDS(stem, blocks, out)
};

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
  const ResNet18 net;
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
