#pragma once
/// A launch beside the same kernel on the CPU: the option VALIDATE_WITH_CPU.

#include <cstddef>
#include <span>
#include <vector>

#include "device/buffer.h"
#include "program/program.h"

namespace tinygrad::engine {

/// What one launch will have written, computed before it by the kernel as it was before opts, on copies of its arguments.
class Validation {
 public:
  Validation(const Program& program, Device& device, std::span<void* const> handles, std::span<const int64_t> variables);
  /// After the launch; waits for the device. DeviceError names the first element that differs: floats within the tolerance of the
  /// kernel are equal, and so are elements of the same bytes.
  void compare() const;

 private:
  struct Argument {
    const KernelParam* param = nullptr;
    void* handle = nullptr;  ///< on the device
    size_t bytes = 0;
    BufferPtr copy = {};  ///< on the CPU; of slots that are the same memory the same
  };
  BufferPtr copy_of(void* handle) const;
  void compare(const Argument& argument) const;

  const Program& program_;
  Device& device_;
  const double tolerance_;
  std::vector<Argument> arguments_;
};

/// How far two values may be apart of what is computed in a dtype, as a part of the greater of 1 and the value; 0 for integers and bools.
double validation_tolerance(DType dtype);

}  // namespace tinygrad::engine
