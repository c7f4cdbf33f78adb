#include "runtime/cpu/cpu.h"

#include <chrono>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/options.h"
#include "base/thread_pool.h"
#include "compiler/code_paths.h"
#include "compiler/image/image.h"
#include "device/host_device.h"
#include "runtime/cpu/cpu_code.h"
#include "runtime/cpu/host_allocator.h"
#include "runtime/emulated/device.h"
#include "runtime/promised_alignment.h"
#include "target/host_tiles.h"

namespace tinygrad::runtime {
namespace {

class CpuKernel final : public HostKernel {
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
  void run_piece(std::span<void* const> buffers, std::span<const int64_t> variables, size_t begin, size_t end) override {
    promised_.check(buffers);
    code_.run_piece(buffers, variables, begin, end);
  }

 private:
  CpuCode code_;
  const PromisedAlignment promised_;
};

/// One whose launches a queue runs.
class QueuedKernel final : public HostKernel {
 public:
  QueuedKernel(std::shared_ptr<HostQueue> queue, const KernelInfo& info, const std::string& binary)
      : queue_(std::move(queue)), kernel_(info, binary) {}
  ~QueuedKernel() override { queue_->drain(); }
  QueuedKernel(const QueuedKernel&) = delete;
  QueuedKernel& operator=(const QueuedKernel&) = delete;

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    if (wait) {
      queue_->drain();
      return kernel_.launch(buffers, variables, dims, true);
    }
    const Command command = LaunchCommand{&kernel_, buffers, variables, dims};
    queue_->submit(std::span(&command, 1));
    return std::nullopt;
  }
  void run_piece(std::span<void* const> buffers, std::span<const int64_t> variables, size_t begin, size_t end) override {
    kernel_.run_piece(buffers, variables, begin, end);
  }

 private:
  const std::shared_ptr<HostQueue> queue_;
  CpuKernel kernel_;
};

/// Memory that commands of a queue may still use when nobody else does.
class QueuedAllocator final : public HostAllocator {
 public:
  QueuedAllocator(std::string device, std::shared_ptr<HostQueue> queue) : HostAllocator(std::move(device)), queue_(std::move(queue)) {}
  ~QueuedAllocator() override { empty_cache(); }

 protected:
  void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept override {
    queue_->drain();
    HostAllocator::system_free(handle, bytes, spec);
  }

 private:
  const std::shared_ptr<HostQueue> queue_;
};

class HostCpu final : public HostDevice {
 public:
  HostCpu(const DeviceChoice& choice, const Target& target, const CodePath& code)
      : HostDevice(choice.canonical(), target, std::make_unique<HostAllocator>(choice.canonical()), code) {}

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& binary) override {
    return std::make_unique<CpuKernel>(info, binary);
  }
  bool runs_in_worker() const override { return true; }
};

constexpr int most_queues = 255;

/// The host again, beside the caller.
class QueuedCpu final : public HostDevice {
 public:
  QueuedCpu(const DeviceChoice& choice, const Target& target, const CodePath& code)
      : QueuedCpu(choice, target, code, std::make_shared<HostQueue>(choice.canonical())) {}

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& binary) override {
    return std::make_unique<QueuedKernel>(queue_, info, binary);
  }
  bool runs_in_worker() const override { return true; }
  bool is_async() const override { return true; }
  void synchronize() override { queue_->synchronize(); }
  void drain() override {
    if (!queue_->drain()) wait();
  }
  Queue* queue() override { return queue_.get(); }

 private:
  QueuedCpu(const DeviceChoice& choice, const Target& target, const CodePath& code, std::shared_ptr<HostQueue> queue)
      : HostDevice(choice.canonical(), target, std::make_unique<QueuedAllocator>(choice.canonical(), queue), code),
        queue_(std::move(queue)) {}

  const std::shared_ptr<HostQueue> queue_;
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
  keep_usable_tiles(wanted);
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
  if (choice.index > most_queues)
    throw DeviceError(fmt::format("{}: CPU:1 to CPU:{} are the processor behind queues; more threads of one are NUM_CPU_THREADS",
                                  choice.canonical(), most_queues));
  const CodePath& code = choice.renderer == "CLANG" ? compiler::clang_path : compiler::llvm_path;
  Target target = runnable_target(choice.arch);
  set_renderer(target, code.renderer);
  target.shares_memory = is_of_host(target);
  if (is_of_host(target) && (choice.index > 0 || current_options().cpu_queue)) return std::make_unique<QueuedCpu>(choice, target, code);
  if (is_of_host(target)) return std::make_unique<HostCpu>(choice, target, code);
  if (choice.index != 0) throw DeviceError(fmt::format("{}: there is one emulated processor of a kind", choice.canonical()));
  return std::make_unique<EmulatedDevice>(choice, target, code);
}

}  // namespace tinygrad::runtime
