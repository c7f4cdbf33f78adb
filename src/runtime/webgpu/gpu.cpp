#include "runtime/webgpu/gpu.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime::webgpu {

namespace {

constexpr int kLaunchesAtOnce = 64;
constexpr uint32_t kStamps = kLaunchesAtOnce + 1;  // and one by which to know the device's clock
constexpr uint64_t kStampBytes = 2 * sizeof(uint64_t);
constexpr uint64_t kUniformBytes = 64 << 10;
constexpr size_t kCopyBytes = size_t{32} << 20;  // through memory that both sides reach

/// Real hardware before what runs on the processor.
int rank(Adapter adapter) {
  const AdapterType type = type_of(adapter);
  return type == AdapterType::discrete ? 0 : type == AdapterType::integrated ? 1 : type == AdapterType::unknown ? 2 : 3;
}

/// What becomes of a request to see a buffer's memory.
struct Mapping {
  bool works = false;
  std::string text;
  std::atomic<bool> is_done{false};

  void finish(uint32_t status, StringView why) {
    works = status == kSuccess;
    text = why.str();
    is_done = true;
  }
};

Instance instance() {
  static const Instance made = [] {
    const InstanceExtras extras;
    const InstanceDescriptor d{.next = &extras.chain};
    return api().CreateInstance(&d);
  }();
  if (!made) throw DeviceError("wgpu-native could not be started");
  return made;
}

std::vector<Adapter>& find_adapters() {
  const EnumerateOptions options;
  auto& found = *new std::vector<Adapter>(api().InstanceEnumerateAdapters(instance(), &options, nullptr));
  if (!found.empty()) found.resize(api().InstanceEnumerateAdapters(instance(), &options, found.data()));
  std::stable_sort(found.begin(), found.end(), [](Adapter a, Adapter b) { return rank(a) < rank(b); });
  return found;
}

}  // namespace

AdapterType type_of(Adapter adapter) {
  AdapterInfo info;
  api().AdapterGetInfo(adapter, &info);
  api().AdapterInfoFreeMembers(info);
  return info.type;
}

std::span<const Adapter> adapters() {
  static const std::vector<Adapter>& found = find_adapters();
  return found;
}

Gpu::Gpu(std::string name, Adapter adapter) : name_(std::move(name)), adapter_(adapter), profile_(name_) {
  api().AdapterGetLimits(adapter, &limits_);
  std::vector<Feature> features;
  for (const Feature f : {Feature::timestamp_query, Feature::shader_f16})
    if (has(f)) features.push_back(f);
  DeviceDescriptor d;
  d.feature_count = features.size();
  d.features = features.data();
  d.limits = &limits_;
  d.lost.data1 = d.error.data1 = this;
  d.lost.callback = [](const GpuDevice*, uint32_t reason, StringView text, void* self, void*) {
    if (reason == kCancelled) return;  // it was never opened
    static_cast<Gpu*>(self)->note_loss(text.str());
  };
  d.error.callback = [](const GpuDevice*, ErrorType type, StringView text, void* self, void*) {
    auto& gpu = *static_cast<Gpu*>(self);
    // It has no type of error for that, and calls back for what was lost only now and then.
    if (text.str().find("device is lost") != std::string::npos) gpu.note_loss("it was taken away");
    std::lock_guard lock(gpu.error_mutex_);
    if (gpu.error_ != ErrorType::none) return;
    gpu.error_ = type;
    gpu.error_text_ = text.str();
  };
  std::string why;
  DeviceCallbackInfo opened;
  opened.data1 = &device_;
  opened.data2 = &why;
  opened.callback = [](uint32_t status, GpuDevice device, StringView text, void* to, void* reason) {
    *static_cast<GpuDevice*>(to) = status == kSuccess ? device : nullptr;
    *static_cast<std::string*>(reason) = text.str();
  };
  api().AdapterRequestDevice(adapter, &d, opened);
  api().InstanceProcessEvents(instance());
  if (!device_) throw DeviceError(fmt::format("{}: the adapter gives no device: {}", name_, why));
  queue_ = api().DeviceGetQueue(device_);
  uniforms_ = make_buffer(kUniformBytes, BufferUsage::uniform | BufferUsage::copy_to);
  if (has(Feature::timestamp_query)) {
    const QuerySetDescriptor queries{.label = {}, .count = 2 * kStamps};
    queries_ = api().DeviceCreateQuerySet(device_, &queries);
    timestamps_ = make_buffer(kStamps * kStampBytes, BufferUsage::query_resolve | BufferUsage::copy_from);
  }
  throw_error("opening it");
}

