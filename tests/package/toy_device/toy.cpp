#include "toy.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>

#include <tinygrad/errors.h>

using namespace tinygrad;

namespace {

std::atomic<long> launches{0};

/// Memory: handles are addresses, but nobody else is told so.
class ToyAllocator final : public LruAllocator {
 public:
  using LruAllocator::LruAllocator;
  ~ToyAllocator() override { empty_cache(); }

  void* offset(void* handle, size_t bytes) const override { return static_cast<std::byte*>(handle) + bytes; }
  std::byte* host_pointer(void*) const override { return nullptr; }
  void copy_in(void* handle, const std::byte* from, size_t bytes) override { std::memmove(handle, from, bytes); }
  void copy_out(std::byte* to, void* handle, size_t bytes) override { std::memmove(to, handle, bytes); }
  void copy(void* to, void* from, size_t bytes) override { std::memmove(to, from, bytes); }

 protected:
  void* system_allocate(size_t bytes, const BufferSpec&) override { return std::aligned_alloc(64, (bytes + 64) / 64 * 64); }
  void system_free(void* handle, size_t, const BufferSpec&) noexcept override { std::free(handle); }
};

/// A file in the folder for temporary files, gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    const int file = ::mkstemp(path_.data());
    const bool written = file >= 0 && ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    if (file >= 0) ::close(file);
    if (!written) throw DeviceError("TOY: cannot write " + path_);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/toy_device_XXXXXX";
};

/// A kernel: a function in a shared object.
class ToyKernel final : public Kernel {
 public:
  ToyKernel(const KernelInfo& info, const std::string& binary) : scratch_bytes_(static_cast<size_t>(info.scratch_bytes)) {
    const TemporaryFile file(binary);
    library_ = ::dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    function_ = library_ ? reinterpret_cast<Function*>(::dlsym(library_, kernel_symbol(info.name).c_str())) : nullptr;
    if (!function_) throw DeviceError("TOY: kernel " + info.name + " cannot be loaded");
  }
  ~ToyKernel() override { ::dlclose(library_); }

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    const auto start = std::chrono::steady_clock::now();
    void* scratch = scratch_bytes_ ? std::aligned_alloc(64, (scratch_bytes_ + 63) / 64 * 64) : nullptr;
    if (scratch_bytes_ && !scratch) throw OutOfMemoryError("TOY: no memory for a kernel's scratch area");
    function_(buffers.data(), variables.data(), 0, dims.chunks, scratch);
    std::free(scratch);
    ++launches;
    if (!wait) return std::nullopt;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  using Function = void(void* const*, const int64_t*, int64_t, int64_t, void*);
  void* library_ = nullptr;
  Function* function_ = nullptr;
  size_t scratch_bytes_;
};

std::string compile(const Target& target, const std::string& source) {
  const TemporaryFile text(source), binary("");
  const std::string command =
      "clang-19 -x c -std=c2x -w -O2 -ffp-contract=on -fno-math-errno -fno-strict-overflow -fno-strict-aliasing -shared -fPIC -march=" +
      std::string(target.arch.str()) + " -o " + binary.path() + " " + text.path();
  if (std::system(command.c_str()) != 0) throw CompileError("TOY: failed: " + command + "\n" + source);
  std::ifstream file(binary.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Target target_of(std::string_view arch) {
  Target target = arch.empty() ? host_cpu_target() : cpu_target(arch);
  target.device = "TOY";
  target.renderer = "C";
  target.drop_dtype(DType::float64);  // pretend: the library computes around what is missing
  return target;
}

std::string missing_compiler() {
  return std::system("command -v clang-19 >/dev/null") == 0 ? "" : "there is no clang-19 in PATH (`apt-get install clang-19`)";
}

constexpr CodePath code_paths[] = {
    {.renderer = "C", .target = target_of, .render = renderer::render_c, .compile = compile, .missing_compiler = missing_compiler}};

/// Its launches return early: the queue runs them one after another.
class QueuedKernel final : public Kernel {
 public:
  QueuedKernel(HostQueue& queue, const KernelInfo& info, const std::string& binary) : queue_(queue), kernel_(info, binary) {}
  ~QueuedKernel() override { queue_.drain(); }

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    if (wait) {
      queue_.drain();
      return kernel_.launch(buffers, variables, dims, true);
    }
    const Command command = LaunchCommand{&kernel_, buffers, variables, dims};
    queue_.submit({&command, 1});
    return std::nullopt;
  }

 private:
  HostQueue& queue_;
  ToyKernel kernel_;
};

class ToyDevice final : public Device {
 public:
  ToyDevice(const std::string& name, const Target& target)
      : Device(name, target, std::make_unique<ToyAllocator>(name), code_paths[0]), queue_(name) {}

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& binary) override {
    return std::make_unique<QueuedKernel>(queue_, info, binary);
  }
  bool is_async() const override { return true; }
  void synchronize() override { queue_.synchronize(); }
  Queue* queue() override { return &queue_; }

 private:
  HostQueue queue_;
};

std::string unavailable() { return {}; }

std::unique_ptr<Device> open(const DeviceChoice& choice) { return std::make_unique<ToyDevice>(choice.canonical(), target_of(choice.arch)); }

}  // namespace

void register_toy() {
  register_backend({.name = "TOY", .may_be_default = false, .unavailable = unavailable, .code_paths = code_paths, .open = open});
}

long toy_launches() { return launches; }
