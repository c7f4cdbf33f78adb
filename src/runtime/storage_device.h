#pragma once
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "device/device.h"

namespace tinygrad::runtime {

/// A device that only holds data: its Target has no ops.
class StorageDevice final : public Device {
 public:
  StorageDevice(std::string_view name, std::string_view kind, std::unique_ptr<Allocator> allocator)
      : Device(name, target_of(kind), std::move(allocator)) {}

  std::string render(const UOp&, const KernelInfo&) override { refuse(); }
  std::string compile(const std::string&) override { refuse(); }
  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { refuse(); }

 private:
  static Target target_of(std::string_view kind) {
    Target t;
    t.device = Symbol(kind);
    return t;
  }
  [[noreturn]] void refuse() const {
    throw DeviceError(fmt::format("{}: it only holds data; copy that to a device that computes, with to(\"CPU\")", name().str()));
  }
};

}  // namespace tinygrad::runtime
