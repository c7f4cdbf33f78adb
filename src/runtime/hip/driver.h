#pragma once
/// AMD's runtime (hip_runtime_api.h).

#include "runtime/driver/driver.h"

namespace tinygrad::runtime::hip {

// X(function, symbol, result, arguments): what only AMD's runtime has, or calls its own way.
// clang-format off
#define TG_HIP_FUNCTIONS(X) \
  X(error_name, hipGetErrorName, const char*, (Result)) X(error_string, hipGetErrorString, const char*, (Result)) \
  X(device_set, hipSetDevice, Result, (int)) X(device_enable_peer, hipDeviceEnablePeerAccess, Result, (int, unsigned)) \
  X(device_wait, hipDeviceSynchronize, Result, ()) X(module_unload, hipModuleUnload, Result, (Module)) \
  X(memory_copy_peer, hipMemcpyPeerAsync, Result, (DevicePointer, int, DevicePointer, int, size_t, Stream)) \
  X(graph_add_kernel, hipGraphAddKernelNode, Result, (GraphNode*, Graph, const GraphNode*, size_t, const HipKernelNode*)) \
  X(graph_set_kernel, hipGraphExecKernelNodeSetParams, Result, (GraphExec, GraphNode, const HipKernelNode*))
// clang-format on

using driver::Context;
using driver::DeviceNumber;
using driver::DevicePointer;
using driver::Function;
using driver::Graph;
using driver::GraphExec;
using driver::GraphNode;
using driver::Module;
using driver::Result;
using driver::Stream;

/// hipKernelNodeParams
struct HipKernelNode;

class HipDriver final : public driver::Driver {
 public:
  /// Opens libamdhip64, or the library at a path that is not empty. Throws DeviceError.
  static std::unique_ptr<HipDriver> open_library(const std::string& path);

  /// "gfx942". Throws DeviceError.
  std::string architecture(int device) const;

  std::string describe(Result result) const override;
  Opened open(int number) const override;
  void close(DeviceNumber) const override {}
  Result enter(Context context) const override;
  void give_group_bytes(DeviceNumber device, Function function, int64_t bytes, std::string_view kernel) const override;
  Result enable_peer(Context other) const override;
  Result copy_to_peer(DevicePointer to, Context device, DevicePointer from, Context other, size_t bytes, Stream stream) const override;
  Result unload(Module module) const override;
  Result add_kernel(GraphNode* made, Graph graph, const GraphNode* before, const driver::KernelNode& node) const override;
  Result set_kernel(GraphExec graph, GraphNode node, const driver::KernelNode& changed) const override;

 private:
  using Driver::Driver;

  struct Functions {
#define X(function, symbol, result, arguments) result(*function) arguments = nullptr;
    TG_HIP_FUNCTIONS(X)
#undef X
    Result (*properties)(void* properties, int device) = nullptr;
  };
  Functions own_;
};

/// The runtime of the option HIP_DRIVER_PATH, or libamdhip64; opened at the first use and kept. Throws DeviceError where it is missing, too
/// old, or finds no device.
const HipDriver& driver();

}  // namespace tinygrad::runtime::hip
