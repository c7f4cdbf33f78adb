#pragma once
/// What is used of the OpenCL 1.2 API, declared here so that nothing must be installed to build: names, types and numbers are those of
/// Khronos' CL/cl.h.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tinygrad::runtime::cl {

using Platform = struct PlatformId*;
using DeviceId = struct DeviceIdTag*;
using Context = struct ContextTag*;
using Queue = struct QueueTag*;
using Memory = struct MemoryTag*;
using ProgramId = struct ProgramTag*;
using KernelId = struct KernelTag*;
using Event = struct EventTag*;
using Properties = intptr_t;
/// cl_image_format and cl_image_desc.
struct ImageFormat {
  uint32_t order = 0, type = 0;
};
struct ImageDescription {
  uint32_t type = 0;
  size_t width = 0, height = 0, depth = 0, array_size = 0, row_pitch = 0, slice_pitch = 0;
  uint32_t mip_levels = 0, samples = 0;
  Memory buffer = nullptr;
};
using Notify = void (*)(const char* what, const void* data, size_t size, void* user);

enum Error : int32_t {
  success = 0,
  mem_object_allocation_failure = -4,
  out_of_resources = -5,
  out_of_host_memory = -6,
  build_program_failure = -11,
  invalid_work_group_size = -54,
  invalid_buffer_size = -61,
};

constexpr uint32_t device_max_work_group_size = 0x1004, device_max_parameter_size = 0x1017, device_single_fp_config = 0x101B,
                   device_global_mem_cache_size = 0x101E, device_local_mem_size = 0x1023, device_name = 0x102B, driver_version = 0x102D,
                   device_version = 0x102F, device_extensions = 0x1030, device_double_fp_config = 0x1032;
constexpr uint32_t device_image_width = 0x1011, device_image_height = 0x1012, device_image_support = 0x1016, device_image_pitch = 0x104A;
constexpr uint32_t image_rgba = 0x10B5, image_half = 0x10DD, image_float = 0x10DE, image_2d = 0x10F1;
constexpr uint64_t device_type_all = 0xFFFFFFFF, correctly_rounded_divide_sqrt = 1 << 7;
constexpr uint64_t queue_profiling_enable = 1 << 1, mem_read_write = 1 << 0, map_write_invalidate_region = 1 << 2;
constexpr uint32_t program_binary_sizes = 0x1165, program_binaries = 0x1166, program_build_log = 0x1183;
constexpr uint32_t profiling_command_start = 0x1282, profiling_command_end = 0x1283, event_command_execution_status = 0x11D3;
constexpr uint32_t kernel_work_group_size = 0x11B0;

