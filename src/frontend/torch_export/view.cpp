// Tensors that are views of memory, in a program that writes into them.
#include <tinygrad/errors.h>

#include "frontend/torch_export/walk.h"

namespace tinygrad::torch_export {

namespace {

Tensor step_of(const Tensor& from, const ViewStep& step, const aten::CallOptions& options) {
  aten::Arguments all = step.arguments;
  all.push_back({step.parameter, from});
  const std::vector<aten::Value> results = aten::call(step.target, all, options);
  return results.size() == 1 && results[0].get_if<aten::List>() ? results[0].list()[step.place].tensor() : results[step.place].tensor();
}

}  // namespace

Tensor View::replayed_on(const Tensor& base, const aten::CallOptions& options) const {
  Tensor out = base;
  for (const ViewStep& step : steps_) out = step_of(out, step, options);
  return out;
}

Tensor View::value(const aten::CallOptions& options) {
  if (steps_.empty()) return memory_->value;
  if (!seen_.defined() || seen_at_ != memory_->version) {
    seen_ = replayed_on(memory_->value, options);
    seen_at_ = memory_->version;
  }
  return seen_;
}

View View::then(ViewStep step, Tensor value) const {
  View out = *this;
  out.steps_.push_back(std::move(step));
  out.seen_ = std::move(value);
  out.seen_at_ = memory_->version;
  return out;
}

void View::write(const Tensor& value, const aten::CallOptions& options) {
  if (memory_->may_be_shared) throw ValueError("a tensor is written that may or may not share its elements with another one");
  if (steps_.empty()) {
    memory_->value = value;
  } else {
    const Tensor base = memory_->value.clone();
    Tensor part = replayed_on(base, options);
    part.assign(value);
    memory_->value = base;
  }
  ++memory_->version;
}

}  // namespace tinygrad::torch_export
