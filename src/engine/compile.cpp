#include "engine/compile.h"

#include "search/searched.h"

namespace tinygrad::engine {

std::vector<std::shared_ptr<const Program>> searched_programs(std::span<const KernelOn> kernels, const Options& options) {
  std::vector<KernelOn> searched(kernels.begin(), kernels.end());
  for (KernelOn& k : searched)
    if (k.sink.is(Op::SINK)) k.sink = search::searched(k.sink, *k.device, options);
  return get_programs(searched, options);
}

}  // namespace tinygrad::engine
