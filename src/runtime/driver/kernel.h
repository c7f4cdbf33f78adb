#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tinygrad/device.h>

#include "runtime/driver/gpu.h"

namespace tinygrad::runtime::driver {

/// The arguments of a launch as the driver takes them: an address for each, of buffers in the order of KernelInfo::params, then variables.
class Arguments {
 public:
  void set(const KernelInfo& info, std::span<void* const> buffers, std::span<const int64_t> variables);
  void** pointers() { return pointers_.data(); }

 private:
  std::vector<uint64_t> values_;
  std::vector<void*> pointers_;
};

/// A function of a module: a cubin, or PTX that the driver assembles.
class GpuKernel final : public Kernel {
 public:
  GpuKernel(std::shared_ptr<const Gpu> gpu, const Target& target, const KernelInfo& info, const std::string& binary);
  ~GpuKernel() override;

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override;

  /// What a graph's node is made of; the arguments must outlive its use. False for a launch without any work-group.
  bool describe(const GraphLaunch& launch, Arguments& arguments, KernelNode& node) const;

 private:
  /// Throws DeviceError for what the device cannot launch.
  void check(std::span<void* const> buffers, const LaunchDims& dims) const;

  const std::shared_ptr<const Gpu> gpu_;
  const KernelInfo info_;
  const int64_t given_bytes_;  ///< by each launch, of a group's memory
  int64_t most_items_ = 0, most_groups_[3] = {0, 0, 0};
  Module module_ = nullptr;
  Function function_ = nullptr;
};

/// The list as a graph of the driver; null if a launch of it is none of GpuKernels, or of no work-groups.
std::unique_ptr<tinygrad::Graph> make_graph(const std::shared_ptr<const Gpu>& gpu, std::span<const GraphLaunch> launches);

}  // namespace tinygrad::runtime::driver
