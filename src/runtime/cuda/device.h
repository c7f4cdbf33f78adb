#pragma once
#include <memory>
#include <mutex>
#include <set>

#include <tinygrad/device.h>

#include "runtime/cuda/gpu.h"

namespace tinygrad::runtime::cuda {

/// A device of a driver: memory, launches, graphs and peers.
class DriverDevice final : public Device {
 public:
  DriverDevice(const DeviceChoice& choice, const Target& target, const CodePath& code, std::shared_ptr<const Gpu> gpu);

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string& binary) override;
  bool is_async() const override { return true; }
  void synchronize() override { gpu_->wait(); }
  bool has_graphs() const override { return true; }
  std::unique_ptr<tinygrad::Graph> make_graph(std::span<const GraphLaunch> launches) override;
  bool copy_from_peer(void* to, Device& source, void* from, size_t bytes) override;
  bool records_profile() const override { return true; }

 private:
  /// Whether the device can reach memory of the other one.
  bool reaches(const DriverDevice& other);

  const std::shared_ptr<const Gpu> gpu_;
  std::mutex mutex_;
  std::set<const DriverDevice*> reached_;
};

}  // namespace tinygrad::runtime::cuda
