#pragma once
/// The devices of this machine that run kernels, for tests that every one of them must pass.

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tinygrad/context.h>
#include <tinygrad/device.h>

#include "base/subprocess.h"
#include "device/buffer.h"
#include "runtime/backends.h"
#include "spec/evaluate.h"
#include "uop/graph.h"

namespace tinygrad::test {

/// As the option DEV names them: "CPU", "CPU:CLANG", "CL".
inline std::vector<std::string> every_device() {
  std::vector<std::string> names;
  for (const DeviceStatus& d : available_devices())
    if (d.works && d.name != "NULL" && d.name != "DISK" && d.name != "NPY") names.push_back(d.name);
  return names;
}

/// CPUs of other kinds, each by the compiler that the other is not tested with, under an emulator; none where there is no emulator.
inline std::vector<std::string> emulated_cpus() {
  std::vector<std::string> names;
  for (const auto& [emulator, choice] : {std::pair{"qemu-aarch64", "CPU:LLVM:neoverse-n1"}, {"qemu-riscv64", "CPU:CLANG:rv64gcv"}})
    if (!find_program(std::string(emulator) + "-static").empty() || !find_program(emulator).empty()) names.emplace_back(choice);
  return names;
}

/// By device.
class EveryDevice : public testing::TestWithParam<std::string> {
 protected:
  Device& device() { return runtime::open_device(GetParam().substr(0, GetParam().find(':'))); }
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
  size_t i = 0;
  for (auto& [slot, array] : memory) buffers[i++]->copyout(array.bytes);
  return memory;
}

}  // namespace tinygrad::test