// clang-format off
#define TG_CL_FUNCTIONS(X) \
  X(int32_t, GetPlatformIDs, (uint32_t, Platform*, uint32_t*)) \
  X(int32_t, GetDeviceIDs, (Platform, uint64_t, uint32_t, DeviceId*, uint32_t*)) \
  X(int32_t, GetDeviceInfo, (DeviceId, uint32_t, size_t, void*, size_t*)) \
  X(Context, CreateContext, (const Properties*, uint32_t, const DeviceId*, Notify, void*, int32_t*)) \
  X(int32_t, ReleaseContext, (Context)) \
  X(Queue, CreateCommandQueue, (Context, DeviceId, uint64_t, int32_t*)) \
  X(Memory, CreateBuffer, (Context, uint64_t, size_t, void*, int32_t*)) \
  X(int32_t, ReleaseMemObject, (Memory)) \
  X(Memory, CreateImage, (Context, uint64_t, const ImageFormat*, const ImageDescription*, void*, int32_t*)) \
  X(ProgramId, CreateProgramWithSource, (Context, uint32_t, const char**, const size_t*, int32_t*)) \
  X(ProgramId, CreateProgramWithBinary, (Context, uint32_t, const DeviceId*, const size_t*, const unsigned char**, int32_t*, int32_t*)) \
  X(int32_t, BuildProgram, (ProgramId, uint32_t, const DeviceId*, const char*, void (*)(ProgramId, void*), void*)) \
  X(int32_t, GetProgramInfo, (ProgramId, uint32_t, size_t, void*, size_t*)) \
  X(int32_t, GetProgramBuildInfo, (ProgramId, DeviceId, uint32_t, size_t, void*, size_t*)) \
  X(int32_t, ReleaseProgram, (ProgramId)) \
  X(KernelId, CreateKernel, (ProgramId, const char*, int32_t*)) \
  X(int32_t, SetKernelArg, (KernelId, uint32_t, size_t, const void*)) \
  X(int32_t, GetKernelWorkGroupInfo, (KernelId, DeviceId, uint32_t, size_t, void*, size_t*)) \
  X(int32_t, ReleaseKernel, (KernelId)) \
  X(int32_t, EnqueueNDRangeKernel, (Queue, KernelId, uint32_t, const size_t*, const size_t*, const size_t*, uint32_t, const Event*, Event*)) \
  X(int32_t, EnqueueReadBuffer, (Queue, Memory, uint32_t, size_t, size_t, void*, uint32_t, const Event*, Event*)) \
  X(int32_t, EnqueueWriteBuffer, (Queue, Memory, uint32_t, size_t, size_t, const void*, uint32_t, const Event*, Event*)) \
  X(void*, EnqueueMapBuffer, (Queue, Memory, uint32_t, uint64_t, size_t, size_t, uint32_t, const Event*, Event*, int32_t*)) \
  X(int32_t, EnqueueUnmapMemObject, (Queue, Memory, void*, uint32_t, const Event*, Event*)) \
  X(int32_t, EnqueueCopyBuffer, (Queue, Memory, Memory, size_t, size_t, size_t, uint32_t, const Event*, Event*)) \
  X(int32_t, EnqueueCopyBufferToImage, (Queue, Memory, Memory, size_t, const size_t*, const size_t*, uint32_t, const Event*, Event*)) \
  X(int32_t, EnqueueCopyImageToBuffer, (Queue, Memory, Memory, const size_t*, const size_t*, size_t, uint32_t, const Event*, Event*)) \
  X(int32_t, EnqueueMarkerWithWaitList, (Queue, uint32_t, const Event*, Event*)) \
  X(int32_t, WaitForEvents, (uint32_t, const Event*)) \
  X(int32_t, GetEventInfo, (Event, uint32_t, size_t, void*, size_t*)) \
  X(int32_t, GetEventProfilingInfo, (Event, uint32_t, size_t, void*, size_t*)) \
  X(int32_t, RetainEvent, (Event)) \
  X(int32_t, ReleaseEvent, (Event)) \
  X(int32_t, Flush, (Queue)) \
  X(int32_t, Finish, (Queue))
// clang-format on

/// The functions of a loader of OpenCL platforms, opened at run time.
struct Api {
#define X(result, name, arguments) result(*name) arguments = nullptr;  // NOLINT(readability-identifier-naming): OpenCL's names
  TG_CL_FUNCTIONS(X)
#undef X
};

/// Opened once, as the option OPENCL_PATH has it. Throws DeviceError saying what was tried and what to install.
const Api& api();

/// The devices of all platforms that have OpenCL 1.2 or newer, in their order. Throws DeviceError, saying what to install, where there is
/// none.
std::vector<DeviceId> find_devices();

/// "CL_OUT_OF_RESOURCES (-5)"
std::string error_name(int32_t code);
/// Throws OutOfMemoryError or DeviceError for anything but success; `what` was being done, on the device.
void check(int32_t code, const std::string& device, std::string_view what);

/// A number or a text that OpenCL tells of a device.
template <class T>
T device_number(DeviceId id, uint32_t what) {
  T value{};
  return api().GetDeviceInfo(id, what, sizeof(value), &value, nullptr) == success ? value : T{};
}
std::string device_text(DeviceId id, uint32_t what);

}  // namespace tinygrad::runtime::cl
