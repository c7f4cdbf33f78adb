#pragma once
#include <memory>
#include <string>

#include "runtime/cl/cl_api.h"

namespace tinygrad::runtime::cl {

struct ReleaseProgram {
  void operator()(ProgramId p) const noexcept { api().ReleaseProgram(p); }
};
using ProgramPtr = std::unique_ptr<ProgramTag, ReleaseProgram>;

/// Where programs are built for, and how.
struct BuildFor {
  std::string name;  ///< "CL:1", for messages
  Context context = nullptr;
  DeviceId device = nullptr;
  std::string options;
  std::string key;  ///< stands for the driver and the device in the disk cache
};

/// What the driver makes of a source, from the disk cache where it is known; the source itself where a driver gives no binaries. Throws
/// CompileError with the driver's log.
std::string compile(const BuildFor& to, const std::string& source);
/// A built program from the result of compile(). Throws DeviceError.
ProgramPtr load(const BuildFor& to, const std::string& binary);

}  // namespace tinygrad::runtime::cl
