#include <tinygrad/function.h>

#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "engine/run.h"
#include "ops/gradient.h"
#include "schedule/schedule.h"
#include "shape/device.h"
#include "spec/verify.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/observer.h"
#include "tensor/placeholder.h"
#include "tensor/realize.h"
#include "tensor/undo.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {

using namespace tensor;

namespace detail {

/// Asks the user's function. Arguments beyond the first `inputs` are tensors that the function had found elsewhere.
class FunctionGradient final : public ops::GradientRule {
 public:
  FunctionGradient(std::string name, GradientFunction gradient) : name_(std::move(name)), gradient_(std::move(gradient)) {}

  std::vector<UOp> gradients(const UOp& call, std::span<const UOp> given) const override {
    const UOp& body = call.src(0).src(0);
    std::vector<Tensor> gradients, inputs, outputs;
    for (const UOp& g : given) gradients.push_back(wrap(g));
    for (size_t i = 0; i < given.size(); ++i)
      outputs.push_back(wrap(body.is(Op::TUPLE) ? UOp(Op::GETTUPLE, body.src(i).dtype(), {call}, TupleArg{int32_t(i)}) : call));
    for (const UOp& a : call.src().subspan(1)) inputs.push_back(wrap(a));
    const std::vector<Tensor> found = gradient_(gradients, inputs, outputs);
    if (found.size() > inputs.size() || found.empty())
      throw ValueError(fmt::format("{}: the gradient function gave {} gradients for {} inputs", name_, found.size(), inputs.size()));
    std::vector<UOp> out;
    for (size_t i = 0; i < found.size(); ++i) out.push_back(found[i].defined() ? checked(found[i].uop(), inputs[i].uop(), i) : UOp());
    return out;
  }

 private:
  UOp checked(const UOp& g, const UOp& input, size_t i) const {
    if (shape_of(g) != shape_of(input))
      throw ShapeError(fmt::format("{}: the gradient function gave {} for input {} of {}; the shapes must be equal", name_,
                                   tinygrad::to_string(shape_of(g)), i, tinygrad::to_string(shape_of(input))));
    if (!is_float(g.dtype()))
      throw DTypeError(fmt::format("{}: the gradient function gave {} for input {}, expects a float dtype", name_, repr(g.dtype()), i));
    return tinygrad::cast(g, input.dtype());
  }

  const std::string name_;
  const GradientFunction gradient_;
};

FunctionCore::FunctionCore(FunctionOptions options) : options_(std::move(options)) {
  if (!options_.gradient) return;
  gradient_ = new FunctionGradient(options_.name, options_.gradient);
  gradient_->retain();
}
FunctionCore::~FunctionCore() {
  if (gradient_) gradient_->release();
}

namespace {

/// What a body reads besides its arguments, in order: the largest values that depend on none of them, but on memory or on tensors that were
/// there before it.
struct Closed {
  std::vector<UOp> values, found;
};

Closed close(const std::string& name, std::span<const UOp> values, const std::vector<UOp>& params, uint64_t first_new) {
  NodeSet inside, reads;
  for (const UOp& p : params) inside.insert(p);
  Closed out;
  NodeSet added;
  const auto add_found = [&](const UOp& u) {
    if (!inside.contains(u) && reads.contains(u) && added.insert(u)) out.found.push_back(u);
  };
  for (const UOp& u : toposort(values)) {
    bool depends = inside.contains(u), has_memory = u.is(Op::BUFFER) || u.is(Op::PARAM);
    has_memory = has_memory || (u.is(Op::TENSOR) && u.arg_as<TensorArg>().id < first_new);
    for (const UOp& s : scope_sources(u)) {
      depends = depends || inside.contains(s);
      has_memory = has_memory || reads.contains(s);
    }
    if (has_memory) reads.insert(u);
    if (!depends) continue;
    if (u.is(Op::STORE)) throw ValueError(fmt::format("{}: it assigns to a tensor, which a function() may not; return the value", name));
    inside.insert(u);
    for (const UOp& s : scope_sources(u)) add_found(s);
  }
  for (const UOp& v : values) add_found(v);
  return out;
}

}  // namespace

namespace {

/// Whether a value is computed from one of these.
bool depends_on(const UOp& value, const std::vector<UOp>& nodes) {
  const std::vector<UOp> below = toposort(value);
  return std::any_of(below.begin(), below.end(), [&](const UOp& u) { return std::find(nodes.begin(), nodes.end(), u) != nodes.end(); });
}

/// Assignments of a body to tensors outside of it: what they got is of no use when the call is over.
class Assignments {
 public:
  explicit Assignments(const std::vector<UOp>& params) : params_(params) {}
  ~Assignments() { undo(); }
  /// True if there were any whose value came from the arguments.
  bool undo() {
    bool any = false;
    for (const Undo::Change& c : log_.changes())
      if (depends_on(c.cell->node(), params_)) {
        c.cell->set_node(c.before);
        any = true;
      }
    return any;
  }

