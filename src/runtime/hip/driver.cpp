#include "runtime/hip/driver.h"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "base/log.h"
#include "base/options.h"

namespace tinygrad::runtime::hip {
namespace {

using cuda::Context;
using cuda::DeviceNumber;
using cuda::DevicePointer;
using cuda::Driver;
using cuda::GraphExec;
using cuda::GraphNode;
using cuda::KernelNode;
using cuda::kSuccess;
using cuda::Result;
using cuda::Stream;

constexpr int kOldestVersion = 50000000;  // 5.0: graphs, and code objects of version 4
constexpr Result kNotSupported = 801;

/// hipKernelNodeParams
struct HipKernelNode {
  unsigned group[3];
  void** extra;
  void* function;
  unsigned grid[3];
  void** parameters;
  unsigned shared_bytes;
};

// X(member of Driver, name): functions that are called alike.
// clang-format off
#define TG_HIP_SAME(X) \
  X(init, hipInit) X(driver_version, hipRuntimeGetVersion) X(device_count, hipGetDeviceCount) X(stream_create, hipStreamCreateWithFlags) \
  X(stream_destroy, hipStreamDestroy) X(stream_wait, hipStreamSynchronize) X(stream_wait_event, hipStreamWaitEvent) \
  X(event_create, hipEventCreateWithFlags) X(event_destroy, hipEventDestroy) X(event_record, hipEventRecord) X(event_wait, hipEventSynchronize) \
  X(event_elapsed_ms, hipEventElapsedTime) X(memory_allocate, hipMalloc) X(memory_free, hipFree) X(host_allocate, hipHostMalloc) \
  X(host_free, hipHostFree) X(copy_to_device, hipMemcpyHtoDAsync) X(copy_to_host, hipMemcpyDtoHAsync) X(copy_on_device, hipMemcpyDtoDAsync) \
  X(can_access_peer, hipDeviceCanAccessPeer) X(module_load, hipModuleLoadData) X(module_function, hipModuleGetFunction) \
  X(launch, hipModuleLaunchKernel) X(graph_create, hipGraphCreate) X(graph_destroy, hipGraphDestroy) \
  X(graph_instantiate, hipGraphInstantiateWithFlags) X(graph_exec_destroy, hipGraphExecDestroy) X(graph_launch, hipGraphLaunch)

// X(name, arguments): functions that are called otherwise.
#define TG_HIP_OTHER(X) \
  X(hipGetErrorName, const char*, (Result)) X(hipGetErrorString, const char*, (Result)) X(hipSetDevice, Result, (int)) \
  X(hipDeviceEnablePeerAccess, Result, (int, unsigned)) X(hipDeviceSynchronize, Result, ()) X(hipModuleUnload, Result, (cuda::Module)) \
  X(hipMemcpyPeerAsync, Result, (DevicePointer, int, DevicePointer, int, size_t, Stream)) \
  X(hipGraphAddKernelNode, Result, (GraphNode*, cuda::Graph, const GraphNode*, size_t, const HipKernelNode*)) \
  X(hipGraphExecKernelNodeSetParams, Result, (GraphExec, GraphNode, const HipKernelNode*))
// clang-format on

struct Other {
#define X(name, result, arguments) result(*name) arguments = nullptr;  // NOLINT(readability-identifier-naming): HIP's names
  TG_HIP_OTHER(X)
#undef X
  Result (*properties)(void* properties, int device) = nullptr;
};

/// What the functions below call: those of the library that was opened last. A process has one HIP.
std::atomic<const Other*> opened{nullptr};
const Other& hip() { return *opened.load(std::memory_order_acquire); }

// HIP has devices where CUDA has contexts.
Context context_of(int device) { return reinterpret_cast<Context>(static_cast<uintptr_t>(device) + 1); }
int device_of(Context context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context) - 1); }

HipKernelNode node_of(const KernelNode& n) {
  return {.group = {n.group[0], n.group[1], n.group[2]},
          .extra = n.extra,
          .function = n.function,
          .grid = {n.grid[0], n.grid[1], n.grid[2]},
          .parameters = n.parameters,
          .shared_bytes = n.shared_bytes};
}

