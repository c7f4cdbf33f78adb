#pragma once
/// A kernel with opts on the interpreted device, beside the evaluator.

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tinygrad/context.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "device/device.h"
#include "kernel/describe_kernel.h"
#include "runtime/interp/kernel.h"
#include "shape/shape.h"
#include "spec/evaluate.h"
#include "uop/graph.h"

namespace tinygrad::codegen::test {

/// Small numbers for all that a kernel reads, and a value for each variable.
inline spec::EvalInputs some_inputs(const UOp& kernel) {
  spec::EvalInputs inputs;
  std::mt19937 random(7);
  for (const UOp& u : toposort(kernel)) {
    if (const auto* v = std::get_if<VarArg>(&u.arg()); v && u.is(Op::VAR)) inputs.variables[v->name] = v->max - 2;
    if (!u.is(Op::PARAM) || u.src_count() == 0) continue;
    std::vector<double> values(size_t(shape_of(u)[0].value()));
    for (double& x : values) x = is_float(u.dtype()) ? double(random() % 2001) / 1000 - 1 : double(random() % 4);
    inputs.set(u, spec::Array::of(u.dtype(), values));
  }
  return inputs;
}

/// The memory that a kernel leaves, by slot, where handles are addresses.
inline std::map<int32_t, spec::Array> run_on_host(Kernel& kernel, const KernelInfo& info, const spec::EvalInputs& inputs) {
  std::map<int32_t, spec::Array> memory = inputs.params;
  std::vector<void*> handles;
  for (auto& [slot, array] : memory) handles.push_back(array.bytes.data());
  std::vector<int64_t> variables;
  for (Symbol name : info.variables) variables.push_back(inputs.variables.at(name));
  kernel.launch(handles, variables, info.launch_dims(variables), true);
  return memory;
}

inline std::map<int32_t, spec::Array> run_on_interp(const UOp& linear, const spec::EvalInputs& inputs) {
  const KernelInfo info = describe_kernel(linear, "k");
  return run_on_host(*runtime::interp::make_kernel(info, linear), info, inputs);
}

/// Empty if the two agree, floats within `bound` of the largest.
inline std::string difference(const std::map<int32_t, spec::Array>& want, const std::map<int32_t, spec::Array>& got, double bound = 1e-5) {
  for (const auto& [slot, w] : want) {
    double largest = 1;
    for (size_t i = 0; i < w.size(); ++i) largest = std::max(largest, std::abs(w[i].as_double()));
    for (size_t i = 0; i < w.size(); ++i)
      if (!(std::abs(w[i].as_double() - got.at(slot)[i].as_double()) <= bound * largest))
        return "argument " + std::to_string(slot) + ", element " + std::to_string(i) + ": expected " + w[i].to_string() + ", got " +
               got.at(slot)[i].to_string();
  }
  return {};
}

/// Where a kernel with opts and the evaluator differ, or what was thrown on the way.
template <class RunLinear>
std::string difference_on(const UOp& kernel, std::vector<Opt> opts, const Target& target, RunLinear&& run, double bound = 1e-5,
                          bool images = false) {
  try {
    const UOp linear =
        full_rewrite(with_opts(kernel, std::move(opts)), target, {.noopt = true, .allow_tf32 = true, .images = images, .spec = 3});
    const spec::EvalInputs inputs = some_inputs(kernel);
    spec::EvalInputs evaluated = inputs;
    spec::evaluate(std::span(&kernel, 1), evaluated);
    return difference(evaluated.params, run(linear, inputs), bound);
  } catch (const std::exception& e) {
    return e.what();
  }
}

inline std::string difference_on_interp(const UOp& kernel, std::vector<Opt> opts, const Target& target, double bound = 1e-5) {
  return difference_on(kernel, std::move(opts), target, run_on_interp, bound);
}

/// The target with caches that hold next to nothing, so that all is done that is for large arrays.
inline Target with_small_caches(Target target) {
  target.l2_bytes = 64;
  target.l3_bytes = 128;
  return target;
}

enum class Caches { as_they_are, small };

inline std::string difference_on_cpu(const UOp& kernel, std::vector<Opt> opts, const char* device_name = "CPU:LLVM",
                                     Caches caches = Caches::as_they_are) {
  const Context choice{{.ccache = false, .dev = device_name}};
  Device& device = Device::get("CPU");
  const Target target = caches == Caches::small ? with_small_caches(device.target()) : device.target();
  return difference_on(kernel, std::move(opts), target, [&](const UOp& linear, const spec::EvalInputs& inputs) {
    const KernelInfo info = describe_kernel(linear, "k");
    const auto loaded = device.load(info, linear, device.compile(device.render(linear, info)));
    return run_on_host(*loaded, info, inputs);
  });
}

}  // namespace tinygrad::codegen::test
