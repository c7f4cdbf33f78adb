#include "runtime/driver/memory.h"

#include <algorithm>
#include <cstring>

namespace tinygrad::runtime::driver {

GpuAllocator::~GpuAllocator() {
  empty_cache();
  for (const Piece& p : pieces_)
    if (p.memory) gpu_->api().host_free(p.memory);
}

void* GpuAllocator::system_allocate(size_t bytes, const BufferSpec& spec) {
  const Driver& api = gpu_->api();
  gpu_->enter();
  const size_t size = std::max<size_t>(bytes, 1);
  if (!spec.host) {
    DevicePointer memory = 0;
    const Result result = api.memory_allocate(&memory, size);
    if (result == kOutOfMemory) return nullptr;
    api.check(result, "allocating memory");
    return reinterpret_cast<void*>(memory);
  }
  // Addresses are unified: the host's address is the device's.
  void* memory = nullptr;
  const Result result = api.host_allocate(&memory, size, kPortable | kDeviceMapped);
  if (result == kOutOfMemory) return nullptr;
  api.check(result, "allocating pinned memory");
  const std::lock_guard lock(mutex_);
  host_made_[static_cast<std::byte*>(memory)] = size;
  return memory;
}

void GpuAllocator::system_free(void* handle, size_t, const BufferSpec& spec) noexcept {
  const Driver& api = gpu_->api();
  api.enter(gpu_->context());  // where that fails the rest does, or it was not needed
  if (!spec.host) {
    api.memory_free(address(handle));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    host_made_.erase(static_cast<std::byte*>(handle));
  }
  api.host_free(handle);
}

std::byte* GpuAllocator::host_pointer(void* handle) const {
  auto* at = static_cast<std::byte*>(handle);
  const std::lock_guard lock(mutex_);
  auto next = host_made_.upper_bound(at);
  if (next == host_made_.begin()) return nullptr;
  --next;
  return at < next->first + next->second ? at : nullptr;
}

void GpuAllocator::prepare_pieces() {
  gpu_->enter();
  for (Piece& p : pieces_) {
    if (!p.free) p.free = std::make_unique<Moment>(*gpu_);
    if (p.memory) continue;
    void* memory = nullptr;
    gpu_->api().check(gpu_->api().host_allocate(&memory, piece_bytes, kPortable), "allocating pinned memory");
    p.memory = static_cast<std::byte*>(memory);
  }
}

void GpuAllocator::copy_in(void* handle, const std::byte* from, size_t bytes) {
  copy_in_read(handle, bytes, [&](std::byte* to, size_t at, size_t n) { std::memcpy(to, from + at, n); });
}

void GpuAllocator::copy_in_read(void* handle, size_t bytes, const Reader& read) {
  const std::lock_guard lock(copying_);
  prepare_pieces();
  const auto copy_all = [&] {
    for (size_t at = 0, i = 0; at < bytes; at += piece_bytes, ++i) {
      const Piece& p = pieces_[i % 2];
      const size_t n = std::min(piece_bytes, bytes - at);
      if (i >= 2) p.free->wait();
      read(p.memory, at, n);
      gpu_->api().check(gpu_->api().copy_to_device(address(handle) + at, p.memory, n, gpu_->stream()), "copying to the device");
      p.free->record();
    }
  };
  try {
    gpu_->timed("copy from the host", "copy", copy_all);
  } catch (...) {
    gpu_->api().stream_wait(gpu_->stream());  // who uses the pieces next does not wait for them
    throw;
  }
  gpu_->wait();
}

void GpuAllocator::copy_out(std::byte* to, void* handle, size_t bytes) {
  const std::lock_guard lock(copying_);
  prepare_pieces();
  const auto begin = [&](size_t i) {
    const size_t at = i * piece_bytes;
    if (at >= bytes) return;
    const Piece& p = pieces_[i % 2];
    gpu_->api().check(gpu_->api().copy_to_host(p.memory, address(handle) + at, std::min(piece_bytes, bytes - at), gpu_->stream()),
                      "copying to the host");
    p.free->record();
  };
  gpu_->timed("copy to the host", "copy", [&] {
    begin(0);
    for (size_t at = 0, i = 0; at < bytes; at += piece_bytes, ++i) {
      begin(i + 1);
      pieces_[i % 2].free->wait();
      std::memcpy(to + at, pieces_[i % 2].memory, std::min(piece_bytes, bytes - at));
    }
  });
}

void GpuAllocator::copy(void* to, void* from, size_t bytes) {
  gpu_->enter();
  const DevicePointer target = address(to), source = address(from);
  const auto move = [&](DevicePointer a, DevicePointer b, size_t n) {
    gpu_->timed("copy", "copy", [&] { gpu_->api().check(gpu_->api().copy_on_device(a, b, n, gpu_->stream()), "copying on the device"); });
  };
  const size_t distance = target > source ? target - source : source - target;
  if (distance == 0 || bytes == 0) return;
  if (distance >= bytes) return move(target, source, bytes);
  // Ranges that overlap: pieces that do not, in the order in which none is overwritten before it was read.
  if (target < source) {
    for (size_t at = 0; at < bytes; at += distance) move(target + at, source + at, std::min(distance, bytes - at));
  } else {
    for (size_t left = bytes; left > 0;) {
      const size_t n = std::min(distance, left);
      left -= n;
      move(target + left, source + left, n);
    }
  }
}

}  // namespace tinygrad::runtime::driver
