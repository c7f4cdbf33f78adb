#include "runtime/metal/gpu.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"

namespace tinygrad::runtime::metal {
namespace {

constexpr unsigned long kStorageShared = 0, kStatusError = 5;  // MTLResourceOptions, MTLCommandBufferStatus

const DynamicLibrary& metal_library() {
  static const DynamicLibrary& library = [&]() -> const DynamicLibrary& {
    objective_c();
    // Programs without windows find no devices unless it is open.
    DynamicLibrary::try_open({"/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics"});
    return keep_open(DynamicLibrary::open({"/System/Library/Frameworks/Metal.framework/Metal"}));
  }();
  return library;
}

int64_t ns(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

/// The clock of command buffers: the host's, which stands still while the machine sleeps.
int64_t gpu_clock_ns() {
  constexpr int uptime_raw = 8;  // CLOCK_UPTIME_RAW
  return static_cast<int64_t>(metal_library().symbol<uint64_t(int)>("clock_gettime_nsec_np")(uptime_raw));
}

std::optional<DeviceSpan> span_of(const Object& commands) {
  return DeviceSpan{ns(send<double>(commands.get(), "GPUStartTime")), ns(send<double>(commands.get(), "GPUEndTime"))};
}

}  // namespace

std::vector<Object> all_devices() {
  const DynamicLibrary& library = metal_library();
  const Pool pool;
  std::vector<Object> devices;
  if (auto* copy_all = library.find<Id()>("MTLCopyAllDevices")) {
    const Object all = Object::owned(copy_all());
    const auto count = all ? send<unsigned long>(all.get(), "count") : 0;
    for (unsigned long i = 0; i < count; ++i) devices.push_back(Object::kept(send(all.get(), "objectAtIndex:", i)));
  }
  if (devices.empty()) {
    Object only = Object::owned(library.symbol<Id()>("MTLCreateSystemDefaultDevice")());
    if (only) devices.push_back(std::move(only));
  }
  return devices;
}

Gpu::Gpu(int number) : profile_(number == 0 ? "METAL" : fmt::format("METAL:{}", number)) {
  std::vector<Object> devices = all_devices();
  if (static_cast<size_t>(number) >= devices.size())
    throw DeviceError(fmt::format("METAL:{}: there is no such device; the system has {}", number, devices.size()));
  device_ = std::move(devices[static_cast<size_t>(number)]);
  queue_ = Object::owned(send(device_.get(), "newCommandQueueWithMaxCommandBufferCount:", 1024ul));
  if (!queue_) throw DeviceError(fmt::format("METAL:{}: cannot make a queue", number));
}

void Gpu::commit(Id commands, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  running_.push_back(Object::kept(commands));
  if (!is_profiling()) return send<void>(commands, "commit");
  profile_.launch(kernel, "kernel", [&] {
    send<void>(commands, "commit");
    return Object::kept(commands);
  });
}

void Gpu::wait() {
  const Pool pool;
  const auto launched = profile_.take();
  std::vector<Object> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(running_);
  }
  if (!done.empty()) wait_for(done.back().get());
  for (const Object& commands : done) {
    wait_for(commands.get());
    if (send<unsigned long>(commands.get(), "status") == kStatusError)
      throw DeviceError(fmt::format("METAL: a kernel failed: {}", description_of(send(commands.get(), "error"))));
  }
  if (!launched.empty()) profile_.record(launched, gpu_clock_ns(), profile_now_ns(), span_of);
}

void* Gpu::allocate(size_t bytes, void* external) {
  const Pool pool;
  const auto size = static_cast<unsigned long>(std::max<size_t>(bytes, 1));
  Object buffer = Object::owned(
      external ? send(device_.get(), "newBufferWithBytesNoCopy:length:options:deallocator:", external, size, kStorageShared, Id{nullptr})
               : send(device_.get(), "newBufferWithLength:options:", size, kStorageShared));
  if (!buffer) return nullptr;
  void* const address = send<void*>(buffer.get(), "contents");
  const std::lock_guard lock(mutex_);
  buffers_[static_cast<std::byte*>(address)] = {std::move(buffer), size};
  return address;
}

// A command buffer keeps the buffers that it uses.
void Gpu::free(void* address) noexcept {
  Buffer freed;
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(static_cast<std::byte*>(address));
  if (found == buffers_.end()) return;
  freed = std::move(found->second);
  buffers_.erase(found);
}

std::pair<Id, size_t> Gpu::buffer_of(void* address) const {
  auto* const at = static_cast<std::byte*>(address);
  const std::lock_guard lock(mutex_);
  auto next = buffers_.upper_bound(at);
  if (next != buffers_.begin()) {
    --next;
    if (at < next->first + next->second.bytes) return {next->second.buffer.get(), static_cast<size_t>(at - next->first)};
  }
  throw DeviceError("METAL: a kernel was given memory that is not the device's; copy it first");
}

}  // namespace tinygrad::runtime::metal
