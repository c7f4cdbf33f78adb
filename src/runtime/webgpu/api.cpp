#include "runtime/webgpu/api.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/options.h"

namespace tinygrad::runtime::webgpu {

// The layouts of the headers, on the 64-bit systems that wgpu-native is built for.
static_assert(sizeof(void*) != 8 ||
              (sizeof(InstanceExtras) == 112 && sizeof(InstanceDescriptor) == 32 && sizeof(EnumerateOptions) == 16 &&
               sizeof(AdapterInfo) == 96 && sizeof(Limits) == 152 && sizeof(MapCallbackInfo) == 40 && sizeof(ErrorCallbackInfo) == 32 &&
               sizeof(DeviceDescriptor) == 144 && sizeof(BufferDescriptor) == 48 && sizeof(ShaderSource) == 32 && sizeof(Labeled) == 24 &&
               sizeof(BindGroupLayoutEntry) == 120 && sizeof(BindGroupLayoutDescriptor) == 40 && sizeof(PipelineLayoutDescriptor) == 48 &&
               sizeof(Constant) == 32 && sizeof(PipelineDescriptor) == 80 && sizeof(BindGroupEntry) == 56 &&
               sizeof(BindGroupDescriptor) == 48 && sizeof(TimestampWrites) == 24 && sizeof(PassDescriptor) == 32 &&
               sizeof(QuerySetDescriptor) == 32));

DynamicLibrary open_library(const std::string& path) {
  std::string why;
  auto library = !path.empty() ? DynamicLibrary::try_open({path}, &why)
                               : DynamicLibrary::try_open({"libwgpu_native.so", "libwgpu_native-release.so", "libwgpu_native.dylib"}, &why);
  if (!library) {
    throw DeviceError(
        fmt::format("{}; install wgpu-native {} where the system finds libraries, or say with WEBGPU_PATH where it is (PyPI's wgpu "
                    "has it as wgpu/resources/libwgpu_native-release.so)",
                    why, kMajorVersion));
  }
  const auto version = library->find<uint32_t()>("wgpuGetVersion");
  const uint32_t number = version ? version() : 0;
  if (number >> 24 != kMajorVersion) {
    throw DeviceError(fmt::format("{} is {}; wgpu-native {} is needed (PyPI's wgpu 0.32 has it)", library->name(),
                                  version ? fmt::format("version {}.{}", number >> 24, number >> 16 & 0xff) : "another library",
                                  kMajorVersion));
  }
  return std::move(*library);
}

Api::Api(DynamicLibrary opened) : library(std::move(opened)) {
#define TG_WGPU(result, name, ...) name = library.symbol<result(__VA_ARGS__)>("wgpu" #name);
#include "runtime/webgpu/functions.def"
#undef TG_WGPU
}

const Api& api() {
  static const Api& opened = *new Api(open_library(current_options().webgpu_path));  // its threads outlive main()
  return opened;
}

}  // namespace tinygrad::runtime::webgpu
