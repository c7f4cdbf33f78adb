#pragma once
/// NVIDIA's driver (cuda.h).

#include "runtime/driver/driver.h"

namespace tinygrad::runtime::cuda {

// X(function, symbol, arguments): what only NVIDIA's driver has, or calls its own way.
// clang-format off
#define TG_CUDA_FUNCTIONS(X) \
  X(error_name, cuGetErrorName, (Result, const char**)) X(error_string, cuGetErrorString, (Result, const char**)) \
  X(device_get, cuDeviceGet, (DeviceNumber*, int)) X(device_attribute, cuDeviceGetAttribute, (int*, int, DeviceNumber)) \
  X(context_retain, cuDevicePrimaryCtxRetain, (Context*, DeviceNumber)) X(context_release, cuDevicePrimaryCtxRelease_v2, (DeviceNumber)) \
  X(context_set, cuCtxSetCurrent, (Context)) X(context_enable_peer, cuCtxEnablePeerAccess, (Context, unsigned)) \
  X(memory_copy_peer, cuMemcpyPeerAsync, (DevicePointer, Context, DevicePointer, Context, size_t, Stream)) \
  X(module_unload, cuModuleUnload, (Module)) X(function_set, cuFuncSetAttribute, (Function, int, int)) \
  X(graph_add_kernel, cuGraphAddKernelNode_v2, (GraphNode*, Graph, const GraphNode*, size_t, const CudaKernelNode*)) \
  X(graph_set_kernel, cuGraphExecKernelNodeSetParams_v2, (GraphExec, GraphNode, const CudaKernelNode*))
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

/// CUDA_KERNEL_NODE_PARAMS_v2
struct CudaKernelNode;

class CudaDriver final : public driver::Driver {
 public:
  /// Opens libcuda.so.1, or the library at a path that is not empty. Throws DeviceError.
  static std::unique_ptr<CudaDriver> open_library(const std::string& path);

  /// The compute capability of a device: 90 is 9.0. Throws DeviceError.
  int capability(DeviceNumber device) const;

  std::string describe(Result result) const override;
  Opened open(int number) const override;
  void close(DeviceNumber device) const override { own_.context_release(device); }
  Result enter(Context context) const override { return own_.context_set(context); }
  void give_group_bytes(DeviceNumber device, Function function, int64_t bytes, std::string_view kernel) const override;
  Result enable_peer(Context other) const override { return own_.context_enable_peer(other, 0); }
  Result copy_to_peer(DevicePointer to, Context device, DevicePointer from, Context other, size_t bytes, Stream stream) const override {
    return own_.memory_copy_peer(to, device, from, other, bytes, stream);
  }
  Result unload(Module module) const override { return own_.module_unload(module); }
  Result add_kernel(GraphNode* made, Graph graph, const GraphNode* before, const driver::KernelNode& node) const override;
  Result set_kernel(GraphExec graph, GraphNode node, const driver::KernelNode& changed) const override;

 private:
  using Driver::Driver;
  int attribute(int which, DeviceNumber device) const;

  struct Functions {
#define X(function, symbol, arguments) Result(*function) arguments = nullptr;
    TG_CUDA_FUNCTIONS(X)
#undef X
  };
  Functions own_;
};

/// The driver of the option CUDA_DRIVER_PATH, or libcuda.so.1; opened at the first use and kept. Throws DeviceError where it is missing,
/// too old, or finds no device.
const CudaDriver& driver();

}  // namespace tinygrad::runtime::cuda
