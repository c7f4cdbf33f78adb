#include "runtime/hip/driver.h"

#include <type_traits>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "base/log.h"
#include "base/options.h"

namespace tinygrad::runtime::hip {

struct HipKernelNode {
  unsigned group[3];
  void** extra;
  void* function;
  unsigned grid[3];
  void** parameters;
  unsigned shared_bytes;
};

namespace {

using driver::kSuccess;

constexpr int kOldestVersion = 50000000;  // 5.0: graphs, and code objects of version 4

// HIP has devices where CUDA has contexts.
Context context_of(int device) { return reinterpret_cast<Context>(static_cast<uintptr_t>(device) + 1); }
int device_of(Context context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context) - 1); }

HipKernelNode node_of(const driver::KernelNode& n) {
  return {.group = {n.group[0], n.group[1], n.group[2]},
          .extra = nullptr,
          .function = n.function,
          .grid = {n.grid[0], n.grid[1], n.grid[2]},
          .parameters = n.parameters,
          .shared_bytes = n.group_bytes};
}

std::optional<DynamicLibrary> find_library(const std::string& path, std::string* why) {
  if (!path.empty()) return DynamicLibrary::try_open({path}, why);
  return DynamicLibrary::try_open(
      {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", "/opt/rocm/lib/libamdhip64.so"}, why);
}

}  // namespace

std::unique_ptr<HipDriver> HipDriver::open_library(const std::string& path) {
  std::string why;
  auto library = find_library(path, &why);
  if (!library)
    throw DeviceError(
        fmt::format("HIP: no runtime: {}. Install ROCm (`apt-get install libamdhip64-5`, or amdgpu-install) or set "
                    "HIP_DRIVER_PATH to its libamdhip64",
                    why));
  const DynamicLibrary& kept = keep_open(std::move(*library));  // the runtime has threads of its own
  std::unique_ptr<HipDriver> d(new HipDriver("HIP", kept.name()));
  // What older ones lack is told by their version, so that comes first.
  int version = 0;
  d->driver_version = kept.symbol<std::remove_pointer_t<decltype(d->driver_version)>>("hipRuntimeGetVersion");
  if (d->driver_version(&version) != kSuccess) throw DeviceError(fmt::format("HIP: {} does not tell its version", d->library()));
  if (version < kOldestVersion) {
    throw DeviceError(fmt::format("HIP: the runtime {} has version {}.{}, expected {}.0 or newer; install a newer ROCm", d->library(),
                                  version / 10000000, version / 100000 % 100, kOldestVersion / 10000000));
  }
#define X(function, nvidia, amd, arguments) d->function = kept.symbol<std::remove_pointer_t<decltype(d->function)>>(#amd);
#include "runtime/driver/functions.def"
#undef X
#define X(function, symbol_name, result, arguments) \
  d->own_.function = kept.symbol<std::remove_pointer_t<decltype(d->own_.function)>>(#symbol_name);
  TG_HIP_FUNCTIONS(X)
#undef X
  // Since 6.0 the one without a suffix fills in the older struct.
  d->own_.properties = kept.find<Result(void*, int)>("hipGetDevicePropertiesR0600");
  if (!d->own_.properties) d->own_.properties = kept.symbol<Result(void*, int)>("hipGetDeviceProperties");
  int devices = 0;
  const Result counted = d->init(0) == kSuccess ? d->device_count(&devices) : kSuccess;
  if (counted != kSuccess || devices == 0) throw DeviceError(fmt::format("HIP: the runtime {} finds no device", d->library()));
  if (log_enabled(1)) log_line(fmt::format("opened {}, version {}", d->library(), version));
  return d;
}

// Where the name stands in the properties differs between versions. Behind the name of the device it is what begins with "gfx".
std::string HipDriver::architecture(int device) const {
  constexpr size_t name_bytes = 256;
  std::vector<char> text(16 << 10);
  check(own_.properties(text.data(), device), "asking for the properties of a device");
  const std::string_view all(text.data(), text.size());
  const size_t at = all.find("gfx", name_bytes);
  if (at == all.npos) throw DeviceError(fmt::format("HIP:{}: the runtime does not tell the device's architecture", device));
  return std::string(all.substr(at, all.find_first_of(std::string_view(":\0", 2), at) - at));  // without ":sramecc+:xnack-"
}

std::string HipDriver::describe(Result result) const {
  const char *symbol = own_.error_name(result), *text = own_.error_string(result);
  if (!symbol) return fmt::format("error {}", result);
  return text ? fmt::format("{}: {}", symbol, text) : symbol;
}

Result HipDriver::enter(Context context) const { return own_.device_set(device_of(context)); }

HipDriver::Opened HipDriver::open(int number) const { return {.device = number, .context = context_of(number)}; }

void HipDriver::give_group_bytes(DeviceNumber, Function, int64_t, std::string_view kernel) const {
  throw DeviceError(fmt::format("{}: kernel {} does not declare all of its group's memory", name(), kernel));
}

Result HipDriver::enable_peer(Context other) const { return own_.device_enable_peer(device_of(other), 0); }

Result HipDriver::copy_to_peer(DevicePointer to, Context device, DevicePointer from, Context other, size_t bytes, Stream stream) const {
  return own_.memory_copy_peer(to, device_of(device), from, device_of(other), bytes, stream);
}

// The runtime does not wait for kernels of the module.
Result HipDriver::unload(Module module) const {
  const Result waited = own_.device_wait(), unloaded = own_.module_unload(module);
  return waited ? waited : unloaded;
}

Result HipDriver::add_kernel(GraphNode* made, Graph graph, const GraphNode* before, const driver::KernelNode& node) const {
  const HipKernelNode converted = node_of(node);
  return own_.graph_add_kernel(made, graph, before, before ? 1 : 0, &converted);
}

Result HipDriver::set_kernel(GraphExec graph, GraphNode node, const driver::KernelNode& changed) const {
  const HipKernelNode converted = node_of(changed);
  return own_.graph_set_kernel(graph, node, &converted);
}

const HipDriver& driver() {
  static auto& open = *new driver::OpenDrivers<HipDriver>(HipDriver::open_library);  // never destroyed: devices are not, either
  return open.at(current_options().hip_driver_path);
}

}  // namespace tinygrad::runtime::hip