Gpu::~Gpu() {
  close();
  profile_.take();
  uniforms_.reset();
  timestamps_.reset();
  if (queries_) api().QuerySetRelease(queries_);
  if (queue_) api().QueueRelease(queue_);
  if (device_) api().DeviceRelease(device_);
}

void Gpu::close() noexcept {
  const Lock lock(mutex_);
  drop_recorded();
  if (!device_) return;
  api().DeviceDestroy(device_);
  note_loss("it was closed");
}

void Gpu::end_pass() {
  if (!pass_) return;
  api().ComputePassEncoderEnd(pass_);
  api().ComputePassEncoderRelease(std::exchange(pass_, nullptr));
}

void Gpu::drop_recorded() noexcept {
  end_pass();
  stamps_.reset();
  if (encoder_) api().CommandEncoderRelease(std::exchange(encoder_, nullptr));
  recorded_ = 0;
}

// Errors.

void Gpu::note_loss(const std::string& why) noexcept {
  std::lock_guard lock(error_mutex_);
  if (is_lost_) return;
  lost_ = why;
  is_lost_ = true;
}

bool Gpu::has_failed() const {
  std::lock_guard lock(error_mutex_);
  return is_lost_ || error_ != ErrorType::none;
}

void Gpu::check_alive() const {
  if (!is_lost_) return;
  std::lock_guard lock(error_mutex_);
  throw DeviceError(fmt::format("{}: the device is lost: {}; start the program again", name_, lost_));
}

std::optional<std::pair<ErrorType, std::string>> Gpu::take_error() {
  std::lock_guard lock(error_mutex_);
  if (error_ == ErrorType::none) return std::nullopt;
  return std::pair(std::exchange(error_, ErrorType::none), std::move(error_text_));
}

void Gpu::throw_error(std::string_view doing) {
  check_alive();
  const auto error = take_error();
  if (!error) return;
  const std::string text = fmt::format("{}: {}: {}", name_, doing, error->second);
  if (error->first == ErrorType::out_of_memory) throw OutOfMemoryError(text);
  throw DeviceError(text);
}

template <class T>
T Gpu::made(std::string_view what, T object) {
  throw_error(what);
  if (!object) throw DeviceError(fmt::format("{}: {} failed", name_, what));
  return object;
}

// Memory.

OwnedBuffer Gpu::make_buffer(uint64_t bytes, uint64_t usage, bool mapped) {
  check_alive();
  if (bytes > limits_.buffer_size) return {};
  const BufferDescriptor d{.label = {}, .usage = usage, .size = bytes, .mapped_at_creation = mapped};
  const Lock lock(mutex_);
  OwnedBuffer buffer(api().DeviceCreateBuffer(device_, &d));
  const auto error = take_error();
  if (!error) return buffer;
  if (error->first == ErrorType::out_of_memory) return {};
  throw DeviceError(fmt::format("{}: a buffer of {} bytes: {}", name_, bytes, error->second));
}

void Gpu::write(GpuBuffer to, uint64_t offset, const void* from, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  for (size_t done = 0; done < bytes; done += kCopyBytes) {
    const Lock lock(mutex_);
    flush();
    api().QueueWriteBuffer(queue_, to, offset + done, at + done, std::min(kCopyBytes, bytes - done));
    // The library has copied it to memory of its own, which waiting makes free again.
    if (bytes > kCopyBytes) synchronize();
  }
  throw_error("copying to it");
}

void Gpu::write_read(GpuBuffer to, uint64_t offset, size_t bytes, const Allocator::Reader& read) {
  for (size_t done = 0; done < bytes; done += kCopyBytes) {
    const size_t part = std::min(kCopyBytes, bytes - done);
    const OwnedBuffer between = make_buffer(part, BufferUsage::map_write | BufferUsage::copy_from, true);
    void* const mapped = between ? api().BufferGetMappedRange(between.get(), 0, part) : nullptr;
    if (!mapped) throw OutOfMemoryError(fmt::format("{}: no memory to copy {} bytes from the host through", name_, part));
    read(static_cast<std::byte*>(mapped), done, part);
    api().BufferUnmap(between.get());
    copy({to, offset + done, part}, {between.get(), 0, part}, part);
    if (bytes > kCopyBytes) synchronize();  // makes the memory free again
  }
}

void Gpu::read(void* to, const Place& from, size_t bytes) {
  const OwnedBuffer between = make_buffer(std::min(bytes, kCopyBytes), BufferUsage::map_read | BufferUsage::copy_to);
  if (!between) throw OutOfMemoryError(fmt::format("{}: no memory to copy {} bytes to the host through", name_, bytes));
  for (size_t done = 0; done < bytes; done += kCopyBytes) {
    const size_t part = std::min(kCopyBytes, bytes - done);
    copy({between.get(), 0, part}, {from.buffer, from.offset + done, from.left}, part);
    flush();
    read_mapped(static_cast<std::byte*>(to) + done, between.get(), part);
  }
}

