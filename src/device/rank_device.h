#pragma once
#include "device/device.h"

namespace tinygrad {

/// A device of another rank: its memory is not here, and what is done with it there is left out here.
class RankDevice final : public Device {
 public:
  /// `here` is the same device of this rank: ranks run on machines of one kind.
  RankDevice(std::string_view name, const Device& here);
  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string& binary) override;
};

/// Whether a device is another rank's.
bool is_of_other_rank(const Device& device);

}  // namespace tinygrad
