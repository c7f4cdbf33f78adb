#include "runtime/webgpu/kernel.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "renderer/wgsl/wgsl.h"
#include "runtime/check_groups.h"

namespace tinygrad::runtime::webgpu {

WebGpuKernel::WebGpuKernel(Gpu& gpu, const WebGpuAllocator& memory, const KernelInfo& info, const std::string& wgsl)
    : gpu_(gpu), memory_(memory), info_(info), entry_(kernel_symbol(info.name)), module_(gpu.make_module(wgsl)) {
  std::vector<BindGroupLayoutEntry> entries(info.params.size() + (info.variables.empty() ? 0 : 1));
  for (size_t i = 0; i < info.params.size(); ++i) {
    entries[i].binding = static_cast<uint32_t>(info.params[i].slot);
    entries[i].buffer.type = BindingType::storage;
  }
  if (!info.variables.empty()) {
    entries.back().binding = static_cast<uint32_t>(info.buffer_count());
    entries.back().buffer.type = BindingType::uniform;
  }
  group_layout_ = gpu.make_group_layout(entries);
  layout_ = gpu.make_layout(group_layout_.get());
  pipeline(Firsts(info.params.size(), 0));
}

Pipeline WebGpuKernel::pipeline(const Firsts& firsts) {
  const std::lock_guard lock(mutex_);
  OwnedPipeline& made = pipelines_[firsts];
  if (made) return made.get();
  std::vector<std::string> names(firsts.size());
  std::vector<Constant> constants;
  for (size_t i = 0; i < firsts.size(); ++i) {
    if (firsts[i] == 0) continue;
    names[i] = renderer::wgsl_first(info_.params[i].slot);
    constants.push_back({.key = std::string_view(names[i]), .value = double(firsts[i])});
  }
  PipelineDescriptor d;
  d.layout = layout_.get();
  d.module = module_.get();
  d.entry = std::string_view(entry_);
  d.constant_count = constants.size();
  d.constants = constants.data();
  made = gpu_.make_pipeline(d);
  return made.get();
}

BindGroupEntry WebGpuKernel::bind(const KernelParam& param, void* handle, std::span<const int64_t> variables, int32_t& first) const {
  const Place p = memory_.place(handle);
  const uint64_t align = gpu_.limits().storage_alignment, item = itemsize(param.dtype), rest = p.offset % align;
  first = static_cast<int32_t>(rest / item);
  const uint64_t used = rest + static_cast<uint64_t>(param.size.evaluate(variables)) * item;
  const uint64_t size = std::clamp<uint64_t>((used + 3) / 4 * 4, 4, rest + p.left);
  if (size > gpu_.limits().storage_binding_size) {
    throw DeviceError(fmt::format("{}: kernel {} uses {} bytes of a buffer, the adapter allows {}; work on less at a time", gpu_.name(),
                                  info_.name, size, gpu_.limits().storage_binding_size));
  }
  return {.binding = static_cast<uint32_t>(param.slot), .buffer = p.buffer, .offset = p.offset - rest, .size = size};
}

std::optional<double> WebGpuKernel::launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                                           bool wait) {
  const int64_t most = gpu_.limits().groups_per_dimension;
  check_groups(gpu_.name(), info_, dims, std::array{most, most, most});
  Dispatch d;
  d.name = info_.name;
  for (int i = 0; i < 3; ++i) d.groups[i] = static_cast<uint32_t>(dims.global[i]);
  if (d.groups[0] == 0 || d.groups[1] == 0 || d.groups[2] == 0) return wait ? std::optional(0.0) : std::nullopt;
  Firsts firsts(info_.params.size());
  std::vector<BindGroupEntry> entries;
  for (size_t i = 0; i < info_.params.size(); ++i)
    entries.push_back(bind(info_.params[i], buffers[static_cast<size_t>(info_.params[i].slot)], variables, firsts[i]));
  d.pipeline = pipeline(firsts);
  if (!variables.empty()) {
    const std::vector<int32_t> values(variables.begin(), variables.end());
    const Place at = gpu_.uniforms(values.data(), values.size() * sizeof(int32_t));
    entries.push_back({.binding = static_cast<uint32_t>(info_.buffer_count()), .buffer = at.buffer, .offset = at.offset, .size = at.left});
  }
  const OwnedGroup group = gpu_.make_group(group_layout_.get(), entries);
  d.group = group.get();
  if (wait) return gpu_.launch_timed(d);
  gpu_.launch(d);
  return std::nullopt;
}

}  // namespace tinygrad::runtime::webgpu
