#include "runtime/cl/cl.h"

#include <deque>
#include <mutex>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/log.h"
#include "compiler/code_paths.h"
#include "runtime/check_groups.h"
#include "runtime/cl/cl_image.h"
#include "runtime/cl/cl_memory.h"
#include "runtime/cl/cl_profile.h"
#include "runtime/cl/cl_program.h"

namespace tinygrad::runtime {
namespace {

using namespace cl;

/// Where drivers report what goes wrong beside the calls, from any thread.
class Complaints {
 public:
  static void note(const char* what, const void*, size_t, void* self) {
    static_cast<Complaints*>(self)->add(what ? what : "unknown error");
  }
  std::string take() {
    std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  void add(std::string_view what) {
    std::lock_guard lock(mutex_);
    if (!text_.empty()) text_ += "; ";
    text_ += what;
  }

  std::mutex mutex_;
  std::string text_;
};

/// A device with a context and an in-order queue; never closed.
struct Opened {
  explicit Opened(const std::string& name) : profile(name) {}

  BuildFor build;
  DeviceId device = nullptr;
  Context context = nullptr;
  Queue queue = nullptr;
  OpenClLimits limits;
  bool images_over_buffers = false;
  Complaints complaints;
  mutable ClProfile profile;
};

bool has_extension(DeviceId id, std::string_view name) {
  return (" " + device_text(id, device_extensions) + " ").find(fmt::format(" {} ", name)) != std::string::npos;
}

constexpr std::string_view kImagesOverBuffers = "cl_khr_image2d_from_buffer";

OpenClLimits limits_of(DeviceId id) {
  OpenClLimits limits;
  // Colons end a part of a device's name.
  std::string name = fmt::format("{}-{}", device_text(id, device_name), device_text(id, driver_version));
  for (char& c : name)
    if (c == ':' || c == ' ') c = '_';
  limits.name = Symbol(name);
  limits.has_double = has_extension(id, "cl_khr_fp64") || device_number<uint64_t>(id, device_double_fp_config) != 0;
  limits.has_half = has_extension(id, "cl_khr_fp16");
  limits.max_group_items = static_cast<int64_t>(device_number<size_t>(id, device_max_work_group_size));
  limits.group_memory_bytes = static_cast<int64_t>(device_number<uint64_t>(id, device_local_mem_size));
  if (const uint64_t cache = device_number<uint64_t>(id, device_global_mem_cache_size)) limits.cache_bytes = static_cast<int64_t>(cache);
  if (device_number<uint32_t>(id, device_image_support) != 0) {
    limits.max_image_width = static_cast<int64_t>(device_number<size_t>(id, device_image_width));
    limits.max_image_height = static_cast<int64_t>(device_number<size_t>(id, device_image_height));
    if (has_extension(id, kImagesOverBuffers)) limits.image_pitch = std::max<int64_t>(device_number<uint32_t>(id, device_image_pitch), 1);
  }
  // A buffer takes a pointer and where to begin; variables need room, too.
  limits.max_buffers = static_cast<int>(std::min<size_t>(device_number<size_t>(id, device_max_parameter_size) / 16, 72)) - 8;
  return limits;
}

/// The queues of all devices, never released.
class Queues {
 public:
  void add(Queue queue) {
    const std::lock_guard lock(mutex_);
    queues_.push_back(queue);
  }
  void finish() {
    const std::lock_guard lock(mutex_);
    for (Queue q : queues_) api().Finish(q);
  }

