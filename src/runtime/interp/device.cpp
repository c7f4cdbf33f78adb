#include "runtime/interp/device.h"

#include <cstdlib>

#include "device/host_memory.h"
#include "runtime/interp/kernel.h"
#include "uop/graph.h"

namespace tinygrad::runtime {

namespace {

class InterpAllocator final : public HostMemory<Allocator> {
 public:
  using HostMemory::HostMemory;

 protected:
  // Freed memory is not kept: a sanitizer sees a kernel that uses it.
  void* take(size_t bytes, const BufferSpec& spec) override {
    return spec.external_ptr ? spec.external_ptr : std::malloc(bytes == 0 ? 1 : bytes);
  }
  void give_back(void* handle, size_t, const BufferSpec& spec) noexcept override {
    if (!spec.external_ptr) std::free(handle);
  }
};

class InterpDevice final : public Device {
 public:
  explicit InterpDevice(const std::string& name) : Device(name, interp_target(), std::make_unique<InterpAllocator>(name), interp_path) {}

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string&) override {
    return interp::make_kernel(info, linear);
  }
};

}  // namespace

constinit const CodePath interp_path{.renderer = "INTERP",
                                     .target = [](std::string_view) { return interp_target(); },
                                     .render = [](const Target&, const UOp& linear, const KernelInfo&) { return print_graph(linear); },
                                     .compile = [](const Target&, const std::string&) { return std::string(); }};

std::string interp_unavailable() { return {}; }

std::unique_ptr<Device> open_interp(const DeviceChoice& choice) { return std::make_unique<InterpDevice>(choice.canonical()); }

}  // namespace tinygrad::runtime
