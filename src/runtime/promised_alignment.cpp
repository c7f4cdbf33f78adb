#include "runtime/promised_alignment.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime {

PromisedAlignment::PromisedAlignment(const KernelInfo& info) {
  for (const KernelParam& p : info.params) {
    // Smaller promises hold for any buffer of elements.
    if (p.align > itemsize(p.dtype)) aligned_.push_back({static_cast<size_t>(p.slot), p.align});
  }
}

void PromisedAlignment::refuse(size_t slot, uint16_t bytes) {
  throw DeviceError(fmt::format("CPU: buffer {} of a kernel must be aligned to {} bytes; copy it first", slot, bytes));
}

}  // namespace tinygrad::runtime
