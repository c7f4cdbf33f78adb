#pragma once
#include "device/device.h"

namespace tinygrad::runtime {

/// A device that only holds data: its Target has no ops, and it has no code path.
class StorageDevice final : public Device {
 public:
  StorageDevice(std::string_view name, std::string_view kind, std::unique_ptr<Allocator> allocator)
      : Device(name, target_of(kind), std::move(allocator), {}) {}

  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override {
    code_path();  // throws
    return nullptr;
  }

 private:
  static Target target_of(std::string_view kind) {
    Target t;
    t.device = Symbol(kind);
    return t;
  }
};

}  // namespace tinygrad::runtime
