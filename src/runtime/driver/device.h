#pragma once
#include <memory>

#include <tinygrad/device.h>

#include "runtime/driver/queue.h"

namespace tinygrad::runtime::driver {

/// A device of a driver: memory, launches, graphs and peers.
class GpuDevice final : public Device {
 public:
  GpuDevice(const DeviceChoice& choice, const Target& target, const CodePath& code, std::shared_ptr<const Gpu> gpu);

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string& binary) override;
  bool is_async() const override { return true; }
  void synchronize() override { gpu_->wait(); }
  bool has_graphs() const override { return true; }
  std::unique_ptr<tinygrad::Graph> make_graph(std::span<const GraphLaunch> launches) override;
  Queue* queue() override { return &queue_; }
  bool records_profile() const override { return true; }

 private:
  const std::shared_ptr<const Gpu> gpu_;
  StreamQueue queue_;
};

}  // namespace tinygrad::runtime::driver