/// Once all that was submitted has run.
void Gpu::read_mapped(void* to, GpuBuffer from, size_t bytes) {
  Mapping mapping;
  MapCallbackInfo info;
  info.data1 = &mapping;
  info.callback = [](uint32_t status, StringView text, void* self, void*) { static_cast<Mapping*>(self)->finish(status, text); };
  api().BufferMapAsync(from, 1, 0, bytes, info);
  // Another thread that waits for the device may be the one that is about to call back.
  for (api().DevicePoll(device_, 1, nullptr); !mapping.is_done; api().DevicePoll(device_, 1, nullptr)) std::this_thread::yield();
  throw_error("running kernels");
  if (!mapping.works) throw DeviceError(fmt::format("{}: copying from it: {}", name_, mapping.text));
  std::memcpy(to, api().BufferGetConstMappedRange(from, 0, bytes), bytes);
  api().BufferUnmap(from);
}

void Gpu::copy(const Place& to, const Place& from, uint64_t bytes) {
  const Lock lock(mutex_);
  flush();
  const Encoder encoder = api().DeviceCreateCommandEncoder(device_, nullptr);
  api().CommandEncoderCopyBufferToBuffer(encoder, from.buffer, from.offset, to.buffer, to.offset, bytes);
  submit(encoder);
  throw_error("copying in it");
}

// Kernels.

OwnedModule Gpu::make_module(const std::string& wgsl) {
  check_alive();
  ShaderSource source;
  source.code = std::string_view(wgsl);
  const Labeled d{.next = &source.chain, .label = {}};
  const Lock lock(mutex_);
  // Kernels of users may have any index, so accesses are kept inside of their buffers. Every loop ends: it counts to a size.
  OwnedModule module(api().DeviceCreateShaderModuleTrusted(device_, &d, kBoundsChecks));
  if (const auto error = take_error()) throw CompileError(fmt::format("{}: {}\n{}", name_, error->second, wgsl));
  return module;
}

OwnedGroupLayout Gpu::make_group_layout(std::span<const BindGroupLayoutEntry> entries) {
  const BindGroupLayoutDescriptor d{.label = {}, .count = entries.size(), .entries = entries.data()};
  const Lock lock(mutex_);
  return made("the layout of a kernel's arguments", OwnedGroupLayout(api().DeviceCreateBindGroupLayout(device_, &d)));
}

OwnedLayout Gpu::make_layout(BindGroupLayout group) {
  const PipelineLayoutDescriptor d{.label = {}, .count = 1, .layouts = &group};
  const Lock lock(mutex_);
  return made("the layout of a kernel", OwnedLayout(api().DeviceCreatePipelineLayout(device_, &d)));
}

OwnedPipeline Gpu::make_pipeline(const PipelineDescriptor& descriptor) {
  check_alive();
  const Lock lock(mutex_);
  OwnedPipeline pipeline(api().DeviceCreateComputePipeline(device_, &descriptor));
  const auto error = take_error();
  if (error) throw CompileError(fmt::format("{}: kernel {}: {}", name_, descriptor.entry.str(), error->second));
  return pipeline;
}

OwnedGroup Gpu::make_group(BindGroupLayout layout, std::span<const BindGroupEntry> entries) {
  const BindGroupDescriptor d{.label = {}, .layout = layout, .count = entries.size(), .entries = entries.data()};
  const Lock lock(mutex_);
  return made("a kernel's arguments", OwnedGroup(api().DeviceCreateBindGroup(device_, &d)));
}

Place Gpu::uniforms(const void* from, size_t bytes) {
  const Lock lock(mutex_);
  const uint64_t step = (bytes + limits_.uniform_alignment - 1) / limits_.uniform_alignment * limits_.uniform_alignment;
  if (next_uniform_ + step > kUniformBytes) {
    // Writes come before what is submitted after them, so what still reads the old values goes first.
    flush();
    next_uniform_ = 0;
  }
  const uint64_t at = std::exchange(next_uniform_, next_uniform_ + step);
  api().QueueWriteBuffer(queue_, uniforms_.get(), at, from, bytes);
  return {uniforms_.get(), at, bytes};
}

void Gpu::dispatch(Pass pass, const Dispatch& d) {
  api().ComputePassEncoderSetPipeline(pass, d.pipeline);
  api().ComputePassEncoderSetBindGroup(pass, 0, d.group, 0, nullptr);
  api().ComputePassEncoderDispatchWorkgroups(pass, d.groups[0], d.groups[1], d.groups[2]);
}

