#include "runtime/dsp/dsp.h"

#include <chrono>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/subprocess.h"
#include "compiler/hexagon/hexagon.h"
#include "renderer/cstyle/cstyle.h"
#include "runtime/dsp/runner.h"

namespace tinygrad::runtime {
namespace {

constexpr std::string_view kEmulated = "v66";  // what the emulator has of floats in vectors, kernels do not agree on

std::string find_emulator() {
  for (const std::string_view name : {"qemu-hexagon-static", "qemu-hexagon"})
    if (std::string found = find_program(name); !found.empty()) return found;
  return {};
}

class DspKernel final : public Kernel {
 public:
  DspKernel(SharedHeap& heap, Runner& runner, const KernelInfo& info, const std::string& binary)
      : heap_(heap), runner_(runner), image_(binary), scratch_bytes_(static_cast<size_t>(info.scratch_bytes)) {
    if (scratch_bytes_ == 0) return;
    scratch_ = heap_.allocate(scratch_bytes_);
    if (!scratch_) throw OutOfMemoryError(fmt::format("DSP: no memory for the {} bytes that a kernel keeps to itself", scratch_bytes_));
  }
  ~DspKernel() override {
    runner_.unload(image_, place_);
    if (scratch_) heap_.free(scratch_, scratch_bytes_);
  }

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims&, bool wait) override {
    const auto start = std::chrono::steady_clock::now();
    runner_.run(image_, place_, buffers, variables, scratch_);
    if (!wait) return std::nullopt;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  SharedHeap& heap_;
  Runner& runner_;
  const Image image_;
  const size_t scratch_bytes_;
  void* scratch_ = nullptr;
  Runner::Place place_;  // the runner's lock guards it
};

/// Made before the device's allocator is.
struct Shared {
  SharedHeap heap;
};

class DspDevice final : private Shared, public Device {
 public:
  DspDevice(const DeviceChoice& choice, const Target& target)
      : Device(choice.canonical(), target, std::make_unique<DspAllocator>(choice.canonical(), heap)),
        runner_(heap, find_emulator(), compiler::compile_hexagon_runner(target)) {}

  std::string render(const UOp& linear, const KernelInfo& info) override { return renderer::render_hexagon(target(), linear, info); }
  std::string compile(const std::string& source) override { return compiler::compile_hexagon(source, target()); }
  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& binary) override {
    return std::make_unique<DspKernel>(heap, runner_, info, binary);
  }
  std::string disassemble(const std::string& binary) override { return compiler::disassemble_hexagon(binary, target()); }

 private:
  Runner runner_;
};

}  // namespace

std::string dsp_unavailable() {
  if (!find_emulator().empty()) return {};
  return "no Hexagon, and no qemu-hexagon in PATH that stands for one. Install it (`apt-get install qemu-user-static`)";
}

std::unique_ptr<Device> open_dsp(const DeviceChoice& choice) {
  if (const std::string reason = dsp_unavailable(); !reason.empty()) throw DeviceError("DSP: " + reason);
  if (choice.index != 0) throw DeviceError(fmt::format("{}: there is one DSP", choice.canonical()));
  const Target target = dsp_target(choice.arch.empty() ? kEmulated : std::string_view(choice.arch));
  if (target.arch != Symbol(kEmulated))
    throw DeviceError(fmt::format("DSP: the emulator is a {}; it cannot run code for {}", kEmulated, target.arch.str()));
  return std::make_unique<DspDevice>(choice, target);
}

}  // namespace tinygrad::runtime