 private:
  std::mutex mutex_;
  std::vector<Queue> queues_;
};
Queues& queues() {
  static Queues& all = *new Queues;
  return all;
}

/// Drivers compile and run kernels on threads of this process, which must not be at it when exit() takes down what these libraries have
/// made. Before any of that, exit() destroys what belongs to its thread.
struct FinishAtExit {
  FinishAtExit() = default;
  FinishAtExit(const FinishAtExit&) = delete;
  FinishAtExit& operator=(const FinishAtExit&) = delete;
  ~FinishAtExit() { queues().finish(); }
};

std::unique_ptr<Opened> open(const DeviceChoice& choice) {
  const std::vector<DeviceId> found = find_devices();
  const std::string name = choice.canonical();
  if (static_cast<size_t>(choice.index) >= found.size()) {
    throw DeviceError(fmt::format("{}: there {} {} OpenCL device{} on this machine", name, found.size() == 1 ? "is" : "are", found.size(),
                                  found.size() == 1 ? "" : "s"));
  }
  auto opened = std::make_unique<Opened>(name);
  opened->device = found[static_cast<size_t>(choice.index)];
  int32_t error = success;
  opened->context = api().CreateContext(nullptr, 1, &opened->device, Complaints::note, &opened->complaints, &error);
  check(error, name, "opening the device");
  opened->queue = api().CreateCommandQueue(opened->context, opened->device, queue_profiling_enable, &error);
  check(error, name, "opening the device");
  queues().add(opened->queue);
  opened->limits = limits_of(opened->device);
  opened->images_over_buffers = has_extension(opened->device, kImagesOverBuffers);
  const bool rounds = device_number<uint64_t>(opened->device, device_single_fp_config) & correctly_rounded_divide_sqrt;
  opened->build = {.name = name,
                   .context = opened->context,
                   .device = opened->device,
                   .options = fmt::format("-cl-std=CL1.2{}", rounds ? " -cl-fp32-correctly-rounded-divide-sqrt" : ""),
                   .key = std::string(opened->limits.name.str())};
  return opened;
}

class ClKernel final : public Kernel {
 public:
  ClKernel(const Opened& device, const Target& target, const ClAllocator& memory, const KernelInfo& info, const std::string& source)
      : device_(device), target_(target), memory_(memory), info_(info), program_(cl::build_program(device.build, source)) {
    int32_t error = success;
    id_ = api().CreateKernel(program_.get(), kernel_symbol(info.name).c_str(), &error);
    check(error, name(), fmt::format("loading {}", info.name));
    if (api().GetKernelWorkGroupInfo(id_, device_.device, kernel_work_group_size, sizeof(most_items_), &most_items_, nullptr) != success) {
      most_items_ = SIZE_MAX;
    }
  }
  ~ClKernel() override { api().ReleaseKernel(id_); }

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    check_groups(name(), info_, dims, target_.max_global);
    size_t global[3], local[3], groups = 1, items = 1;
    for (int i = 0; i < 3; ++i) {
      local[i] = static_cast<size_t>(dims.local[i]);
      global[i] = static_cast<size_t>(dims.global[i]) * local[i];
      groups *= static_cast<size_t>(dims.global[i]);
      items *= local[i];
    }
    if (groups == 0 || items == 0) return wait ? std::optional(0.0) : std::nullopt;
    if (items > most_items_) {
      throw DeviceError(fmt::format("{}: kernel {} has groups of {} work-items, and the device runs at most {}; give it smaller LOCAL opts",
                                    name(), info_.name, items, most_items_));
    }
    static thread_local const FinishAtExit at_exit;
    EventPtr event;
    {
      std::lock_guard lock(mutex_);  // arguments are the kernel's, not the launch's
      std::deque<ClImage> images;
      set_arguments(buffers, variables, images);
      for (const ClImage& i : images) i.fill(device_.queue);
      event = enqueue(global, local, wait);
      for (const ClImage& i : images) i.write_back(device_.queue);
    }
    if (!wait) {
      api().Flush(device_.queue);
      return std::nullopt;
    }
    EventTag* const launched = event.get();
    check(api().WaitForEvents(1, &launched), name(), fmt::format("running {}", info_.name));
    const DeviceSpan span = span_of(event).value_or(DeviceSpan{});
    return 1e-9 * static_cast<double>(span.end_ns - span.begin_ns);
  }

 private:
  const std::string& name() const { return device_.build.name; }

