#include "runtime/emulated/device.h"

#include <chrono>
#include <cstring>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/subprocess.h"
#include "compiler/image/image.h"
#include "runtime/promised_alignment.h"

namespace tinygrad::runtime {
namespace {

/// "aarch64", as in the emulator's name.
std::string_view processor_of(const Target& target) {
  const std::string_view triple = processor_names(target.arch.str()).triple;
  return triple.substr(0, triple.find('-'));
}

std::string find_emulator(const Target& target) {
  for (const std::string_view ending : {"-static", ""})
    if (std::string found = find_program(fmt::format("qemu-{}{}", processor_of(target), ending)); !found.empty()) return found;
  return {};
}

/// A path and arguments.
std::vector<std::string> emulator_command(const Target& target) {
  std::vector<std::string> command{find_emulator(target)};
  if (command[0].empty()) throw DeviceError(fmt::format("{}: {}", target.name(), emulator_missing(target)));
  if (processor_of(target) == "riscv64")
    command.insert(command.end(), {"-cpu", fmt::format("rv64,v=true,vlen={},elen=64,vext_spec=v1.0", target.vector_bits)});
  return command;
}

/// What a launch is given. Memory of somebody else, which the process does not see, is copied there and back.
class Arguments {
 public:
  Arguments(SharedHeap& heap, std::span<const KernelParam> params, std::span<void* const> buffers, std::span<const int64_t> variables)
      : Arguments(heap, buffers) {
    copies_.reserve(params.size());
    for (const KernelParam& p : params) {
      void*& handle = handles_[static_cast<size_t>(p.slot)];
      if (heap_.contains(handle)) continue;
      const size_t bytes = static_cast<size_t>(p.size.evaluate(variables)) * itemsize(p.dtype);
      void* copy = heap_.allocate(bytes);
      if (!copy) throw OutOfMemoryError(fmt::format("no memory for a copy of {} bytes that a kernel was given", bytes));
      std::memcpy(copy, handle, bytes);
      copies_.push_back({copy, handle, bytes, p.written});
      handle = copy;
    }
  }
  ~Arguments() {
    for (const Copy& c : copies_) heap_.free(c.copy, c.bytes);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  std::span<void* const> handles() const { return handles_; }
  void copy_back() const {
    for (const Copy& c : copies_)
      if (c.written) std::memcpy(c.original, c.copy, c.bytes);
  }

 private:
  struct Copy {
    void *copy, *original;
    size_t bytes;
    bool written;
  };

  Arguments(SharedHeap& heap, std::span<void* const> buffers) : heap_(heap), handles_(buffers.begin(), buffers.end()) {}

  SharedHeap& heap_;
  std::vector<void*> handles_;
  std::vector<Copy> copies_;
};

class EmulatedKernel final : public Kernel {
 public:
  EmulatedKernel(std::string_view device, SharedHeap& heap, Runner& runner, const KernelInfo& info, std::string_view elf)
      : heap_(heap),
        runner_(runner),
        image_(elf),
        params_(info.params),
        promised_(info),
        scratch_bytes_(static_cast<size_t>(info.scratch_bytes)) {
    if (scratch_bytes_ == 0) return;
    scratch_ = heap_.allocate(scratch_bytes_);
    if (!scratch_)
      throw OutOfMemoryError(fmt::format("{}: no memory for the {} bytes that a kernel keeps to itself", device, scratch_bytes_));
  }
  ~EmulatedKernel() override {
    runner_.unload(image_, place_);
    if (scratch_) heap_.free(scratch_, scratch_bytes_);
  }

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    promised_.check(buffers);
    const auto start = std::chrono::steady_clock::now();
    Arguments arguments(heap_, params_, buffers, variables);
    if (dims.chunks > 0) runner_.run(image_, place_, arguments.handles(), variables, dims.chunks, scratch_);
    arguments.copy_back();
    if (!wait) return std::nullopt;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  SharedHeap& heap_;
  Runner& runner_;
  const Image image_;
  const std::vector<KernelParam> params_;
  const PromisedAlignment promised_;
  const size_t scratch_bytes_;
  void* scratch_ = nullptr;
  Runner::Place place_;  // the runner's lock guards it
};

}  // namespace

EmulatedDevice::EmulatedDevice(const DeviceChoice& choice, const Target& target, const CodePath& code)
    : Device(choice.canonical(), target, std::make_unique<SharedAllocator>(choice.canonical(), heap()), code),
      runner_(target.name(), heap(), emulator_command(target), [this] { return compiler::compile_runner(this->target()); }) {}

std::unique_ptr<Kernel> EmulatedDevice::load(const KernelInfo& info, const UOp&, const std::string& binary) {
  const std::string image = compiler::link_image(binary, kernel_symbol(info.name), target());
  return std::make_unique<EmulatedKernel>(name().str(), heap(), runner_, info, image);
}

std::string emulator_missing(const Target& target) {
  if (!find_emulator(target).empty()) return {};
  return fmt::format("no qemu-{} in PATH that stands for the processor. Install it (`apt-get install qemu-user-static`)",
                     processor_of(target));
}

}  // namespace tinygrad::runtime