 private:
  const std::vector<UOp>& params_;
  Undo log_;
};

}  // namespace

std::vector<Tensor> FunctionCore::call(std::span<const Tensor> inputs, const Body& body) const {
  const uint64_t first_new = detail::next_cell_number();
  std::vector<UOp> args, params, given;
  std::vector<Tensor> placeholders;
  for (const Tensor& t : inputs) {
    if (!t.defined()) {
      placeholders.emplace_back();
      continue;
    }
    args.push_back(t.uop());
    params.push_back(placeholder_like(args.back()));
    placeholders.push_back(wrap(params.back()));
    given.push_back(placeholders.back().uop());
  }
  Assignments assignments(params);
  std::vector<UOp> values;
  for (const Tensor& t : body(placeholders)) {
    if (!t.defined()) throw ValueError(fmt::format("{}: one of the results is no tensor", options_.name));
    values.push_back(t.uop());
  }
  if (values.empty()) throw ValueError(fmt::format("{}: it gives no tensors", options_.name));
  for (size_t i = 0, next = 0; i < placeholders.size(); ++i)
    if (placeholders[i].defined() && placeholders[i].uop() != given[next++])
      throw ValueError(fmt::format("{}: it assigns to argument {}, which a function() may not; return the value", options_.name, i));
  if (assignments.undo())
    throw ValueError(fmt::format("{}: it assigns to a tensor outside of it, which a function() may not; return the value", options_.name));
  const Closed closed = close(options_.name, values, params, first_new);
  args.insert(args.end(), closed.found.begin(), closed.found.end());
  params.insert(params.end(), closed.found.begin(), closed.found.end());
  NodeMap<UOp> slots;
  for (size_t i = 0; i < params.size(); ++i) slots[params[i]] = ops::param_like(args[i], int32_t(i));
  const std::vector<UOp> lexical = substitute(values, slots);
  const UOp whole = lexical.size() == 1 ? lexical[0] : UOp(Op::TUPLE, DType::void_, lexical);
  const UOp call = ops::call_function(whole, args, Symbol(options_.name), IntrusivePtr<ops::GradientRule>(gradient_));
  std::vector<Tensor> out;
  for (size_t i = 0; i < lexical.size(); ++i)
    out.push_back(wrap(lexical.size() == 1 ? call : UOp(Op::GETTUPLE, lexical[i].dtype(), {call}, TupleArg{int32_t(i)})));
  return out;
}

}  // namespace detail

