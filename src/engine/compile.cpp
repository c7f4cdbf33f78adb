#include "engine/compile.h"

#include <tinygrad/helpers.h>

#include "base/thread_pool.h"
#include "search/searched.h"

namespace tinygrad::engine {

std::vector<std::shared_ptr<const Program>> get_programs(std::span<const std::pair<UOp, Device*>> bodies, const Options& options) {
  std::vector<UOp> kernels(bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i)
    if (bodies[i].first.is(Op::SINK)) kernels[i] = search::searched(bodies[i].first, *bodies[i].second, options);
  std::vector<std::shared_ptr<const Program>> programs(bodies.size());
  task_pool().parallel_for(bodies.size(), [&](size_t i) {
    check_interrupt();
    if (kernels[i]) programs[i] = get_program(kernels[i], *bodies[i].second, options);
  });
  return programs;
}

}  // namespace tinygrad::engine