void Gpu::launch(const Dispatch& d) {
  check_alive();
  const Lock lock(mutex_);
  if (queries_ && is_profiling()) {
    launch_stamped(d);
  } else {
    if (!encoder_) encoder_ = api().DeviceCreateCommandEncoder(device_, nullptr);
    if (!pass_) pass_ = api().CommandEncoderBeginComputePass(encoder_, nullptr);
    dispatch(pass_, d);
  }
  if (++recorded_ < kLaunchesAtOnce) return;
  flush();
  throw_error("running kernels");
}

double Gpu::launch_timed(const Dispatch& d) {
  synchronize();
  const Lock lock(mutex_);
  Timer timer;
  const auto start = std::chrono::steady_clock::now();
  if (queries_)
    launch_stamped(d, &timer);
  else
    launch(d);
  synchronize();
  if (!queries_) return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const DeviceSpan span = span_of(timer);
  return 1e-9 * static_cast<double>(span.end_ns - span.begin_ns);
}

void Gpu::launch_stamped(const Dispatch& d, Timer* timer) {
  const auto launch = [&] {
    const Timer made = stamped([&](Pass pass) { dispatch(pass, d); });
    if (timer) *timer = made;
    return made;
  };
  if (is_profiling())
    profile_.launch(d.name, "kernel", launch);
  else
    launch();
}

/// A pass of its own, since only passes have times.
Gpu::Timer Gpu::stamped(const std::function<void(Pass)>& record) {
  if (!stamps_) {
    auto made = std::make_shared<Stamps>();
    made->memory = make_buffer(kStamps * kStampBytes, BufferUsage::map_read | BufferUsage::copy_to);
    if (!made->memory) throw OutOfMemoryError(fmt::format("{}: no memory for the times of launches", name_));
    stamps_ = std::move(made);
  }
  end_pass();
  if (!encoder_) encoder_ = api().DeviceCreateCommandEncoder(device_, nullptr);
  const uint32_t number = stamps_->count++;
  const TimestampWrites writes{.queries = queries_, .begin = 2 * number, .end = 2 * number + 1};
  const PassDescriptor description{.label = {}, .timestamps = &writes};
  pass_ = api().CommandEncoderBeginComputePass(encoder_, &description);
  record(pass_);
  end_pass();
  return {stamps_, number};
}

DeviceSpan Gpu::span_of(const Timer& timer) {
  const Lock lock(mutex_);
  std::vector<uint64_t>& ticks = timer.stamps->ticks;
  if (ticks.empty()) {
    std::vector<uint64_t> all(size_t{2} * kStamps);
    read_mapped(all.data(), timer.stamps->memory.get(), all.size() * sizeof(uint64_t));
    ticks = std::move(all);
  }
  const double period = api().QueueGetTimestampPeriod(queue_);
  const auto ns = [&](size_t i) { return static_cast<int64_t>(static_cast<double>(ticks[i]) * period); };
  return {ns(size_t{2} * timer.number), ns(size_t{2} * timer.number + 1)};
}

/// Where something went wrong nothing is submitted, since the library ends the process for commands that it cannot run. The error is thrown
/// by whoever submits.
void Gpu::submit(Encoder encoder) {
  const CommandBuffer commands = api().CommandEncoderFinish(encoder, nullptr);
  api().CommandEncoderRelease(encoder);
  if (!has_failed()) api().QueueSubmit(queue_, 1, &commands);
  api().CommandBufferRelease(commands);
}

void Gpu::flush() {
  const Lock lock(mutex_);
  if (!encoder_) return;
  if (is_lost_) return drop_recorded();
  end_pass();
  recorded_ = 0;
  if (const auto stamps = std::exchange(stamps_, nullptr)) {
    api().CommandEncoderResolveQuerySet(encoder_, queries_, 0, 2 * stamps->count, timestamps_.get(), 0);
    api().CommandEncoderCopyBufferToBuffer(encoder_, timestamps_.get(), 0, stamps->memory.get(), 0, stamps->count * kStampBytes);
  }
  submit(std::exchange(encoder_, nullptr));
}

void Gpu::synchronize() {
  const auto launched = profile_.take();
  Timer last;
  {
    const Lock lock(mutex_);
    if (!launched.empty() && !is_lost_) last = stamped([](Pass) {});
    flush();
  }
  api().DevicePoll(device_, 1, nullptr);
  const int64_t now = profile_now_ns();
  throw_error("running kernels");
  if (last.stamps) profile_.record(launched, span_of(last).end_ns, now, [&](const Timer& t) { return std::optional(span_of(t)); });
}

}  // namespace tinygrad::runtime::webgpu