namespace {

/// The slots that a kernel stores to.
std::vector<bool> written_slots(const UOp& kernel, size_t count) {
  std::vector<bool> out(count);
  for (const UOp& u : toposort(kernel)) {
    if (u.is(Op::PARAM) && size_t(u.arg_as<ParamArg>().slot) >= count)
      throw ValueError(fmt::format("custom_kernel: the kernel has a PARAM {} of {}", u.arg_as<ParamArg>().slot, count));
    if (!u.is(Op::STORE)) continue;
    const UOp* to = &u.src(0);
    while (!to->is(Op::PARAM) && to->src_count() > 0) to = &to->src(0);
    if (!to->is(Op::PARAM)) throw ValueError("custom_kernel: a STORE to something that is no PARAM");
    out[size_t(to->arg_as<ParamArg>().slot)] = true;
  }
  return out;
}

/// ValueError for a graph that is no kernel: the user wrote it.
void verify(const UOp& kernel) {
  try {
    spec::verify_kernel(kernel);
  } catch (const InternalError& e) {
    throw ValueError(fmt::format("custom_kernel: {}", e.what()));
  }
}

/// Runs the kernel on these BUFFERs, as a realize runs its kernels.
void run_kernel(const UOp& kernel, const std::vector<UOp>& buffers, const std::vector<bool>& written) {
  UOps sources{kernel}, given{kernel};
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto& b = buffers[i].arg_as<BufferArg>();
    sources.push_back(param(buffers[i].dtype(), b.size, {.slot = int32_t(i), .device = b.device}));
    given.push_back(buffers[i]);
  }
  auto plan = std::make_shared<schedule::Plan>();
  plan->linear = UOp(Op::LINEAR, DType::void_, {UOp(Op::CALL, DType::void_, sources)}, LinearArg{0});
  plan->input_count = buffers.size();
  Claims used;
  for (size_t i = 0; i < buffers.size(); ++i) used.add(buffer_of(buffers[i]), written[i]);
  const Claims held = settle(std::move(used));
  const schedule::Schedule schedule{std::move(plan), buffers, {}};
  Observer* r = Observer::current();
  UOps stores;
  for (size_t i = 0; i < buffers.size(); ++i) stores.push_back(written[i] ? store(buffers[i], buffers[i]) : buffers[i]);
  if (r) r->check(sink(stores));
  engine::run_schedule(schedule, current_options());
  if (r) r->ran(sink(UOps{UOp(Op::CALL, DType::void_, given)}), schedule);
}

}  // namespace

std::vector<Tensor> custom_kernel(std::span<const Tensor> tensors, const std::function<UOp(std::span<const UOp>)>& build,
                                  const GradientFunction& gradient) {
  std::vector<UOp> params, buffers, views;
  for (const Tensor& t : tensors) {
    Tensor own = t.realize();
    if (!whole_buffer(own.uop())) own = t.contiguous().realize();
    views.push_back(own.uop());
    buffers.push_back(whole_buffer(own.uop()));
    if (!buffers.back()) throw ShapeError(fmt::format("custom_kernel: {} has no memory that a kernel can use", t.to_string()));
    const auto slot = int32_t(params.size());
    params.push_back(param(t.dtype(), t.numel(), {.slot = slot, .alias = uint16_t(slot + 1)}));
  }
  const UOp kernel = build(params);
  if (!kernel.is(Op::SINK)) throw ValueError(fmt::format("custom_kernel: the function gave a {}, expects a SINK", name(kernel.op())));
  const UOp named = std::holds_alternative<KernelArg>(kernel.arg()) ? kernel : kernel.with_arg(KernelArg{.name = Symbol("custom")});
  verify(named);
  const std::vector<bool> written = written_slots(named, params.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    if (written[i] && whole_buffer(tensors[i].uop()) != buffers[i])
      throw ValueError(fmt::format("custom_kernel: the kernel writes tensor {}, which is a view of a part of memory; pass a whole one", i));
  run_kernel(named, buffers, written);

  std::vector<Tensor> out;
  const GradientFunction rule = gradient ? gradient : [](auto, auto, auto) -> std::vector<Tensor> {
    throw ValueError("gradient: a custom_kernel without a gradient function; give one, or use detach()");
  };
  std::vector<UOp> values;
  for (size_t i = 0; i < views.size(); ++i)
    if (written[i]) values.push_back(ops::param_like(views[i], int32_t(i)));
  if (values.empty()) throw ValueError("custom_kernel: the kernel stores nothing");
  const UOp whole = values.size() == 1 ? values[0] : UOp(Op::TUPLE, DType::void_, values);
  const IntrusivePtr<ops::GradientRule> by(new detail::FunctionGradient("custom_kernel", rule));
  const UOp call = ops::call_function(whole, views, Symbol("custom_kernel"), by);
  int32_t next = 0;
  for (size_t i = 0; i < views.size(); ++i) {
    if (!written[i])
      out.push_back(tensors[i]);
    else
      out.push_back(wrap(values.size() == 1 ? call : UOp(Op::GETTUPLE, views[i].dtype(), {call}, TupleArg{next++})));
  }
  return out;
}

}  // namespace tinygrad
