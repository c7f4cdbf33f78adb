#include "runtime/cpu/cpu.h"

#include <chrono>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/thread_pool.h"
#include "compiler/code_paths.h"
#include "compiler/image/image.h"
#include "runtime/cpu/cpu_code.h"
#include "runtime/cpu/host_allocator.h"
#include "runtime/emulated/device.h"
#include "runtime/promised_alignment.h"

namespace tinygrad::runtime {
namespace {

class CpuKernel final : public Kernel {
 public:
  CpuKernel(const KernelInfo& info, const std::string& binary)
      : code_(std::as_bytes(std::span(binary)), kernel_symbol(info.name), static_cast<size_t>(info.scratch_bytes)), promised_(info) {}

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    promised_.check(buffers);
    const auto start = wait ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    code_.run(buffers, variables, dims.chunks, []() -> ComputePool& { return compute_pool(); });
    if (!wait) return std::nullopt;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  CpuCode code_;
  const PromisedAlignment promised_;
};

class HostCpu final : public Device {
 public:
  HostCpu(const DeviceChoice& choice, const Target& target, const CodePath& code)
      : Device(choice.canonical(), target, std::make_unique<HostAllocator>(choice.canonical()), code) {}

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& binary) override {
    return std::make_unique<CpuKernel>(info, binary);
  }
  bool runs_in_worker() const override { return true; }
};

bool is_of_host(const Target& target) {
  const auto triple = [](const Target& t) { return std::string_view(processor_names(t.arch.str()).triple); };
  return triple(target) == triple(host_cpu_target());
}

/// The host, a processor of which it has all instructions, or one of another kind, which can be emulated.
Target runnable_target(const std::string& arch) {
  Target host = host_cpu_target();
  if (arch.empty() || host.arch == Symbol(arch)) return host;
  Target wanted = cpu_target(arch);
  if (!is_of_host(wanted)) return wanted;
  if (!host_runs(arch)) throw DeviceError(fmt::format("CPU: this processor is {}; it cannot run code for {}", host.arch.str(), arch));
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

std::string emulated_cpu_missing(std::string_view arch) {
  try {
    const Target target = runnable_target(std::string(arch));
    if (is_of_host(target)) return {};
    const std::string missing = emulator_missing(target);
    return missing.empty() ? compiler::image_missing() : missing;
  } catch (const Error& e) {
    return e.what();
  }
}

std::unique_ptr<Device> open_cpu(const DeviceChoice& choice) {
  if (choice.index != 0)
    throw DeviceError(fmt::format("{}: there is one CPU device; more threads are NUM_CPU_THREADS", choice.canonical()));
  const CodePath& code = choice.renderer == "CLANG" ? compiler::clang_path : compiler::llvm_path;
  Target target = runnable_target(choice.arch);
  set_renderer(target, code.renderer);
  if (is_of_host(target)) return std::make_unique<HostCpu>(choice, target, code);
  return std::make_unique<EmulatedDevice>(choice, target, code);
}

}  // namespace tinygrad::runtime
