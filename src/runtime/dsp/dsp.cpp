#include "runtime/dsp/dsp.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/code_paths.h"
#include "runtime/emulated/device.h"

namespace tinygrad::runtime {
namespace {

constexpr std::string_view kEmulated = "v66";  // qemu has no floats in vectors

}  // namespace

std::string dsp_unavailable() { return emulator_missing(dsp_target(kEmulated)); }

std::unique_ptr<Device> open_dsp(const DeviceChoice& choice) {
  if (choice.index != 0) throw DeviceError(fmt::format("{}: there is one DSP", choice.canonical()));
  const Target target = dsp_target(choice.arch.empty() ? kEmulated : std::string_view(choice.arch));
  if (target.arch != Symbol(kEmulated))
    throw DeviceError(fmt::format("DSP: what stands for it is a {}; it cannot run code for {}", kEmulated, target.arch.str()));
  return std::make_unique<EmulatedDevice>(choice, target, compiler::hexagon_path);
}

}  // namespace tinygrad::runtime
