#include "runtime/backends.h"

#include "compiler/clang/clang.h"
#include "compiler/llvm/llvm.h"
#include "compiler/nvidia/nvrtc.h"
#include "runtime/cl/cl.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cuda/cuda.h"
#include "runtime/disk/disk.h"
#include "runtime/dsp/dsp.h"
#include "runtime/hip/hip.h"
#include "runtime/interp/device.h"
#include "runtime/metal/metal.h"
#include "runtime/npy/npy.h"
#include "runtime/null/null.h"
#include "runtime/webgpu/webgpu.h"

namespace tinygrad::runtime {
namespace {

std::string always_there() { return {}; }  // the driver has an assembler

constexpr CodePath kCudaCodePaths[] = {{"CUDA", compiler::nvrtc_missing}, {"PTX", always_there}};
constexpr CodePath kHipCodePaths[] = {{"HIP", compiler::clang_missing}};
constexpr CodePath kCpuCodePaths[] = {{"LLVM", compiler::llvm_missing},
                                      {"CLANG", compiler::clang_missing},
                                      {"LLVM", [] { return emulated_cpu_missing("neoverse-n1"); }, "neoverse-n1"},
                                      {"LLVM", [] { return emulated_cpu_missing("rv64gcv"); }, "rv64gcv"}};
constexpr CodePath kDspCodePaths[] = {{"CLANG", dsp_compiler_missing}};
constexpr CodePath kNullCodePaths[] = {{"LLVM", null_unavailable}, {"CUDA", null_unavailable},  {"PTX", null_unavailable},
                                       {"HIP", null_unavailable},  {"METAL", null_unavailable}, {"OPENCL", null_unavailable},
                                       {"WGSL", null_unavailable}};  // renders, and compiles nothing

// In order of preference.
constexpr Backend kBackends[] = {
    {.name = "CUDA", .unavailable = cuda_unavailable, .code_paths = kCudaCodePaths, .open = open_cuda},
    {.name = "HIP", .unavailable = hip_unavailable, .code_paths = kHipCodePaths, .open = open_hip},
    {.name = "METAL", .unavailable = metal_unavailable, .open = open_metal},
    {.name = "CPU", .unavailable = cpu_unavailable, .code_paths = kCpuCodePaths, .open = open_cpu},
    {.name = "CL", .unavailable = cl_unavailable, .open = open_cl},
    {.name = "WEBGPU", .unavailable = webgpu_unavailable, .open = open_webgpu},
    {.name = "INTERP", .may_be_default = false, .unavailable = interp_unavailable, .open = open_interp},
    {.name = "DSP", .may_be_default = false, .unavailable = dsp_unavailable, .code_paths = kDspCodePaths, .open = open_dsp},
    {.name = "NULL", .may_be_default = false, .unavailable = null_unavailable, .code_paths = kNullCodePaths, .open = open_null},
    {.name = "DISK", .may_be_default = false, .unavailable = disk_unavailable, .open = open_disk},
    {.name = "NPY", .may_be_default = false, .unavailable = npy_unavailable, .open = open_npy},
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

DeviceStatistics device_statistics(std::string_view device) { return statistics_of(runtime::open_device(device)); }

void register_backend(const Backend& backend) {
  runtime::install_backends();
  register_backends({&backend, 1});
}

}  // namespace tinygrad
