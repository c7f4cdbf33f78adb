// What sharding costs within a process: a training step of digits on one device, as two shards of one device and on two devices, in turns,
// and an all-reduce between two devices beside threads that copy as many bytes. One JSON object.
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "times.h"

using namespace tinygrad;
using Names = std::vector<std::string>;

namespace {

/// The network of `tg train digits` and its step.
struct Net : nn::Module {
  nn::Conv2d conv1{1, 16, 3, {.padding = {1}, .bias = false}}, conv2{16, 32, 3, {.padding = {1}, .bias = false}};
  nn::BatchNorm norm1{16}, norm2{32};
  nn::Linear out{32 * 4 * 4, 10};

  Tensor operator()(const Tensor& pixels) const {
    Tensor x = norm1(conv1(pixels)).relu();
    x = norm2(conv2(x)).relu().max_pool2d();
    return out(x.flatten(1).dropout(0.3));
  }
  TG_FIELDS(conv1, norm1, conv2, norm2, out)
};

class Training {
 public:
  explicit Training(const Names& devices)
      : pixels_(Tensor::rand({64, 1, 8, 8}).shard(devices, 0).contiguous().realize()),
        labels_((Tensor::arange(64, {.dtype = DType::int32}) % 10).shard(devices, 0).contiguous().realize()) {
    for (auto [name, weight] : nn::state::get_state_dict(net_)) weight.shard_(devices);
    optimizer_ = std::make_unique<nn::optim::Adam>(nn::state::get_parameters(net_));
    step_ = jit([this](const Tensor& pixels, const Tensor& labels) {
      const Context training{{.training = true}};
      optimizer_->zero_grad();
      const Tensor loss = net_(pixels).sparse_categorical_crossentropy(labels);
      loss.backward();
      optimizer_->step();
      return loss;
    });
    run(3);
  }

  void run(int steps) {
    Tensor loss;
    for (int i = 0; i < steps; ++i) loss = step_(pixels_, labels_);
    (void)loss.item<float>();
  }

 private:
  Net net_;
  Tensor pixels_, labels_;
  std::unique_ptr<nn::optim::Adam> optimizer_;
  std::function<Tensor(const Tensor&, const Tensor&)> step_;
};

}  // namespace

int main() {
  constexpr int rounds = 31, steps = 60;
  Training one({"CPU"}), halves({"CPU", "CPU"}), two({"CPU", "CPU:1"});
  std::vector<double> step, of_halves, of_two;
  for (int r = 0; r < rounds; ++r) {
    const double a = seconds_of([&] { one.run(steps); }), b = seconds_of([&] { halves.run(steps); }),
                 c = seconds_of([&] { two.run(steps); });
    step.push_back(a / steps);
    of_halves.push_back(b / a);
    of_two.push_back(c / b);
  }

  constexpr int64_t bytes = int64_t(64) << 20, n = bytes / 4;
  const Tensor terms = Tensor::rand({2, n}).shard(Names{"CPU", "CPU:1"}, 0).contiguous().realize();
  const auto sum = jit([](const Tensor& x) { return x.sum(0).realize(); });
  for (int i = 0; i < 3; ++i) sum(terms);
  std::vector<std::vector<char>> from(2, std::vector<char>(bytes, 1)), to(2, std::vector<char>(bytes, 1));
  const auto copy = [&](size_t t) { std::memcpy(to[t].data(), from[1 - t].data(), size_t(bytes)); };
  std::vector<double> reduces, ratios;
  for (int r = 0; r < rounds; ++r) {
    const double a = seconds_of([&] { sum(terms); });
    const double b = seconds_of([&] {
      std::thread other(copy, 1);
      copy(0);
      other.join();
    });
    reduces.push_back(a);
    ratios.push_back(b / a);
  }
  std::printf(R"({"step_us": %.1f, "halves": %.3f, "two_devices": %.3f, "allreduce_ms": %.2f, "of_copies": %.3f})"
              "\n",
              median(step) * 1e6, median(of_halves), median(of_two), median(reduces) * 1e3, median(ratios));
}
