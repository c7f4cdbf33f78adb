#pragma once
#include <cstdlib>
#include <memory>
#include <utility>

#include "device/buffer.h"
#include "device/device.h"
#include "device/host_memory.h"

namespace tinygrad::test {

/// Host memory that counts what the system gave.
class CountingAllocator final : public HostMemory<LruAllocator> {
 public:
  CountingAllocator(std::string device, bool host_visible) : HostMemory(std::move(device)), host_visible_(host_visible) {}
  ~CountingAllocator() override { empty_cache(); }

  int allocations = 0, frees = 0;
  int fail_in = -1;  ///< allocations from now until one fails, with its second try

  bool uses_host_memory() const override { return host_visible_; }
  std::byte* host_pointer(void* handle) const override { return host_visible_ ? HostMemory::host_pointer(handle) : nullptr; }

 protected:
  void* system_allocate(size_t bytes, const BufferSpec&) override {
    if (std::exchange(retry_fails_, false)) return nullptr;
    if (fail_in >= 0 && fail_in-- == 0) {
      retry_fails_ = true;
      return nullptr;
    }
    ++allocations;
    return std::malloc(bytes + 1);
  }
  void system_free(void* handle, size_t, const BufferSpec&) noexcept override {
    ++frees;
    std::free(handle);
  }

 private:
  const bool host_visible_;
  bool retry_fails_ = false;
};

/// Of devices that run the program itself, or nothing.
inline constexpr CodePath no_code{.renderer = "FAKE",
                                  .render = [](const Target&, const UOp&, const KernelInfo&) { return std::string(); },
                                  .compile = [](const Target&, const std::string&) { return std::string(); }};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(std::string_view name, bool host_visible = true)
      : Device(name, interp_target(), std::make_unique<CountingAllocator>(std::string(name), host_visible), no_code) {}

  CountingAllocator& counting() { return static_cast<CountingAllocator&>(allocator()); }
  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { return nullptr; }
};

}  // namespace tinygrad::test
