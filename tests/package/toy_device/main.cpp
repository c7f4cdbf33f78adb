// Programs of tensors on a device that the library does not know.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <tinygrad/tinygrad.h>

#include "toy.h"

using namespace tinygrad;

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  std::printf("%-6s %s\n", holds ? "ok" : "FAILED", what);
  failures += !holds;
}

double difference(const Tensor& a, const Tensor& b) { return (a.to("CPU") - b.to("CPU")).abs().max().item(); }

void check_registry() {
  bool listed = false;
  for (const DeviceStatus& d : available_devices()) listed = listed || (d.name == "TOY" && d.works);
  check(listed, "available_devices() lists TOY as working");
  check(canonical_device("toy:1") == "TOY:1", "names are canonical");
  check(default_device() != "TOY", "the library's own devices are preferred");
  check(is_dtype_supported(DType::float32, "TOY") && !is_dtype_supported(DType::float64, "TOY"), "dtypes are the Target's");
}

void check_computation() {
  const Tensor a = Tensor::rand({37, 50}), b = Tensor::rand({50, 23});
  const Tensor there = a.to("TOY").matmul(b.to("TOY")).softmax();
  check(there.device() == "TOY", "results are where their operands are");
  check(difference(there, a.matmul(b).softmax()) < 1e-6, "softmax(a @ b)");
  const Tensor large = Tensor::rand({1 << 20});
  check(std::abs(large.to("TOY").sum().item() - large.sum().item()) < 1, "a long sum");
  const Tensor integers = Tensor::arange(1000);
  check(difference((integers.to("TOY") * 7) % 13, (integers * 7) % 13) == 0, "integers");
  check(difference(large.to("TOY:1").to("TOY"), large) == 0, "a copy between two devices without a way to each other");
}

struct Line : nn::Module {
  nn::Linear layer{1, 1};
  Tensor operator()(const Tensor& x) const { return layer(x); }
  TG_FIELDS(layer)
};

void check_training() {
  const Context on_toy{{.dev = "TOY"}};
  const Tensor x = (Tensor::arange(8).reshape({8, 1}) / 8.0).realize(), y = (x * 3.0 + 1.0).realize();
  const Line line;
  nn::optim::SGD optimizer(nn::state::get_parameters(line), {.lr = 0.5});
  const auto step = jit([&] {
    const Context training{{.training = true}};
    optimizer.zero_grad();
    const Tensor loss = ((line(x) - y) * (line(x) - y)).mean();
    loss.backward();
    optimizer.step();
    return loss.realize();
  });
  for (int i = 0; i < 100; ++i) step();
  check(line.layer.weight.device() == "TOY", "parameters are on the default device of DEV=TOY");
  check(std::abs(line.layer.weight.item() - 3) < 0.02 && std::abs(line.layer.bias.item() - 1) < 0.02, "a jitted training step");
}

void check_memory() {
  const size_t before = device_statistics("TOY").in_use;
  {
    const Tensor held = Tensor::zeros({1000}).to("TOY").contiguous().realize();
    check(device_statistics("TOY").in_use >= before + 4000, "memory is counted");
  }
  check(device_statistics("TOY").in_use == before, "and returned");
  const Context limit{{.memory_limit = 1 << 20}};
  try {
    Tensor::ones({1 << 20}).to("TOY").contiguous().realize();
    check(false, "an allocation past the limit throws");
  } catch (const OutOfMemoryError&) {
    check(true, "an allocation past the limit throws");
  }
}

}  // namespace

int main() {
  register_toy();
  check_registry();
  check_computation();
  check_training();
  check_memory();
  check(toy_launches() > 100, "kernels ran on TOY");
  return failures == 0 ? 0 : 1;
}
