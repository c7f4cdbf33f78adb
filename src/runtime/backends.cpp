#include "runtime/backends.h"

#include "compiler/clang/clang.h"
#include "compiler/llvm/llvm.h"
#include "runtime/cl/cl.h"
#include "runtime/cpu/cpu.h"
#include "runtime/interp/device.h"
#include "runtime/null/null.h"
#include "runtime/webgpu/webgpu.h"

namespace tinygrad::runtime {
namespace {

constexpr CodePath kCpuCodePaths[] = {{"LLVM", compiler::llvm_missing}, {"CLANG", compiler::clang_missing}};
constexpr CodePath kNullCodePaths[] = {{"LLVM", null_unavailable}};  // renders, and compiles nothing

// In order of preference.
constexpr Backend kBackends[] = {
    {.name = "CPU", .unavailable = cpu_unavailable, .code_paths = kCpuCodePaths, .open = open_cpu},
    {.name = "CL", .unavailable = cl_unavailable, .open = open_cl},
    {.name = "WEBGPU", .unavailable = webgpu_unavailable, .open = open_webgpu},
    {.name = "INTERP", .may_be_default = false, .unavailable = interp_unavailable, .open = open_interp},
    {.name = "NULL", .may_be_default = false, .unavailable = null_unavailable, .code_paths = kNullCodePaths, .open = open_null},
};

}  // namespace

void install_backends() {
  static const bool once = (register_backends(kBackends), true);
  (void)once;
}

Device& open_device(std::string_view name) {
  install_backends();
  return Device::get(name);
}

Symbol default_device_name() {
  install_backends();
  return Device::default_name();
}

}  // namespace tinygrad::runtime

namespace tinygrad {

std::vector<DeviceStatus> available_devices() {
  runtime::install_backends();
  return registered_devices();
}

std::string default_device() { return std::string(runtime::default_device_name().str()); }

std::string canonical_device(std::string_view name) {
  runtime::install_backends();
  return std::string(Device::canonical(name).str());
}

void synchronize(std::string_view device) { runtime::open_device(device).wait(); }

bool is_dtype_supported(DType dtype, std::string_view device) { return runtime::open_device(device).supports(dtype); }

DeviceStatistics device_statistics(std::string_view device) {
  Device& d = runtime::open_device(device);
  const Allocator& a = d.allocator();
  return {.target = d.target().name(), .in_use = a.bytes_in_use(), .peak = a.peak_bytes(), .cached = a.bytes_cached()};
}

void register_backend(const Backend& backend) {
  runtime::install_backends();
  register_backends({&backend, 1});
}

}  // namespace tinygrad
