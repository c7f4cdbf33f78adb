#include "runtime/metal/kernel.h"

#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "runtime/check_groups.h"

namespace tinygrad::runtime::metal {
namespace {

/// MTLSize
struct Size {
  unsigned long x, y, z;
};

Size size_of(const int64_t (&n)[3]) {
  return {static_cast<unsigned long>(n[0]), static_cast<unsigned long>(n[1]), static_cast<unsigned long>(n[2])};
}

/// Compiles a kernel's source as it is written: quotients and square roots are exact, NaN and infinity are values.
Object library_of(Id device, const std::string& source) {
  const Object options = Object::owned(send(objective_c().get_class("MTLCompileOptions"), "new"));
  send<void>(options.get(), "setFastMathEnabled:", static_cast<signed char>(0));
  Id error = nullptr;
  Object library = Object::owned(send(device, "newLibraryWithSource:options:error:", ns_string(source), options.get(), &error));
  if (!library) throw CompileError(fmt::format("METAL: compiling failed: {}\n{}", description_of(error), source));
  return library;
}

}  // namespace

MetalKernel::MetalKernel(std::shared_ptr<Gpu> gpu, const Target& target, const KernelInfo& info, const std::string& source)
    : gpu_(std::move(gpu)), target_(target), info_(info) {
  const Pool pool;
  const Object library = library_of(gpu_->device(), source);
  const Object function = Object::owned(send(library.get(), "newFunctionWithName:", ns_string(kernel_symbol(info.name))));
  if (!function) throw DeviceError(fmt::format("METAL: there is no kernel {} in its source", info.name));
  Id error = nullptr;
  pipeline_ = Object::owned(send(gpu_->device(), "newComputePipelineStateWithFunction:error:", function.get(), &error));
  if (!pipeline_) throw CompileError(fmt::format("METAL: making a pipeline of kernel {} failed: {}", info.name, description_of(error)));
  most_items_ = send<unsigned long>(pipeline_.get(), "maxTotalThreadsPerThreadgroup");
}

void MetalKernel::check(const LaunchDims& dims) const {
  const int64_t items = dims.local[0] * dims.local[1] * dims.local[2];
  if (static_cast<unsigned long>(items) > most_items_)
    throw DeviceError(
        fmt::format("METAL: kernel {} needs groups of {} work-items, the device takes {} of it", info_.name, items, most_items_));
  check_groups("METAL", info_, dims, target_.max_global);
}

std::optional<double> MetalKernel::launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                                          bool wait) {
  check(dims);
  const bool has_work = std::ranges::find(dims.global, 0) == std::end(dims.global);
  if (!has_work) return wait ? std::optional(0.0) : std::nullopt;
  const Pool pool;
  const Id commands = gpu_->new_commands(), encoder = send(commands, "computeCommandEncoder");
  send<void>(encoder, "setComputePipelineState:", pipeline_.get());
  unsigned long place = 0;
  for (const KernelParam& p : info_.params) {
    const auto [buffer, offset] = gpu_->buffer_of(buffers[static_cast<size_t>(p.slot)]);
    send<void>(encoder, "setBuffer:offset:atIndex:", buffer, static_cast<unsigned long>(offset), place++);
  }
  if (!variables.empty())
    send<void>(encoder, "setBytes:length:atIndex:", static_cast<const void*>(variables.data()),
               static_cast<unsigned long>(variables.size_bytes()), place);
  send<void>(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", size_of(dims.global), size_of(dims.local));
  send<void>(encoder, "endEncoding");
  gpu_->commit(commands, info_.name);
  if (!wait) return std::nullopt;
  Gpu::wait_for(commands);
  return send<double>(commands, "GPUEndTime") - send<double>(commands, "GPUStartTime");
}

}  // namespace tinygrad::runtime::metal
