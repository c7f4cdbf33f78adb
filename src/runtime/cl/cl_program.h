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

/// The built program of a source: what the driver made of it before, from the disk cache, or built now. Throws CompileError with the
/// driver's log.
ProgramPtr build_program(const BuildFor& to, const std::string& source);

}  // namespace tinygrad::runtime::cl
