#include "runtime/cl/cl_memory.h"

#include <algorithm>
#include <mutex>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime::cl {
namespace {

constexpr uintptr_t kSpacing = 4096;  // of addresses, which are never used again

void* handle_of(uintptr_t address) { return reinterpret_cast<void*>(address); }  // NOLINT(performance-no-int-to-ptr): nothing reads it

}  // namespace

Place ClAllocator::place(const void* handle) const {
  const auto address = reinterpret_cast<uintptr_t>(handle);
  std::shared_lock lock(mutex_);
  auto block = blocks_.upper_bound(address);
  if (block != blocks_.begin() && address - (--block)->first <= block->second.bytes) return {block->second.memory, address - block->first};
  throw DeviceError(fmt::format("{}: {} is no memory of this device; copy the values to it", name_, handle));
}

Memory ClAllocator::create(size_t bytes) const {
  int32_t error = success;
  const Memory memory = api().CreateBuffer(context_, mem_read_write, bytes, nullptr, &error);
  if (error == mem_object_allocation_failure || error == out_of_host_memory || error == out_of_resources || error == invalid_buffer_size) {
    return nullptr;
  }
  check(error, name_, "making a buffer");
  return memory;
}

void* ClAllocator::system_allocate(size_t bytes, const BufferSpec&) {
  const size_t size = std::max<size_t>(bytes, 1);
  const Memory memory = create(size);
  if (!memory) return nullptr;
  std::unique_lock lock(mutex_);
  const uintptr_t address = next_;
  blocks_.emplace(address, Block{memory, size});
  next_ += (size / kSpacing + 2) * kSpacing;
  return handle_of(address);
}

void ClAllocator::system_free(void* handle, size_t, const BufferSpec&) noexcept {
  std::unique_lock lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(handle));
  if (found == blocks_.end()) return;
  api().ReleaseMemObject(found->second.memory);  // OpenCL keeps it for the commands that still use it
  blocks_.erase(found);
}

void ClAllocator::copy_in(void* handle, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  const Place p = place(handle);
  timed(profile_, "copy from the host", "copy", [&](EventTag** event) {
    check(api().EnqueueWriteBuffer(queue_, p.memory, true, p.offset, bytes, from, 0, nullptr, event), name_, "copying from the host");
  });
}

/// Through memory that the driver maps, a piece at a time.
void ClAllocator::copy_in_read(void* handle, size_t bytes, const Reader& read) {
  constexpr size_t most = size_t{16} << 20;
  const Place p = place(handle);
  for (size_t at = 0; at < bytes; at += most) {
    const size_t n = std::min(most, bytes - at);
    read_mapped({p.memory, p.offset + at}, n, [&](std::byte* to) { read(to, at, n); });
  }
  check(api().Finish(queue_), name_, "copying from the host");
}

void ClAllocator::read_mapped(const Place& to, size_t bytes, const std::function<void(std::byte*)>& read) {
  int32_t error = success;
  void* const mapped =
      api().EnqueueMapBuffer(queue_, to.memory, true, map_write_invalidate_region, to.offset, bytes, 0, nullptr, nullptr, &error);
  check(error, name_, "mapping a buffer");
  try {
    read(static_cast<std::byte*>(mapped));
  } catch (...) {
    api().EnqueueUnmapMemObject(queue_, to.memory, mapped, 0, nullptr, nullptr);
    throw;
  }
  timed(profile_, "copy from the host", "copy", [&](EventTag** event) {
    check(api().EnqueueUnmapMemObject(queue_, to.memory, mapped, 0, nullptr, event), name_, "copying from the host");
  });
}

void ClAllocator::copy_out(std::byte* to, void* handle, size_t bytes) {
  if (bytes == 0) return;
  const Place p = place(handle);
  timed(profile_, "copy to the host", "copy", [&](EventTag** event) {
    check(api().EnqueueReadBuffer(queue_, p.memory, true, p.offset, bytes, to, 0, nullptr, event), name_, "copying to the host");
  });
}

void ClAllocator::copy(void* to, void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  const Place target = place(to), source = place(from);
  const bool overlap = target.memory == source.memory && target.offset < source.offset + bytes && source.offset < target.offset + bytes;
  if (!overlap) return copy_places(target, source, bytes);
  const Memory between = create(bytes);
  if (!between)
    throw OutOfMemoryError(fmt::format("{}: out of memory: {} bytes to copy between parts of a buffer that overlap", name_, bytes));
  try {
    copy_places({between, 0}, source, bytes);
    copy_places(target, {between, 0}, bytes);
  } catch (...) {
    api().ReleaseMemObject(between);
    throw;
  }
  api().ReleaseMemObject(between);
}

void ClAllocator::copy_places(const Place& to, const Place& from, size_t bytes) const {
  timed(profile_, "copy", "copy", [&](EventTag** event) {
    check(api().EnqueueCopyBuffer(queue_, from.memory, to.memory, from.offset, to.offset, bytes, 0, nullptr, event), name_, "copying");
  });
}

}  // namespace tinygrad::runtime::cl
