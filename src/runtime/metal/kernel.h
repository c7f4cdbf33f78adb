#pragma once
#include <memory>
#include <string>

#include <tinygrad/device.h>

#include "runtime/metal/gpu.h"

namespace tinygrad::runtime::metal {

/// A pipeline of the kernel in a source text, which the system compiles and caches. It takes the memory of KernelInfo::params in their
/// order, then an array of the variables.
class MetalKernel final : public Kernel {
 public:
  /// Throws CompileError for a source that is refused.
  MetalKernel(std::shared_ptr<Gpu> gpu, const Target& target, const KernelInfo& info, const std::string& source);

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override;

 private:
  void check(const LaunchDims& dims) const;

  const std::shared_ptr<Gpu> gpu_;
  const Target& target_;
  const KernelInfo info_;
  Object pipeline_;
  unsigned long most_items_ = 0;
};

}  // namespace tinygrad::runtime::metal
