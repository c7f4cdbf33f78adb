#include "search/trials.h"

#include <algorithm>

namespace tinygrad::search {

Trials::Trials(std::string program, const TrialMemory& memory, WorkerSetup setup, VariableValues variables)
    : program_(std::move(program)), memory_(memory), setup_(std::move(setup)), variables_(std::move(variables)) {}

WorkerResult Trials::run(const TrialKernel& kernel, const TrialLimits& limits) {
  if (!worker_ || !worker_->alive()) worker_.emplace(program_, memory_.descriptor(), setup_);
  WorkerRequest request{
      .symbol = kernel_symbol(kernel.info.name), .object = kernel.object, .variables = values_of(kernel.info, variables_)};
  request.chunks = kernel.info.launch_dims(request.variables).chunks;
  request.scratch_bytes = uint64_t(kernel.info.scratch_bytes);
  request.repetitions = limits.repetitions;
  request.enough_s = limits.enough_s;
  request.hopeless_s = limits.hopeless_s;
  request.limit_s = limits.limit_s;
  return worker_->run(request);
}

std::vector<int64_t> values_of(const KernelInfo& info, const VariableValues& values) {
  std::vector<int64_t> out;
  for (Symbol name : info.variables)
    for (const auto& [known, value] : values)
      if (known == name) out.push_back(value);
  return out;
}

double median_seconds(const std::vector<double>& runs) {
  if (runs.size() < 2) return runs.at(0);
  std::vector<double> later(runs.begin() + 1, runs.end());
  const auto middle = later.begin() + std::ptrdiff_t(later.size() / 2);
  std::nth_element(later.begin(), middle, later.end());
  return *middle;
}

}  // namespace tinygrad::search