void set_others(Driver& d) {
  d.error_name = [](Result error, const char** text) -> Result { return *text = hip().hipGetErrorName(error), kSuccess; };
  d.error_string = [](Result error, const char** text) -> Result { return *text = hip().hipGetErrorString(error), kSuccess; };
  d.device_get = [](DeviceNumber* device, int number) -> Result { return *device = number, kSuccess; };
  d.device_attribute = [](int*, int, DeviceNumber) -> Result { return kNotSupported; };  // they have other numbers
  d.function_set = [](cuda::Function, int, int) -> Result { return kNotSupported; };     // kernels declare all of a group's memory
  d.context_retain = [](Context* context, DeviceNumber device) -> Result { return *context = context_of(device), kSuccess; };
  d.context_release = [](DeviceNumber) -> Result { return kSuccess; };
  d.context_set = [](Context context) -> Result { return hip().hipSetDevice(device_of(context)); };
  d.copy_to_peer = [](DevicePointer to, Context device, DevicePointer from, Context other, size_t bytes, Stream stream) -> Result {
    return hip().hipMemcpyPeerAsync(to, device_of(device), from, device_of(other), bytes, stream);
  };
  d.enable_peer = [](Context other, unsigned flags) -> Result { return hip().hipDeviceEnablePeerAccess(device_of(other), flags); };
  // It does not wait for kernels of the module.
  d.module_unload = [](cuda::Module module) -> Result {
    const Result waited = hip().hipDeviceSynchronize(), unloaded = hip().hipModuleUnload(module);
    return waited ? waited : unloaded;
  };
  d.graph_add_kernel = [](GraphNode* made, cuda::Graph graph, const GraphNode* before, size_t count, const KernelNode* node) -> Result {
    const HipKernelNode converted = node_of(*node);
    return hip().hipGraphAddKernelNode(made, graph, before, count, &converted);
  };
  d.graph_set_kernel = [](GraphExec graph, GraphNode node, const KernelNode* changed) -> Result {
    const HipKernelNode converted = node_of(*changed);
    return hip().hipGraphExecKernelNodeSetParams(graph, node, &converted);
  };
}

std::optional<DynamicLibrary> open_library(const std::string& path, std::string* why) {
  if (!path.empty()) return DynamicLibrary::try_open({path}, why);
  return DynamicLibrary::try_open(
      {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", "/opt/rocm/lib/libamdhip64.so"}, why);
}

Driver open_driver(const std::string& path) {
  std::string why;
  auto library = open_library(path, &why);
  if (!library)
    throw DeviceError(
        fmt::format("HIP: no runtime: {}. Install ROCm (`apt-get install libamdhip64-5`, or amdgpu-install) or set "
                    "HIP_DRIVER_PATH to its libamdhip64",
                    why));
  const DynamicLibrary& kept = keep_open(std::move(*library));  // the runtime has threads of its own
  Driver d;
  d.name = "HIP";
  d.library = kept.name();
  // What older ones lack is told by their version, so that comes first.
  d.driver_version = kept.symbol<std::remove_pointer_t<decltype(d.driver_version)>>("hipRuntimeGetVersion");
  if (d.driver_version(&d.version) != kSuccess) throw DeviceError(fmt::format("HIP: {} does not tell its version", d.library));
  if (d.version < kOldestVersion) {
    throw DeviceError(fmt::format("HIP: the runtime {} has version {}.{}, expected {}.0 or newer; install a newer ROCm", d.library,
                                  d.version / 10000000, d.version / 100000 % 100, kOldestVersion / 10000000));
  }
#define X(member, name) d.member = kept.symbol<std::remove_pointer_t<decltype(d.member)>>(#name);
  TG_HIP_SAME(X)
#undef X
  auto other = std::make_unique<Other>();
#define X(name, result, arguments) other->name = kept.symbol<std::remove_pointer_t<decltype(other->name)>>(#name);
  TG_HIP_OTHER(X)
#undef X
  // Since 6.0 the one without a suffix fills in the older struct.
  other->properties = kept.find<Result(void*, int)>("hipGetDevicePropertiesR0600");
  if (!other->properties) other->properties = kept.symbol<Result(void*, int)>("hipGetDeviceProperties");
  int devices = 0;
  const Result counted = d.init(0) == kSuccess ? d.device_count(&devices) : kSuccess;
  if (counted != kSuccess || devices == 0) throw DeviceError(fmt::format("HIP: the runtime {} finds no device", d.library));
  set_others(d);
  static auto& kept_others = *new std::vector<std::unique_ptr<Other>>;  // under the lock of drivers()
  opened.store(kept_others.emplace_back(std::move(other)).get(), std::memory_order_release);
  if (log_enabled(1)) log_line(fmt::format("opened {}, version {}", d.library, d.version));
  return d;
}

struct OpenDrivers {
  std::mutex mutex;
  std::map<std::string, Driver> by_path;
};

// Never destroyed: devices are not, either.
OpenDrivers& drivers() {
  static OpenDrivers& d = *new OpenDrivers;
  return d;
}

}  // namespace

const Driver& driver() {
  const std::string& path = current_options().hip_driver_path;
  std::lock_guard lock(drivers().mutex);
  auto found = drivers().by_path.find(path);
  if (found == drivers().by_path.end()) found = drivers().by_path.emplace(path, open_driver(path)).first;
  return found->second;
}

// Where the name stands in the properties differs between versions. Behind the name of the device it is what begins with "gfx".
std::string architecture(int device) {
  constexpr size_t name_bytes = 256;
  std::vector<char> properties(16 << 10);
  driver().check(hip().properties(properties.data(), device), "asking for the properties of a device");
  const std::string_view all(properties.data(), properties.size());
  const size_t at = all.find("gfx", name_bytes);
  if (at == all.npos) throw DeviceError(fmt::format("HIP:{}: the runtime does not tell the device's architecture", device));
  return std::string(all.substr(at, all.find_first_of(std::string_view(":\0", 2), at) - at));  // without ":sramecc+:xnack-"
}

}  // namespace tinygrad::runtime::hip
