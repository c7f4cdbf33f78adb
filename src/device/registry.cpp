#include "device/registry.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/log.h"
#include "base/options.h"
#include "base/profile.h"
#include "comm/group.h"
#include "device/launch_log.h"
#include "device/rank_device.h"

namespace tinygrad {
namespace {

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

std::unique_ptr<Device> open_of_other_rank(const DeviceChoice& choice) {
  if (*choice.rank >= comm::group().size())
    throw DeviceError(fmt::format(
        "{}: there {} here; `mpirun -n {}` or more starts it", choice.canonical(),
        comm::group().size() == 1 ? std::string("is one rank") : fmt::format("are {} ranks", comm::group().size()), *choice.rank + 1));
  DeviceChoice mine = choice;
  mine.rank.reset();
  return std::make_unique<RankDevice>(choice.canonical(), find_device(mine.canonical()));
}

}  // namespace

Symbol canonical_name(std::string_view name) {
  const DeviceChoice choice = DeviceChoice::parse(name);
  find_backend(backends(), choice);
  return Symbol(choice.canonical());
}

Device& find_device(std::string_view name) {
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
    entry->device = choice.rank && *choice.rank != comm::group().rank() ? open_of_other_rank(choice) : backend.open(choice);
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

Symbol default_device_name() {
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
