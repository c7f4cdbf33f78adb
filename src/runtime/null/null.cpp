#include "runtime/null/null.h"

#include <atomic>
#include <cstring>

#include "compiler/code_paths.h"

namespace tinygrad::runtime {
namespace {

/// Addresses that nothing is at; copies out of them give zeros.
class NullAllocator final : public Allocator {
 public:
  using Allocator::Allocator;

  void* offset(void* handle, size_t bytes) const override { return static_cast<std::byte*>(handle) + bytes; }
  std::byte* host_pointer(void*) const override { return nullptr; }
  void copy_in(void*, const std::byte*, size_t) override {}
  void copy_out(std::byte* to, void*, size_t bytes) override {
    if (bytes) std::memset(to, 0, bytes);
  }
  void copy(void*, void*, size_t) override {}

 private:
  void* take(size_t bytes, const BufferSpec&) override { return reinterpret_cast<void*>(next_.fetch_add((bytes + 127) / 64 * 64)); }
  void give_back(void*, size_t, const BufferSpec&) noexcept override {}

  std::atomic<uintptr_t> next_{uintptr_t{1} << 40};
};

class NullKernel final : public Kernel {
 public:
  std::optional<double> launch(std::span<void* const>, std::span<const int64_t>, const LaunchDims&, bool wait) override {
    return wait ? std::optional(0.0) : std::nullopt;
  }
};

class NullDevice final : public Device {
 public:
  NullDevice(const DeviceChoice& choice, const Target& target, const CodePath& code)
      : Device(choice.canonical(), target, std::make_unique<NullAllocator>(choice.canonical()), code) {}

  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { return std::make_unique<NullKernel>(); }
};

}  // namespace

std::string null_unavailable() { return {}; }

std::unique_ptr<Device> open_null(const DeviceChoice& choice) {
  const CodePath& code = find_code_path(compiler::text_paths(), choice.renderer);
  return std::make_unique<NullDevice>(choice, code.target(choice.arch), code);
}

}  // namespace tinygrad::runtime
