#pragma once
/// NVIDIA's driver, opened at run time: as much of its API (cuda.h) as is used. AMD's runtime has the same functions under other names,
/// and runtime/hip/ makes a Driver of it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tinygrad::runtime::cuda {

using Result = int;
using DeviceNumber = int;
using DevicePointer = uint64_t;
using Context = struct CUctx_st*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using Graph = struct CUgraph_st*;
using GraphNode = struct CUgraphNode_st*;
using GraphExec = struct CUgraphExec_st*;

/// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNode {
  Function function;
  unsigned grid[3], group[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  Context context;
};

// Values of cuda.h's enumerations.
inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kNotReady = 600, kPeerAccessAlreadyEnabled = 704;
inline constexpr int kComputeMajor = 75, kComputeMinor = 76, kMostGroupBytes = 97;  // CUdevice_attribute
inline constexpr int kGivenGroupBytes = 8;                                          // CUfunction_attribute
inline constexpr unsigned kPortable = 1, kDeviceMapped = 2;                         // cuMemHostAlloc
inline constexpr int kOldestVersion = 12000;                                        // 12.0: graphs as they are used here

// X(function, symbol, arguments)
// clang-format off
#define TG_CUDA_FUNCTIONS(X) \
  X(init, cuInit, (unsigned)) X(driver_version, cuDriverGetVersion, (int*)) \
  X(error_name, cuGetErrorName, (Result, const char**)) X(error_string, cuGetErrorString, (Result, const char**)) \
  X(device_count, cuDeviceGetCount, (int*)) X(device_get, cuDeviceGet, (DeviceNumber*, int)) \
  X(device_attribute, cuDeviceGetAttribute, (int*, int, DeviceNumber)) \
  X(context_retain, cuDevicePrimaryCtxRetain, (Context*, DeviceNumber)) X(context_release, cuDevicePrimaryCtxRelease_v2, (DeviceNumber)) \
  X(context_set, cuCtxSetCurrent, (Context)) \
  X(stream_create, cuStreamCreate, (Stream*, unsigned)) X(stream_destroy, cuStreamDestroy_v2, (Stream)) \
  X(stream_wait, cuStreamSynchronize, (Stream)) X(stream_wait_event, cuStreamWaitEvent, (Stream, Event, unsigned)) \
  X(event_create, cuEventCreate, (Event*, unsigned)) X(event_destroy, cuEventDestroy_v2, (Event)) X(event_record, cuEventRecord, (Event, Stream)) \
  X(event_wait, cuEventSynchronize, (Event)) X(event_elapsed_ms, cuEventElapsedTime, (float*, Event, Event)) \
  X(memory_allocate, cuMemAlloc_v2, (DevicePointer*, size_t)) X(memory_free, cuMemFree_v2, (DevicePointer)) \
  X(host_allocate, cuMemHostAlloc, (void**, size_t, unsigned)) X(host_free, cuMemFreeHost, (void*)) \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, (DevicePointer, const void*, size_t, Stream)) \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, (void*, DevicePointer, size_t, Stream)) \
  X(copy_on_device, cuMemcpyDtoDAsync_v2, (DevicePointer, DevicePointer, size_t, Stream)) \
  X(copy_to_peer, cuMemcpyPeerAsync, (DevicePointer, Context, DevicePointer, Context, size_t, Stream)) \
  X(can_access_peer, cuDeviceCanAccessPeer, (int*, DeviceNumber, DeviceNumber)) X(enable_peer, cuCtxEnablePeerAccess, (Context, unsigned)) \
  X(module_load, cuModuleLoadData, (Module*, const void*)) X(module_unload, cuModuleUnload, (Module)) \
  X(module_function, cuModuleGetFunction, (Function*, Module, const char*)) \
  X(function_set, cuFuncSetAttribute, (Function, int, int)) \
  X(launch, cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**)) \
  X(graph_create, cuGraphCreate, (Graph*, unsigned)) X(graph_destroy, cuGraphDestroy, (Graph)) \
  X(graph_add_kernel, cuGraphAddKernelNode_v2, (GraphNode*, Graph, const GraphNode*, size_t, const KernelNode*)) \
  X(graph_instantiate, cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long)) \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExec)) X(graph_launch, cuGraphLaunch, (GraphExec, Stream)) \
  X(graph_set_kernel, cuGraphExecKernelNodeSetParams_v2, (GraphExec, GraphNode, const KernelNode*))
// clang-format on

/// The functions of an opened driver.
struct Driver {
#define X(function, symbol, arguments) Result(*function) arguments = nullptr;
  TG_CUDA_FUNCTIONS(X)
#undef X
  std::string name = "CUDA";  ///< for messages
  std::string library;        ///< the name that opened
  int version = 0;            ///< 12040 is 12.4

  /// Throws OutOfMemoryError or DeviceError for any other result than success: "CUDA: `what` failed: CUDA_ERROR_...: text".
  void check(Result result, std::string_view what) const;
  std::string describe(Result result) const;
};

/// The driver of the option CUDA_DRIVER_PATH, or libcuda.so.1; opened at the first use and kept. Throws DeviceError where it is missing,
/// too old, or finds no device.
const Driver& driver();

}  // namespace tinygrad::runtime::cuda
