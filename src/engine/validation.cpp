#include "engine/validation.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "device/device.h"
#include "dtype/scalar.h"
#include "uop/graph.h"

namespace tinygrad::engine {

namespace {

/// Without opts of its own, by options that choose none.
std::shared_ptr<const Program> reference_of(const Program& program, Device& cpu) {
  Options options = current_options();
  options.noopt = true;
  auto kernel = program.sink.arg_as<KernelArg>();
  if (!kernel.optimized) kernel.opts.clear();
  return get_program(program.sink.with_arg(std::move(kernel)), cpu, options);
}

/// In the order of another's variables, of which it may have lost some.
std::vector<int64_t> values_for(const KernelInfo& kernel, const KernelInfo& given, std::span<const int64_t> values) {
  std::vector<int64_t> out;
  for (const Symbol v : kernel.variables) {
    const auto at = std::ranges::find(given.variables, v);
    if (at == given.variables.end()) throw InternalError(fmt::format("VALIDATE_WITH_CPU: {} has no variable {}", given.name, v.str()));
    out.push_back(values[size_t(at - given.variables.begin())]);
  }
  return out;
}

/// By the coarsest float that a kernel computes in: what is loaded or stored in another dtype is no more exact.
double tolerance_of(const UOp& sink) {
  double most = 0;
  for (const UOp& u : toposort(sink, Scopes::enter))
    if (u.in(Group::alu) || u.is(Op::REDUCE) || u.is(Op::CAST)) most = std::max(most, validation_tolerance(u.dtype()));
  return most;
}

bool equal(const Scalar& a, const Scalar& b, double tolerance) {
  if (a == b) return true;
  if (!is_float(a.dtype()) || !a.is_finite() || !b.is_finite()) return false;
  const double expected = b.as_double();
  return std::abs(a.as_double() - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

}  // namespace

double validation_tolerance(DType dtype) {
  if (!is_float(dtype)) return 0;
  switch (dtype) {
    case DType::float64: return 1e-9;
    case DType::float32: return current_options().allow_tf32 ? 1e-2 : 1e-4;
    case DType::float16: return 1e-2;
    default: return 0.1;
  }
}

Validation::Validation(const Program& program, Device& device, std::span<void* const> handles, std::span<const int64_t> variables)
    : program_(program), device_(device), tolerance_(tolerance_of(program.sink)) {
  Device& cpu = Device::get("CPU");
  const auto reference = reference_of(program, cpu);
  for (const KernelParam& p : program.info.params)
    arguments_.push_back({&p, handles[size_t(p.slot)], size_t(p.size.evaluate(variables)) * size_t(itemsize(p.dtype))});
  device.wait();
  std::vector<void*> copies(std::max(program.info.buffer_count(), reference->info.buffer_count()));
  for (Argument& a : arguments_) {
    a.copy = copy_of(a.handle);
    copies[size_t(a.param->slot)] = a.copy->handle();
  }
  const std::vector<int64_t> values = values_for(reference->info, program.info, variables);
  reference->kernel->launch(copies, values, reference->info.launch_dims(values), true);
}

/// Of all that the slots with this memory have of it.
BufferPtr Validation::copy_of(void* handle) const {
  size_t bytes = 1;
  for (const Argument& a : arguments_) {
    if (a.handle == handle && a.copy) return a.copy;
    if (a.handle == handle) bytes = std::max(bytes, a.bytes);
  }
  const BufferPtr copy = Buffer::make(Device::get("CPU"), int64_t(bytes), DType::uint8);
  if (handle) device_.allocator().copy_out(copy->data(), handle, bytes);
  return copy;
}

void Validation::compare() const {
  device_.wait();
  for (const Argument& a : arguments_)
    if (a.param->written) compare(a);
}

void Validation::compare(const Argument& argument) const {
  std::vector<std::byte> got(argument.bytes);
  if (got.empty()) return;
  device_.allocator().copy_out(got.data(), argument.handle, got.size());
  const std::byte* wanted = argument.copy->data();
  const size_t width = size_t(itemsize(argument.param->dtype));
  for (size_t i = 0; i < got.size(); i += width) {
    if (std::equal(&got[i], &got[i] + width, wanted + i)) continue;
    const Scalar a = Scalar::from_bytes(&got[i], argument.param->dtype), b = Scalar::from_bytes(wanted + i, argument.param->dtype);
    if (!equal(a, b, tolerance_))
      throw DeviceError(fmt::format("VALIDATE_WITH_CPU: kernel {} on {} wrote {} to element {} of argument {}, the CPU {}",
                                    program_.info.name, device_.name().str(), a.to_string(), i / width, argument.param->slot,
                                    b.to_string()));
  }
}

}  // namespace tinygrad::engine
