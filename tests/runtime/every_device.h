#pragma once
/// The devices of this machine that run kernels, for tests that every one of them must pass.

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "base/subprocess.h"
#include "device/buffer.h"
#include "device/device.h"
#include "device/launch_log.h"
#include "kernel/describe_kernel.h"
#include "spec/evaluate.h"
#include "uop/graph.h"

namespace tinygrad::test {

/// As the option DEV names them: "CPU", "CPU:CLANG", "CL".
inline std::vector<std::string> every_device() {
  const auto runs_kernels = [](std::string_view name) { return !name.starts_with("NULL") && name != "DISK" && name != "NPY"; };
  std::vector<std::string> names;
  for (const DeviceStatus& d : available_devices())
    if (d.works && runs_kernels(d.name)) names.push_back(d.name);
  return names;
}

/// Those for tests of tensors, which compile many kernels: without the CPUs and DSPs that a clang is started for.
inline std::vector<std::string> tensor_devices() {
  std::vector<std::string> names = every_device();
  std::erase_if(names, [](const std::string& name) { return name.starts_with("CPU:") || name == "DSP"; });
  return names;
}
/// Those of them that compile a kernel in a tenth of a second: without drivers that may be LLVM's on the processor.
inline std::vector<std::string> quick_devices() {
  std::vector<std::string> names = tensor_devices();
  std::erase_if(names, [](const std::string& name) { return name == "CL" || name == "WEBGPU"; });
  return names;
}

/// Whether vectors of floats can become integers. qemu 7.2, which stands for a RISC-V, loses the place it was at (an assertion in
/// decode_save_opc) in conversions that round to zero whatever the mode is, vfcvt.rtz.x.f.v and its like.
inline bool truncates_vectors(Device& device) {
  if (!device.target().arch.str().starts_with("rv64")) return true;
  for (const char* name : {"qemu-riscv64-static", "qemu-riscv64"})
    if (const std::string path = find_program(name); !path.empty())
      return run_process({path, "--version"}, "").out.find("version 7.") == std::string::npos;
  return true;
}
inline constexpr const char* kNoTruncation = "this qemu-riscv64 ends at conversions of floats to integers in vectors";

/// Why the device that the option DEV names does not open here; empty if it does. Tests of what a machine may lack are skipped with it, and
/// tools/backends sees that they were.
inline std::string why_not(const std::string& dev) {
  try {
    const Context chosen{{.dev = dev}};
    Device::get(Device::default_name().str());
    return {};
  } catch (const DeviceError& error) {
    return error.what();
  }
}

/// By device.
class EveryDevice : public testing::TestWithParam<std::string> {
 protected:
  Device& device() { return Device::get(GetParam().substr(0, GetParam().find(':'))); }
  bool has_groups() { return device().target().has_groups; }
  /// What a device lacks of the others is computed by what it has.
  bool takes(DType d) { return d != DType::float64 || device().supports(d); }
  /// WGSL lets drivers divide within 2.5 units in the last place.
  double division_ulps() { return device().target().renderer == Symbol("WGSL") ? 2.5 : 0; }

  Context choice_{{.dev = GetParam()}};
};

inline std::string device_test_name(const testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  for (char& c : name)
    if (c == ':' || c == '-') c = '_';
  return name;
}

/// What a kernel leaves in memory, by slot.
inline std::map<int32_t, spec::Array> run_on_device(Device& device, const UOp& linear, const spec::EvalInputs& inputs) {
  const KernelInfo info = describe_kernel(linear, "k");
  const auto kernel = device.load(info, linear, device.compile(device.render(linear, info)));
  std::map<int32_t, spec::Array> memory = inputs.params;
  std::vector<BufferPtr> buffers;
  std::vector<void*> handles;
  for (auto& [slot, array] : memory) {
    buffers.push_back(Buffer::make(device, static_cast<int64_t>(array.size()), array.dtype));
    buffers.back()->copyin(array.bytes);
    handles.resize(static_cast<size_t>(slot) + 1);
    handles.back() = buffers.back()->handle();
  }
  std::vector<int64_t> variables;
  for (Symbol name : info.variables) variables.push_back(inputs.variables.at(name));
  kernel->launch(handles, variables, info.launch_dims(variables), true);
  device.launches().add_kernels(1);
  size_t i = 0;
  for (auto& [slot, array] : memory) buffers[i++]->copyout(array.bytes);
  return memory;
}

}  // namespace tinygrad::test
