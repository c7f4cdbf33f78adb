#include "device/multi_buffer.h"

#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad {

IntrusivePtr<MultiBuffer> MultiBuffer::make(std::span<Device* const> devices, int64_t size, DType dtype, const BufferSpec& spec) {
  if (devices.empty()) throw ValueError("a tensor on several devices: expected at least one device, got none");
  std::vector<BufferPtr> parts;
  for (Device* device : devices) {
    if (std::ranges::any_of(parts, [&](const BufferPtr& p) { return &p->device() == device; }))
      throw ValueError(fmt::format("a tensor on several devices: {} is named twice; name each once", device->name().str()));
    parts.push_back(Buffer::make(*device, size, dtype, spec));
  }
  return IntrusivePtr<MultiBuffer>(new MultiBuffer(std::move(parts)));
}

bool MultiBuffer::is_allocated() const {
  return std::ranges::all_of(parts_, [](const BufferPtr& p) { return p->is_allocated(); });
}

void MultiBuffer::ensure_allocated() {
  for (const BufferPtr& p : parts_) p->ensure_allocated();
}

}  // namespace tinygrad
