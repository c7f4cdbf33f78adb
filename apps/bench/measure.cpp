#include "bench/measure.h"

#include <algorithm>
#include <chrono>

#include <tinygrad/device.h>
#include <tinygrad/jit.h>

namespace tinygrad::apps {

Replay::Replay(const BenchWork& work) : device_(default_device()) {
  auto step = jit([step = work.step](const Tensors& inputs) {
    Tensors results = step(inputs);
    Tensor::realize(results);
    return results;
  });
  call_ = [step = std::make_shared<decltype(step)>(std::move(step)), inputs = work.inputs] { return (*step)(inputs); };
  for (int i = 0; i < 3; ++i) call_();  // runs, is captured, is replayed
  synchronize(device_);
}

double Replay::seconds(int64_t count) const {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) call_();
  synchronize(device_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / double(count);
}

Timing time_replay(const Replay& replay, double budget_s) {
  constexpr double shortest = 1e-3;  // of a repetition
  const double first = replay.seconds();
  Timing timing{.calls = std::clamp<int64_t>(int64_t(shortest / std::max(first, 1e-9)), 1, 10000)};
  std::vector<double> all;
  double spent = first;
  while (all.size() < 3 || (all.size() < 200 && spent < budget_s && (all.size() < 15 || spent < budget_s / 5))) {
    all.push_back(replay.seconds(timing.calls));
    spent += all.back() * double(timing.calls);
  }
  const auto middle = all.begin() + std::ptrdiff_t(all.size() / 2);
  std::ranges::nth_element(all, middle);
  timing.seconds = *middle;
  timing.repetitions = int(all.size());
  return timing;
}

}  // namespace tinygrad::apps
