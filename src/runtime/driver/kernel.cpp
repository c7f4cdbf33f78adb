#include "runtime/driver/kernel.h"

#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "kernel/kernel_info.h"
#include "runtime/check_groups.h"

namespace tinygrad::runtime::driver {

void Arguments::set(const KernelInfo& info, std::span<void* const> buffers, std::span<const int64_t> variables) {
  values_.clear();
  for (const KernelParam& p : info.params) values_.push_back(reinterpret_cast<uint64_t>(buffers[size_t(p.slot)]));
  for (const int64_t v : variables) values_.push_back(static_cast<uint64_t>(v));
  pointers_.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) pointers_[i] = &values_[i];
}

GpuKernel::GpuKernel(std::shared_ptr<const Gpu> gpu, const Target& target, const KernelInfo& info, const std::string& binary)
    : gpu_(std::move(gpu)), info_(info), given_bytes_(given_group_bytes(target, info)), most_items_(target.max_group_items) {
  std::copy(std::begin(target.max_global), std::end(target.max_global), most_groups_);
  const Driver& api = gpu_->api();
  gpu_->enter();
  api.check(api.module_load(&module_, binary.c_str()), fmt::format("loading kernel {}", info.name));
  const Result found = api.module_function(&function_, module_, kernel_symbol(info.name).c_str());
  if (found != kSuccess) {
    api.unload(module_);
    api.check(found, fmt::format("looking for kernel {}", info.name));
  }
  if (given_bytes_ != 0) try {
      api.give_group_bytes(gpu_->number(), function_, given_bytes_, info.name);
    } catch (...) {
      api.unload(module_);
      throw;
    }
}

GpuKernel::~GpuKernel() {
  // Whatever it runs ends before the module goes.
  gpu_->api().enter(gpu_->context());
  gpu_->api().unload(module_);
}

void GpuKernel::check(std::span<void* const> buffers, const LaunchDims& dims) const {
  for (const KernelParam& p : info_.params) {
    if (p.align > itemsize(p.dtype) && reinterpret_cast<uintptr_t>(buffers[size_t(p.slot)]) % p.align != 0)
      throw DeviceError(fmt::format("{}: buffer {} of kernel {} must be aligned to {} bytes; copy it first", gpu_->api().name(), p.slot,
                                    info_.name, p.align));
  }
  const int64_t items = dims.local[0] * dims.local[1] * dims.local[2];
  if (items > most_items_)
    throw DeviceError(
        fmt::format("{}: kernel {} needs groups of {} work-items, the device has {}", gpu_->api().name(), info_.name, items, most_items_));
  check_groups(gpu_->api().name(), info_, dims, most_groups_);
}

bool GpuKernel::describe(const GraphLaunch& launch, Arguments& arguments, KernelNode& node) const {
  check(launch.buffers, launch.dims);
  arguments.set(info_, launch.buffers, launch.variables);
  node = {.function = function_,
          .grid = {},
          .group = {},
          .group_bytes = static_cast<unsigned>(given_bytes_),
          .parameters = arguments.pointers(),
          .context = gpu_->context()};
  for (int i = 0; i < 3; ++i) {
    node.grid[i] = static_cast<unsigned>(launch.dims.global[i]);
    node.group[i] = static_cast<unsigned>(launch.dims.local[i]);
  }
  return std::ranges::all_of(node.grid, [](unsigned n) { return n > 0; });
}

std::optional<double> GpuKernel::launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                                        bool wait) {
  Arguments arguments;
  KernelNode node;
  const bool has_work =
      describe({.kernel = this, .info = &info_, .buffers = buffers, .variables = variables, .dims = dims}, arguments, node);
  const Driver& api = gpu_->api();
  gpu_->enter();
  const auto start = [&] {
    if (!has_work) return;
    gpu_->timed(info_.name, "kernel", [&] {
      api.check(api.launch(function_, node.grid[0], node.grid[1], node.grid[2], node.group[0], node.group[1], node.group[2],
                           node.group_bytes, gpu_->stream(), node.parameters, nullptr),
                fmt::format("launching kernel {}", info_.name));
    });
  };
  return seconds_of(*gpu_, wait, start);
}

}  // namespace tinygrad::runtime::driver
