#include "device/device.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <map>
#include <mutex>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "base/profile.h"
#include "device/launch_log.h"

namespace tinygrad {
namespace {

constexpr std::string_view kFiles = "DISK", kSharedMemory = "shm:";

struct OpenDevice {
  std::mutex mutex;
  std::unique_ptr<Device> device;
};

/// The first backend that works, and all options that its search for drivers follows: loading them again would take longer than making a
/// tensor.
struct Preference {
  std::string cuda_driver_path, hip_driver_path;
  Symbol device;

  bool holds(const Options& o) const { return cuda_driver_path == o.cuda_driver_path && hip_driver_path == o.hip_driver_path; }
};

struct Registry {
  std::mutex mutex;
  std::vector<Backend> backends;
  std::deque<Preference> preferences;                 // all that were asked for
  std::atomic<const Preference*> preferred{nullptr};  // the latest of them
  std::map<DeviceChoice, OpenDevice> devices;
};

// Never destroyed: buffers of global tensors are freed late.
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::vector<Backend> backends() {
  std::lock_guard lock(registry().mutex);
  return registry().backends;
}

void check_renderer(const Backend& backend, const DeviceChoice& choice) {
  std::string names;
  for (const CodePath& c : backend.code_paths) {
    if (c.renderer == choice.renderer) return;
    if (c.arch.empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", c.renderer);
  }
  throw DeviceError(fmt::format("{}: unknown renderer '{}'; known are {}. A device is NAME[:INDEX]; the option DEV picks its renderer",
                                backend.name, choice.renderer, names.empty() ? "none" : names));
}

const Backend& find_backend(const std::vector<Backend>& known, const DeviceChoice& choice) {
  std::string names;
  for (const Backend& b : known) {
    if (b.name == choice.name) {
      if (!choice.renderer.empty()) check_renderer(b, choice);
      return b;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", b.name);
  }
  throw DeviceError(fmt::format("unknown device '{}'; known are {}", choice.canonical(), names.empty() ? "none" : names));
}

std::vector<OpenDevice*> all_devices() {
  const std::lock_guard lock(registry().mutex);
  std::vector<OpenDevice*> all;
  for (auto& [choice, entry] : registry().devices) all.push_back(&entry);
  return all;
}

/// A device that fails here says so again where what it lost is read.
void collect_profile() {
  for (OpenDevice* entry : all_devices()) {
    const std::lock_guard opening(entry->mutex);
    if (entry->device && entry->device->records_profile()) try {
        entry->device->wait();
      } catch (const std::exception&) {}
  }
}

/// The device's renderer and architecture as DEV has them.
DeviceChoice with_option(DeviceChoice choice) {
  const std::string& dev = current_options().dev;
  if (dev.empty()) return choice;
  DeviceChoice wanted = DeviceChoice::parse(dev);
  if (wanted.name != choice.name) return choice;
  choice.renderer = wanted.renderer;
  choice.arch = wanted.arch;
  return choice;
}

}  // namespace

Kernel::~Kernel() = default;
Graph::~Graph() = default;

Device::Device(std::string_view name, const Target& target, std::unique_ptr<Allocator> allocator, const CodePath& code)
    : name_(name), target_(target), code_(code), allocator_(std::move(allocator)), launches_(std::make_unique<LaunchLog>()) {}
Device::~Device() = default;

const CodePath& Device::code_path() const {
  if (!code_.render)
    throw DeviceError(fmt::format("{}: it only holds data; copy that to a device that computes, with to(\"CPU\")", name_.str()));
  return code_;
}

std::string Device::compile(const std::string& source) const {
  const CodePath& code = code_path();
  return code.compile ? code.compile(target_, source) : source;
}

std::string Device::disassemble(const std::string& binary) const {
  return code_.disassemble ? code_.disassemble(target_, binary) : std::string();
}

std::unique_ptr<Graph> Device::make_graph(std::span<const GraphLaunch>) { return nullptr; }

void Device::wait() {
  if (is_async()) launches_->add_wait();
  const uint64_t mark = launches_->mark();
  try {
    synchronize();
  } catch (const std::exception& e) {
    launches_->failed(e.what());
    throw;
  }
  launches_->passed(mark);
}

DeviceChoice DeviceChoice::parse(std::string_view text) {
  if (const size_t colon = text.find(':'); colon != 0 && colon != text.npos && colon + 1 < text.size()) {
    DeviceChoice choice;
    choice.name = upper(text.substr(0, colon));
    if (choice.name == kFiles || text[colon + 1] == '/' || text[colon + 1] == '.') {
      choice.path = text.substr(colon + 1);
      // One file has one name, wherever the process is.
      if (choice.name == kFiles && !choice.path.starts_with(kSharedMemory)) choice.path = absolute_path(choice.path);
      return choice;
    }
  }
  std::vector<std::string_view> parts;
  for (std::string_view rest = text;;) {
    const size_t colon = rest.find(':');
    parts.push_back(rest.substr(0, colon));
    if (colon == rest.npos) break;
    rest.remove_prefix(colon + 1);
  }
  const auto empty = [](std::string_view part) { return part.empty(); };
  DeviceChoice choice;
  size_t next = 1;
  if (parts.size() > 1 && !parts[1].empty()) {
    const char* end = parts[1].data() + parts[1].size();
    const auto [stop, error] = std::from_chars(parts[1].data(), end, choice.index);
    if (error == std::errc() && stop == end) next = 2;
  }
  if (parts.size() > next + 2 || choice.index < 0 || std::any_of(parts.begin(), parts.end(), empty)) {
    throw DeviceError(fmt::format("device '{}': expected NAME[:INDEX][:RENDERER[:ARCH]], such as CPU, CUDA:1 or CPU:LLVM:x86-64-v3", text));
  }
  choice.name = upper(parts[0]);
  if (parts.size() > next) choice.renderer = upper(parts[next]);
  if (parts.size() > next + 1) choice.arch = parts[next + 1];
  return choice;
}

std::string DeviceChoice::canonical() const {
  if (!path.empty()) return fmt::format("{}:{}", name, path);
  return index == 0 ? name : fmt::format("{}:{}", name, index);
}

Symbol Device::canonical(std::string_view name) {
  const DeviceChoice choice = DeviceChoice::parse(name);
  find_backend(backends(), choice);
  return Symbol(choice.canonical());
}

Device& Device::get(std::string_view name) {
  DeviceChoice choice = with_option(DeviceChoice::parse(name));
  Registry& r = registry();
  OpenDevice* entry = nullptr;
  Backend backend;
  {
    std::lock_guard lock(r.mutex);
    backend = find_backend(r.backends, choice);
    entry = &r.devices[choice];  // a map's elements stay where they are
  }
  // Opening may take long or throw; the next call then tries again.
  const std::lock_guard opening(entry->mutex);
  if (!entry->device) {
    entry->device = backend.open(choice);
    if (entry->device->records_profile()) set_profile_collector(collect_profile);
    if (log_enabled(1)) log_line(fmt::format("opened device {} ({})", choice.canonical(), entry->device->target().name()));
  }
  return *entry->device;
}

void register_backends(std::span<const Backend> added) {
  std::lock_guard lock(registry().mutex);
  std::vector<Backend>& known = registry().backends;
  for (const Backend& b : added) {
    if (std::none_of(known.begin(), known.end(), [&](const Backend& k) { return k.name == b.name; })) known.push_back(b);
  }
}

namespace {

/// Asks each backend in turn.
Symbol find_preferred() {
  std::string reasons;
  for (const Backend& b : backends()) {
    if (!b.may_be_default) continue;
    const std::string reason = b.unavailable();
    if (reason.empty()) return b.name;
    reasons += fmt::format("\n  {}: {}", b.name, reason);
  }
  throw DeviceError("no device works here:" + reasons);
}

}  // namespace

std::vector<DeviceStatus> registered_devices() {
  std::vector<DeviceStatus> out;
  const auto add = [&](std::string name, std::string reason) {
    const bool works = reason.empty();
    out.push_back({.name = std::move(name), .works = works, .reason = std::move(reason)});
  };
  for (const Backend& b : backends()) {
    std::string unavailable = b.unavailable();
    if (const std::string prefix = fmt::format("{}: ", b.name); unavailable.starts_with(prefix)) unavailable.erase(0, prefix.size());
    const auto reason = [&](const CodePath& c) { return unavailable.empty() && c.missing_compiler ? c.missing_compiler() : unavailable; };
    add(std::string(b.name), b.code_paths.empty() ? unavailable : reason(b.code_paths[0]));
    for (size_t i = 1; i < b.code_paths.size(); ++i) {
      const CodePath& c = b.code_paths[i];
      add(fmt::format("{}:{}{}{}", b.name, c.renderer, c.arch.empty() ? "" : ":", c.arch), reason(c));
    }
  }
  return out;
}

DeviceStatistics statistics_of(Device& device) {
  const Allocator& a = device.allocator();
  return {.name = std::string(device.name().str()),
          .target = device.target().name(),
          .in_use = a.bytes_in_use(),
          .peak = a.peak_bytes(),
          .cached = a.bytes_cached(),
          .kernels = device.launches().kernels(),
          .waits = device.launches().waits()};
}

std::vector<DeviceStatistics> opened_devices() {
  std::vector<DeviceStatistics> out;
  for (OpenDevice* entry : all_devices()) {
    const std::lock_guard opening(entry->mutex);
    if (entry->device) out.push_back(statistics_of(*entry->device));
  }
  return out;
}

Symbol Device::default_name() {
  const Options& options = current_options();
  if (!options.dev.empty()) {
    const DeviceChoice choice = DeviceChoice::parse(options.dev);
    find_backend(backends(), choice);
    return Symbol(choice.canonical());
  }
  // What works stays so, and backends that are registered later come behind.
  Registry& r = registry();
  const auto holds = [&](const Preference& p) { return p.holds(options); };
  if (const Preference* latest = r.preferred.load(std::memory_order_acquire); latest && holds(*latest)) return latest->device;
  const auto known = [&]() -> const Preference* {
    const auto found = std::ranges::find_if(r.preferences, holds);
    return found == r.preferences.end() ? nullptr : &*found;
  };
  std::unique_lock lock(r.mutex);
  const Preference* p = known();
  if (!p) {
    lock.unlock();  // drivers may take long, or throw
    const Symbol device = find_preferred();
    lock.lock();
    p = known();
    if (!p) p = &r.preferences.emplace_back(options.cuda_driver_path, options.hip_driver_path, device);
  }
  r.preferred.store(p, std::memory_order_release);
  return p->device;
}

}  // namespace tinygrad
