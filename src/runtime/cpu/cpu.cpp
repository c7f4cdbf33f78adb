#include "runtime/cpu/cpu.h"

#include <chrono>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/thread_pool.h"
#include "compiler/clang/clang.h"
#include "compiler/llvm/llvm.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "runtime/cpu/elf_loader.h"
#include "runtime/cpu/host_allocator.h"
#include "runtime/cpu/scratch.h"
#include "runtime/cpu/symbols.h"

namespace tinygrad::runtime {
namespace {

class CpuKernel final : public Kernel {
 public:
  CpuKernel(const KernelInfo& info, const std::string& binary)
      : object_(std::as_bytes(std::span(binary)), cpu_runtime_symbol),
        run_(reinterpret_cast<Function*>(object_.function(kernel_symbol(info.name)))),
        scratch_bytes_(static_cast<size_t>(info.scratch_bytes)) {
    for (const KernelParam& p : info.params) {
      // Smaller promises hold for any buffer of elements.
      if (p.align > itemsize(p.dtype)) aligned_.push_back({static_cast<size_t>(p.slot), p.align});
    }
  }

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    for (const auto& [slot, align] : aligned_) {
      if (reinterpret_cast<uintptr_t>(buffers[slot]) % align != 0) {
        throw DeviceError(fmt::format("CPU: buffer {} of a kernel must be aligned to {} bytes; copy it first", slot, align));
      }
    }
    const auto start = wait ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    const auto run = [&](size_t begin, size_t end) {
      void* scratch = scratch_bytes_ ? thread_scratch(scratch_bytes_) : nullptr;
      run_(buffers.data(), variables.data(), static_cast<int64_t>(begin), static_cast<int64_t>(end), scratch);
    };
    if (dims.chunks == 1)
      run(0, 1);
    else if (dims.chunks > 1)
      compute_pool().run(static_cast<size_t>(dims.chunks), run);
    if (!wait) return std::nullopt;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  using Function = void(void* const* buffers, const int64_t* variables, int64_t chunk_begin, int64_t chunk_end, void* scratch);
  struct Alignment {
    size_t slot;
    uint16_t bytes;
  };

  LoadedObject object_;
  Function* run_;
  const size_t scratch_bytes_;
  std::vector<Alignment> aligned_;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(const DeviceChoice& choice, const Target& target)
      : Device(choice.canonical(), target, std::make_unique<HostAllocator>(choice.canonical())) {}

  std::string render(const UOp& linear, const KernelInfo& info) override {
    return is_c() ? renderer::render_c(target(), linear, info) : renderer::render_llvmir(target(), linear, info);
  }
  std::string compile(const std::string& source) override {
    return is_c() ? compiler::compile_c(source, target()) : compiler::compile_llvmir(source, target().arch.str());
  }
  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& binary) override {
    return std::make_unique<CpuKernel>(info, binary);
  }
  std::string disassemble(const std::string& binary) override { return compiler::disassemble_llvm(binary, target().arch.str()); }

 private:
  bool is_c() const { return target().renderer == Symbol("CLANG"); }
};

/// A generic level that the host has, or the host's own name: code for it runs here.
Target runnable_target(const std::string& arch) {
  Target host = host_cpu_target();
  if (arch.empty() || host.arch == Symbol(arch)) return host;
  Target wanted = cpu_target(arch);
  if (!arch.starts_with("x86-64-v") || wanted.vector_bits > host.vector_bits) {
    throw DeviceError(fmt::format("CPU: this processor is {}; it cannot run code for {}", host.arch.str(), arch));
  }
  return wanted;
}

}  // namespace

std::string cpu_unavailable() {
  try {
    host_cpu_target();
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

std::unique_ptr<Device> open_cpu(const DeviceChoice& choice) {
  if (choice.index != 0)
    throw DeviceError(fmt::format("{}: there is one CPU device; more threads are NUM_CPU_THREADS", choice.canonical()));
  Target target = runnable_target(choice.arch);
  if (!choice.renderer.empty()) target.renderer = Symbol(choice.renderer);
  return std::make_unique<CpuDevice>(choice, target);
}

}  // namespace tinygrad::runtime
