#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>

#include "device/buffer.h"
#include "device/device.h"

namespace tinygrad::test {

/// Host memory that counts what the system gave.
class CountingAllocator final : public LruAllocator {
 public:
  CountingAllocator(std::string device, bool host_visible) : LruAllocator(std::move(device)), host_visible_(host_visible) {}
  ~CountingAllocator() override { empty_cache(); }

  int allocations = 0, frees = 0;

  void* offset(void* handle, size_t bytes) const override { return static_cast<std::byte*>(handle) + bytes; }
  std::byte* host_pointer(void* handle) const override { return host_visible_ ? static_cast<std::byte*>(handle) : nullptr; }
  void copy_in(void* handle, const std::byte* from, size_t bytes) override { std::memcpy(handle, from, bytes); }
  void copy_out(std::byte* to, void* handle, size_t bytes) override { std::memcpy(to, handle, bytes); }
  void copy(void* to, void* from, size_t bytes) override { std::memmove(to, from, bytes); }

 protected:
  void* system_allocate(size_t bytes, const BufferSpec&) override {
    ++allocations;
    return std::malloc(bytes + 1);
  }
  void system_free(void* handle, size_t, const BufferSpec&) noexcept override {
    ++frees;
    std::free(handle);
  }

 private:
  const bool host_visible_;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(std::string_view name, bool host_visible = true)
      : Device(name, interp_target(), std::make_unique<CountingAllocator>(std::string(name), host_visible)) {}

  CountingAllocator& counting() { return static_cast<CountingAllocator&>(allocator()); }
  std::string render(const UOp&, const KernelInfo&) override { return {}; }
  std::string compile(const std::string&) override { return {}; }
  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { return nullptr; }
};

}  // namespace tinygrad::test
