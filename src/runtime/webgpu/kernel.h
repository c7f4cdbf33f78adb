#pragma once
#include <map>
#include <memory>
#include <mutex>

#include <tinygrad/device.h>

#include "runtime/webgpu/allocator.h"

namespace tinygrad::runtime::webgpu {

class WebGpuKernel final : public Kernel {
 public:
  /// Throws CompileError.
  WebGpuKernel(Gpu& gpu, const WebGpuAllocator& memory, const KernelInfo& info, const std::string& wgsl);

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override;

 private:
  /// For each argument, the element of what is bound at which it begins: 0 but for views that begin where nothing can be bound.
  using Firsts = std::vector<int32_t>;

  Pipeline pipeline(const Firsts& firsts);
  BindGroupEntry bind(const KernelParam& param, void* handle, std::span<const int64_t> variables, int32_t& first) const;

  Gpu& gpu_;
  const WebGpuAllocator& memory_;
  const KernelInfo info_;
  const std::string entry_;
  OwnedModule module_;
  OwnedGroupLayout group_layout_;
  OwnedLayout layout_;
  std::mutex mutex_;
  std::map<Firsts, OwnedPipeline> pipelines_;
};

}  // namespace tinygrad::runtime::webgpu
