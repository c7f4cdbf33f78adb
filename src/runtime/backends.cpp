#include <vector>

#include "compiler/code_paths.h"
#include "device/registry.h"
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

/// A code path for a processor that is emulated.
CodePath emulated(CodePath code, std::string_view arch, std::string (*missing)()) {
  code.arch = arch;
  code.missing_compiler = missing;
  return code;
}

struct CodePaths {
  std::vector<CodePath> cuda{compiler::cuda_path, compiler::ptx_path}, hip{compiler::hip_path}, metal{compiler::metal_path},
      cpu{compiler::llvm_path, compiler::clang_path,
          emulated(compiler::llvm_path, "neoverse-n1", [] { return emulated_cpu_missing("neoverse-n1"); }),
          emulated(compiler::llvm_path, "rv64gcv", [] { return emulated_cpu_missing("rv64gcv"); })},
      cl{compiler::opencl_path}, webgpu{compiler::wgsl_path}, interp{interp_path}, dsp{compiler::hexagon_path};
};

/// In order of preference.
std::vector<Backend> backends() {
  static const CodePaths& code = *new CodePaths;
  return {
      {.name = "CUDA", .unavailable = cuda_unavailable, .code_paths = code.cuda, .open = open_cuda},
      {.name = "HIP", .unavailable = hip_unavailable, .code_paths = code.hip, .open = open_hip},
      {.name = "METAL", .unavailable = metal_unavailable, .code_paths = code.metal, .open = open_metal},
      {.name = "CPU", .unavailable = cpu_unavailable, .code_paths = code.cpu, .open = open_cpu},
      {.name = "CL", .unavailable = cl_unavailable, .code_paths = code.cl, .open = open_cl},
      {.name = "WEBGPU", .unavailable = webgpu_unavailable, .code_paths = code.webgpu, .open = open_webgpu},
      {.name = "INTERP", .may_be_default = false, .unavailable = interp_unavailable, .code_paths = code.interp, .open = open_interp},
      {.name = "DSP", .may_be_default = false, .unavailable = dsp_unavailable, .code_paths = code.dsp, .open = open_dsp},
      {.name = "NULL", .may_be_default = false, .unavailable = null_unavailable, .code_paths = compiler::text_paths(), .open = open_null},
      {.name = "DISK", .may_be_default = false, .unavailable = disk_unavailable, .open = open_disk},
      {.name = "NPY", .may_be_default = false, .unavailable = npy_unavailable, .open = open_npy},
  };
}

/// Once; cheap after the first call.
void install_backends() {
  static const bool once = (register_backends(backends()), true);
  (void)once;
}

}  // namespace
}  // namespace tinygrad::runtime

namespace tinygrad {

using runtime::install_backends;

Device& Device::get(std::string_view name) {
  install_backends();
  return find_device(name);
}

Symbol Device::canonical(std::string_view name) {
  install_backends();
  return canonical_name(name);
}

Symbol Device::default_name() {
  install_backends();
  return default_device_name();
}

std::vector<DeviceStatus> available_devices() {
  install_backends();
  return registered_devices();
}

void register_backend(const Backend& backend) {
  install_backends();
  register_backends({&backend, 1});
}

std::string default_device() { return std::string(Device::default_name().str()); }

std::string canonical_device(std::string_view name) { return std::string(Device::canonical(name).str()); }

void synchronize(std::string_view device) { Device::get(device).wait(); }

bool is_dtype_supported(DType dtype, std::string_view device) { return Device::get(device).supports(dtype); }

DeviceStatistics device_statistics(std::string_view device) { return statistics_of(Device::get(device)); }

}  // namespace tinygrad
