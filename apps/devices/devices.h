#pragma once
#include <string>

namespace tinygrad::apps {

/// tg devices: prints which backends there are, which work here, and why the others don't.
void list_devices(bool json);
/// tg devices NAME[:INDEX][:RENDERER[:ARCH]]: opens it and prints what kernels may use there. Throws DeviceError.
void describe_device(const std::string& name, bool json);

}  // namespace tinygrad::apps
