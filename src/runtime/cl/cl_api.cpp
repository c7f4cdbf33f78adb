#include "runtime/cl/cl_api.h"

#include <cstdio>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/dylib.h"
#include "base/options.h"

namespace tinygrad::runtime::cl {
namespace {

constexpr std::string_view kInstall =
    "install an OpenCL loader and a driver: on Debian `apt-get install ocl-icd-libopencl1` with `pocl-opencl-icd` for the CPU, "
    "`mesa-opencl-icd` or `intel-opencl-icd` for GPUs, or the GPU vendor's own, and set OPENCL_PATH if the loader is elsewhere";

Api open_api(const std::string& path) {
  std::string why;
  auto library = !path.empty()
                     ? DynamicLibrary::try_open({path}, &why)
                     : DynamicLibrary::try_open(
                           {"libOpenCL.so.1", "libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL", "OpenCL.dll"}, &why);
  if (!library) throw DeviceError(fmt::format("CL: no OpenCL here: {}; {}", why, kInstall));
  const DynamicLibrary& kept = keep_open(std::move(*library));  // drivers have threads of their own
  Api api;
#define X(result, name, arguments) api.name = kept.symbol<result arguments>("cl" #name);
  TG_CL_FUNCTIONS(X)
#undef X
  return api;
}

struct NamedError {
  int32_t code;
  std::string_view name;
};
constexpr NamedError kErrors[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {mem_object_allocation_failure, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {out_of_resources, "CL_OUT_OF_RESOURCES"},
    {out_of_host_memory, "CL_OUT_OF_HOST_MEMORY"},
    {build_program_failure, "CL_BUILD_PROGRAM_FAILURE"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, "CL_INVALID_VALUE"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {invalid_work_group_size, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {invalid_buffer_size, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

}  // namespace

const Api& api() {
  static const Api opened = open_api(current_options().opencl_path);
  return opened;
}

namespace {

/// "OpenCL 3.0 and what the driver likes to say"
bool is_new_enough(DeviceId id) {
  int major = 0, minor = 0;
  return std::sscanf(device_text(id, device_version).c_str(), "OpenCL %d.%d", &major, &minor) == 2 &&
         std::pair(major, minor) >= std::pair(1, 2);
}

}  // namespace

std::vector<DeviceId> find_devices() {
  uint32_t count = 0;
  if (api().GetPlatformIDs(0, nullptr, &count) != success || count == 0) {
    throw DeviceError(fmt::format("CL: OpenCL finds no driver; {}", kInstall));
  }
  std::vector<Platform> platforms(count);
  check(api().GetPlatformIDs(count, platforms.data(), nullptr), "CL", "asking for platforms");
  std::vector<DeviceId> found;
  for (Platform platform : platforms) {
    uint32_t devices = 0;
    if (api().GetDeviceIDs(platform, device_type_all, 0, nullptr, &devices) != success || devices == 0) continue;
    std::vector<DeviceId> ids(devices);
    check(api().GetDeviceIDs(platform, device_type_all, devices, ids.data(), nullptr), "CL", "asking for devices");
    found.insert(found.end(), ids.begin(), ids.end());
  }
  if (found.empty()) throw DeviceError(fmt::format("CL: the OpenCL drivers find no device; {}", kInstall));
  const DeviceId first = found[0];
  std::erase_if(found, [](DeviceId id) { return !is_new_enough(id); });
  if (found.empty()) {
    throw DeviceError(fmt::format("CL: {} has {}, expected OpenCL 1.2 or newer; install a newer driver", device_text(first, device_name),
                                  device_text(first, device_version)));
  }
  return found;
}

std::string error_name(int32_t code) {
  for (const NamedError& e : kErrors)
    if (e.code == code) return fmt::format("{} ({})", e.name, code);
  return fmt::format("error {}", code);
}

void check(int32_t code, const std::string& device, std::string_view what) {
  if (code == success) return;
  if (code == mem_object_allocation_failure || code == out_of_host_memory) {
    throw OutOfMemoryError(
        fmt::format("{}: out of memory while {}: {}; free tensors or work on less at a time", device, what, error_name(code)));
  }
  throw DeviceError(fmt::format("{}: {} failed: {}", device, what, error_name(code)));
}

std::string device_text(DeviceId id, uint32_t what) {
  size_t size = 0;
  if (api().GetDeviceInfo(id, what, 0, nullptr, &size) != success || size == 0) return {};
  std::string text(size, '\0');
  if (api().GetDeviceInfo(id, what, size, text.data(), nullptr) != success) return {};
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

}  // namespace tinygrad::runtime::cl
