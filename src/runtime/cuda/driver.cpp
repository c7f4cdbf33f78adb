#include "runtime/cuda/driver.h"

#include <type_traits>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "base/log.h"
#include "base/options.h"

namespace tinygrad::runtime::cuda {

struct CudaKernelNode {
  Function function;
  unsigned grid[3], group[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  Context context;
};

namespace {

using driver::kSuccess;

// Values of cuda.h's enumerations.
constexpr int kComputeMajor = 75, kComputeMinor = 76, kMostGroupBytes = 97;  // CUdevice_attribute
constexpr int kGivenGroupBytes = 8;                                          // CUfunction_attribute
constexpr int kOldestVersion = 12000;                                        // 12.0: graphs as they are used here

CudaKernelNode node_of(const driver::KernelNode& n) {
  return {.function = n.function,
          .grid = {n.grid[0], n.grid[1], n.grid[2]},
          .group = {n.group[0], n.group[1], n.group[2]},
          .shared_bytes = n.group_bytes,
          .parameters = n.parameters,
          .extra = nullptr,
          .kernel = nullptr,
          .context = n.context};
}

}  // namespace

std::unique_ptr<CudaDriver> CudaDriver::open_library(const std::string& path) {
  std::string why;
  auto library = DynamicLibrary::try_open({path.empty() ? "libcuda.so.1" : path}, &why);
  if (!library)
    throw DeviceError(
        fmt::format("CUDA: no driver: {}. Install NVIDIA's driver of version 525 or newer, or set CUDA_DRIVER_PATH to its libcuda", why));
  const DynamicLibrary& kept = keep_open(std::move(*library));  // the driver has threads of its own
  std::unique_ptr<CudaDriver> d(new CudaDriver("CUDA", kept.name()));
  // What older drivers lack is told by their version, so that comes first.
  int version = 0;
  d->driver_version = kept.symbol<std::remove_pointer_t<decltype(d->driver_version)>>("cuDriverGetVersion");
  if (d->driver_version(&version) != kSuccess) throw DeviceError(fmt::format("CUDA: {} does not tell its version", d->library()));
  if (version < kOldestVersion) {
    throw DeviceError(fmt::format("CUDA: the driver {} has version {}.{}, expected {}.{} or newer; install a newer one", d->library(),
                                  version / 1000, version % 1000 / 10, kOldestVersion / 1000, kOldestVersion % 1000 / 10));
  }
#define X(function, nvidia, amd, arguments) d->function = kept.symbol<std::remove_pointer_t<decltype(d->function)>>(#nvidia);
#include "runtime/driver/functions.def"
#undef X
#define X(function, symbol_name, arguments) d->own_.function = kept.symbol<std::remove_pointer_t<decltype(d->own_.function)>>(#symbol_name);
  TG_CUDA_FUNCTIONS(X)
#undef X
  d->check(d->init(0), "starting the driver");
  int devices = 0;
  d->check(d->device_count(&devices), "counting devices");
  if (devices == 0) throw DeviceError(fmt::format("CUDA: the driver {} finds no device", d->library()));
  if (log_enabled(1)) log_line(fmt::format("opened {}, version {}", d->library(), version));
  return d;
}

std::string CudaDriver::describe(Result result) const {
  const char *symbol = nullptr, *text = nullptr;
  if (own_.error_name(result, &symbol) != kSuccess || !symbol) return fmt::format("error {}", result);
  return own_.error_string(result, &text) == kSuccess && text ? fmt::format("{}: {}", symbol, text) : symbol;
}

CudaDriver::Opened CudaDriver::open(int number) const {
  Opened opened;
  check(own_.device_get(&opened.device, number), "opening a device");
  check(own_.context_retain(&opened.context, opened.device), "opening a device");
  return opened;
}

int CudaDriver::attribute(int which, DeviceNumber device) const {
  int value = 0;
  check(own_.device_attribute(&value, which, device), "asking for an attribute");
  return value;
}

int CudaDriver::capability(DeviceNumber device) const { return attribute(kComputeMajor, device) * 10 + attribute(kComputeMinor, device); }

void CudaDriver::give_group_bytes(DeviceNumber device, Function function, int64_t bytes, std::string_view kernel) const {
  if (const int most = attribute(kMostGroupBytes, device); bytes > most)
    throw DeviceError(
        fmt::format("{}: kernel {} needs {} bytes of a group's memory, the device has {}; use smaller tiles", name(), kernel, bytes, most));
  check(own_.function_set(function, kGivenGroupBytes, static_cast<int>(bytes)),
        fmt::format("asking for {} bytes of a group's memory for kernel {}", bytes, kernel));
}

Result CudaDriver::add_kernel(GraphNode* made, Graph graph, const GraphNode* before, const driver::KernelNode& node) const {
  const CudaKernelNode converted = node_of(node);
  return own_.graph_add_kernel(made, graph, before, before ? 1 : 0, &converted);
}

Result CudaDriver::set_kernel(GraphExec graph, GraphNode node, const driver::KernelNode& changed) const {
  const CudaKernelNode converted = node_of(changed);
  return own_.graph_set_kernel(graph, node, &converted);
}

const CudaDriver& driver() {
  static auto& open = *new driver::OpenDrivers<CudaDriver>(CudaDriver::open_library);  // never destroyed: devices are not, either
  return open.at(current_options().cuda_driver_path);
}

}  // namespace tinygrad::runtime::cuda
