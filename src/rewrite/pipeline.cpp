#include "rewrite/pipeline.h"

#include <utility>

#include <tinygrad/helpers.h>

#include "rewrite/rewrite.h"

namespace tinygrad::rewrite {

void Pipeline::step(const char* name, UOp result) {
  clock_.done(name);
  const UOp before = std::exchange(graph_, std::move(result));
  if (RewriteObserver* observer = rewrite_observer()) observer->stage(category_, name, before, graph_);
  if (check_) check_(name, graph_);
  check_interrupt();
}

}  // namespace tinygrad::rewrite