  /// The launch's event, where somebody waits for it.
  EventPtr enqueue(const size_t (&global)[3], const size_t (&local)[3], bool wait) {
    EventPtr event;
    timed(device_.profile, info_.name, "kernel", [&](EventTag** recorded) {
      EventTag* waited = nullptr;
      EventTag** const place = recorded ? recorded : wait ? &waited : nullptr;
      check(api().EnqueueNDRangeKernel(device_.queue, id_, 3, nullptr, global, local, 0, nullptr, place), name(),
            fmt::format("launching {}", info_.name));
      if (recorded && wait) api().RetainEvent(*recorded);
      if (wait) event.reset(*place);
    });
    return event;
  }

  void set_arguments(std::span<void* const> buffers, std::span<const int64_t> variables, std::deque<ClImage>& images) {
    uint32_t at = 0;
    const auto set = [&](const auto& value) {
      check(api().SetKernelArg(id_, at++, sizeof(value), &value), name(), fmt::format("launching {}", info_.name));
    };
    for (const KernelParam& p : info_.params) {
      const Place place = memory_.place(buffers[static_cast<size_t>(p.slot)]);
      const size_t item = itemsize(p.dtype);
      if (place.offset % item != 0) {
        throw DeviceError(
            fmt::format("{}: argument {} of {} begins {} bytes into its buffer, which elements of {} bytes must not; copy it first", name(),
                        p.slot, info_.name, place.offset, item));
      }
      if (p.image_width != 0) {
        set(images.emplace_back(name(), device_.context, device_.images_over_buffers, p, place).memory());
        continue;
      }
      set(place.memory);
      set(static_cast<uint64_t>(place.offset / item));
    }
    for (int64_t v : variables) set(v);
  }

  const Opened& device_;
  const Target& target_;
  const ClAllocator& memory_;
  const KernelInfo info_;
  const ProgramPtr program_;
  KernelId id_ = nullptr;
  size_t most_items_ = 0;
  std::mutex mutex_;
};

class ClDevice final : public Device {
 public:
  explicit ClDevice(std::unique_ptr<Opened> opened)
      : Device(opened->build.name, opencl_target(opened->limits),
               std::make_unique<ClAllocator>(opened->build.name, opened->context, opened->queue, opened->profile), compiler::opencl_path),
        opened_(std::move(opened)) {}

  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& source) override {
    return std::make_unique<ClKernel>(*opened_, target(), static_cast<const ClAllocator&>(allocator()), info, source);
  }
  bool is_async() const override { return true; }
  bool records_profile() const override { return true; }

  /// Commands run in order, so a marker that has finished says that all before it have; one that failed, that one of them did.
  void synchronize() override {
    const std::string& name = opened_->build.name;
    const auto launched = opened_->profile.take();
    EventTag* event = nullptr;
    check(api().EnqueueMarkerWithWaitList(opened_->queue, 0, nullptr, &event), name, "waiting");
    const EventPtr marker(event);
    const int32_t waited = api().WaitForEvents(1, &event);
    const int64_t now = profile_now_ns();
    int32_t status = success;
    api().GetEventInfo(event, event_command_execution_status, sizeof(status), &status, nullptr);
    const std::string complaints = opened_->complaints.take();
    if (waited == success && status >= 0) {
      if (!complaints.empty() && log_enabled(1)) log_line(fmt::format("{}: the driver says: {}", name, complaints));
      if (const auto last = launched.empty() ? std::nullopt : span_of(marker))
        opened_->profile.record(launched, last->end_ns, now, span_of);
      return;
    }
    const std::string code = error_name(status < 0 ? status : waited);
    throw DeviceError(fmt::format("{}: a launch failed: {}", name, complaints.empty() ? code : complaints));
  }

 private:
  const std::unique_ptr<Opened> opened_;
};

}  // namespace

std::string cl_unavailable() {
  try {
    find_devices();
    return {};
  } catch (const tinygrad::Error& e) {
    return e.what();
  }
}

std::unique_ptr<Device> open_cl(const DeviceChoice& choice) { return std::make_unique<ClDevice>(open(choice)); }

}  // namespace tinygrad::runtime
