#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/profile_log.h"
#include "runtime/webgpu/api.h"

#include <tinygrad/allocator.h>

namespace tinygrad::runtime::webgpu {

/// The adapters of this machine, the fastest kind first. Throws DeviceError if the library cannot be opened. They stay until the end.
std::span<const Adapter> adapters();

AdapterType type_of(Adapter adapter);

/// A thing of the library, released with this handle.
template <class T, void (*Api::*release)(T)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(T object) : object_(object) {}
  ~Owned() { reset(); }
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() {
    if (object_) (api().*release)(object_);
    object_ = nullptr;
  }

 private:
  T object_ = nullptr;
};
using OwnedBuffer = Owned<GpuBuffer, &Api::BufferRelease>;
using OwnedModule = Owned<ShaderModule, &Api::ShaderModuleRelease>;
using OwnedGroupLayout = Owned<BindGroupLayout, &Api::BindGroupLayoutRelease>;
using OwnedLayout = Owned<PipelineLayout, &Api::PipelineLayoutRelease>;
using OwnedPipeline = Owned<Pipeline, &Api::ComputePipelineRelease>;
using OwnedGroup = Owned<BindGroup, &Api::BindGroupRelease>;

/// A place in a buffer of the library.
struct Place {
  GpuBuffer buffer = nullptr;
  uint64_t offset = 0;
  uint64_t left = 0;  ///< bytes of the buffer from here on
};

/// What one launch is made of.
struct Dispatch {
  std::string_view name;
  Pipeline pipeline = nullptr;
  BindGroup group = nullptr;
  uint32_t groups[3] = {1, 1, 1};
};

/// A device of the library with its one queue. Work is recorded and submitted some launches at a time, at the latest when somebody waits.
/// Errors of the library become exceptions at the call that made them, or else at the next wait. Safe for several threads.
class Gpu {
 public:
  /// Throws DeviceError.
  Gpu(std::string name, Adapter adapter);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Gives the device back, with all of its memory. It is lost then, as one that the system takes away: what waits to run does not, and
  /// every call but releases throws a DeviceError that says so.
  void close() noexcept;

  const std::string& name() const { return name_; }
  const Limits& limits() const { return limits_; }
  /// Whether the adapter is a processor with software that makes it one.
  bool is_software() const { return type_of(adapter_) == AdapterType::cpu; }
  bool has(Feature feature) const { return api().AdapterHasFeature(adapter_, feature) != 0; }

  /// Null when there is no memory.
  OwnedBuffer make_buffer(uint64_t bytes, uint64_t usage, bool mapped = false);
  /// Offsets and sizes are multiples of 4.
  void write(GpuBuffer to, uint64_t offset, const void* from, size_t bytes);
  /// What a function reads, to memory that both sides reach.
  void write_read(GpuBuffer to, uint64_t offset, size_t bytes, const Allocator::Reader& read);
  void read(void* to, const Place& from, size_t bytes);
  void copy(const Place& to, const Place& from, uint64_t bytes);

  /// Throws CompileError with what the library says of the text.
  OwnedModule make_module(const std::string& wgsl);
  OwnedGroupLayout make_group_layout(std::span<const BindGroupLayoutEntry> entries);
  OwnedLayout make_layout(BindGroupLayout group);
  OwnedPipeline make_pipeline(const PipelineDescriptor& descriptor);
  OwnedGroup make_group(BindGroupLayout layout, std::span<const BindGroupEntry> entries);

  /// A place for `bytes` of uniforms of the next launch, until that is made.
  Place uniforms(const void* from, size_t bytes);
  void launch(const Dispatch& dispatch);
  /// Runs it alone and waits; the seconds that it took on the device.
  double launch_timed(const Dispatch& dispatch);
  /// Whether launches have times of the device.
  bool has_clock() const { return queries_ != nullptr; }
  /// Waits for all launches; throws what went wrong with them.
  void synchronize();

 private:
  using Lock = std::unique_lock<std::recursive_mutex>;

  /// When the launches of one submission began and ended.
  struct Stamps {
    OwnedBuffer memory;
    uint32_t count = 0;
    std::vector<uint64_t> ticks;  // once they were read
  };
  /// One of them.
  struct Timer {
    std::shared_ptr<Stamps> stamps;
    uint32_t number = 0;
  };

  void submit(Encoder encoder);
  void flush();
  void end_pass();
  Timer stamped(const std::function<void(Pass)>& record);
  void launch_stamped(const Dispatch& d, Timer* timer = nullptr);
  /// The times of a launch that has run.
  DeviceSpan span_of(const Timer& timer);
  void read_mapped(void* to, GpuBuffer from, size_t bytes);
  void dispatch(Pass pass, const Dispatch& d);
  void check_alive() const;
  void drop_recorded() noexcept;
  void note_loss(const std::string& why) noexcept;
  /// Whether there is an error that nobody has taken.
  bool has_failed() const;
  /// The first error since the last call.
  std::optional<std::pair<ErrorType, std::string>> take_error();
  void throw_error(std::string_view doing);
  template <class T>
  T made(std::string_view what, T object);

  const std::string name_;
  const Adapter adapter_;
  GpuDevice device_ = nullptr;
  Queue queue_ = nullptr;
  Limits limits_;

  std::recursive_mutex mutex_;  // of what is recorded and of calls that may fail, so that an error is that of its call
  Encoder encoder_ = nullptr;
  Pass pass_ = nullptr;
  int recorded_ = 0;
  OwnedBuffer uniforms_, timestamps_;
  uint64_t next_uniform_ = 0;
  QuerySet queries_ = nullptr;  // null where the device has no clock
  std::shared_ptr<Stamps> stamps_;
  ProfileLog<Timer> profile_;

  mutable std::mutex error_mutex_;
  ErrorType error_ = ErrorType::none;
  std::string error_text_, lost_;
  std::atomic<bool> is_lost_{false};
};

}  // namespace tinygrad::runtime::webgpu
