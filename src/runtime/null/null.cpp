#include "runtime/null/null.h"

#include <atomic>
#include <cstring>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "renderer/ptx/ptx.h"
#include "renderer/wgsl/wgsl.h"
#include "target/webgpu.h"

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

/// A language that kernels may be rendered in, and for which machines.
struct Language {
  std::string_view renderer;
  Target (*target)(std::string_view arch);
  std::string (*render)(const Target& target, const UOp& linear, const KernelInfo& info);
};

/// The host's without a name.
Target cpu_or_host(std::string_view arch) { return arch.empty() ? host_cpu_target() : cpu_target(arch); }
Target amd_or_oldest(std::string_view arch) { return amd_target(arch.empty() ? "gfx90a" : arch); }
Target metal(std::string_view) { return metal_target(); }
Target cuda_or_oldest(std::string_view arch) { return cuda_target(arch.empty() ? "sm_80" : arch); }
Target opencl(std::string_view) { return opencl_target({.has_double = true}); }
Target webgpu(std::string_view arch) { return webgpu_target({.has_float16 = arch == "f16"}); }

// The first is what a plain NULL means.
constexpr Language kLanguages[] = {
    {"LLVM", cpu_or_host, renderer::render_llvmir}, {"CUDA", cuda_or_oldest, renderer::render_cuda},
    {"PTX", cuda_or_oldest, renderer::render_ptx},  {"HIP", amd_or_oldest, renderer::render_hip},
    {"METAL", metal, renderer::render_metal},       {"OPENCL", opencl, renderer::render_opencl},
    {"WGSL", webgpu, renderer::render_wgsl},
};

const Language& language_of(const DeviceChoice& choice) {
  for (const Language& l : kLanguages)
    if (l.renderer == choice.renderer) return l;
  return kLanguages[0];
}

class NullDevice final : public Device {
 public:
  NullDevice(const DeviceChoice& choice, const Language& language, const Target& target)
      : Device(choice.canonical(), target, std::make_unique<NullAllocator>(choice.canonical())), language_(language) {}

  std::string render(const UOp& linear, const KernelInfo& info) override { return language_.render(target(), linear, info); }
  std::string compile(const std::string&) override { return {}; }
  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { return std::make_unique<NullKernel>(); }

 private:
  const Language& language_;
};

}  // namespace

std::string null_unavailable() { return {}; }

std::unique_ptr<Device> open_null(const DeviceChoice& choice) {
  const Language& language = language_of(choice);
  Target target = language.target(choice.arch);
  set_renderer(target, language.renderer);
  return std::make_unique<NullDevice>(choice, language, target);
}

}  // namespace tinygrad::runtime
