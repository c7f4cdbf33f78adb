#include "runtime/webgpu/allocator.h"

#include <cstring>
#include <mutex>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad::runtime::webgpu {

namespace {

constexpr uint64_t word = 4;  // bytes: the library copies whole ones from and to multiples of it

uint64_t down(uint64_t n) { return n / word * word; }
uint64_t up(uint64_t n) { return down(n + word - 1); }

}  // namespace

Place WebGpuAllocator::place(const void* handle) const {
  const auto address = reinterpret_cast<uintptr_t>(handle);
  const std::shared_lock lock(mutex_);
  auto block = blocks_.upper_bound(address);
  if (block != blocks_.begin()) {
    --block;
    const uint64_t offset = address - block->first;
    if (offset <= block->second.bytes) return {block->second.buffer.get(), offset, block->second.bytes - offset};
  }
  throw DeviceError(fmt::format("{}: {} is no memory of this device; copy it there first", gpu_.name(), handle));
}

void* WebGpuAllocator::system_allocate(size_t bytes, const BufferSpec&) {
  constexpr uint64_t least = 16, page = 4096;
  if (bytes > gpu_.limits().buffer_size) return nullptr;
  const uint64_t size = std::max(least, up(bytes));
  OwnedBuffer buffer = gpu_.make_buffer(size, BufferUsage::storage | BufferUsage::copy_from | BufferUsage::copy_to);
  if (!buffer) return nullptr;
  const std::unique_lock lock(mutex_);
  const uintptr_t address = next_;
  blocks_[address] = {std::move(buffer), size};
  next_ += (size / page + 2) * page;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): nothing reads it
}

void WebGpuAllocator::system_free(void* handle, size_t, const BufferSpec&) noexcept {
  // Kernels that were launched hold what they use.
  const std::unique_lock lock(mutex_);
  blocks_.erase(reinterpret_cast<uintptr_t>(handle));
}

void WebGpuAllocator::copy_in(void* handle, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  const Place p = place(handle);
  const uint64_t end = p.offset + bytes, first = up(p.offset), last = std::max(first, down(end));
  // What shares a word with other bytes is put between them.
  const auto write_part = [&](uint64_t at, uint64_t begin, uint64_t stop) {
    std::byte whole[word];
    gpu_.read(whole, {p.buffer, at, word}, word);
    std::memcpy(whole + (begin - at), from + (begin - p.offset), stop - begin);
    gpu_.write(p.buffer, at, whole, word);
  };
  if (p.offset < first) write_part(down(p.offset), p.offset, std::min(first, end));
  if (first < last) gpu_.write(p.buffer, first, from + (first - p.offset), last - first);
  if (last < end) write_part(last, last, end);
}

void WebGpuAllocator::copy_in_read(void* handle, size_t bytes, const Reader& read) {
  const Place p = place(handle);
  if (p.offset % word != 0) return Allocator::copy_in_read(handle, bytes, read);
  const uint64_t whole = down(bytes);
  gpu_.write_read(p.buffer, p.offset, whole, read);
  if (whole == bytes) return;
  std::byte rest[word];
  read(rest, whole, bytes - whole);
  copy_in(offset(handle, whole), rest, bytes - whole);
}

void WebGpuAllocator::copy_out(std::byte* to, void* handle, size_t bytes) {
  if (bytes == 0) return;
  const Place p = place(handle);
  const uint64_t first = down(p.offset), size = up(p.offset + bytes) - first;
  if (size == bytes) return gpu_.read(to, {p.buffer, first, size}, size);
  std::vector<std::byte> words(size);
  gpu_.read(words.data(), {p.buffer, first, size}, size);
  std::memcpy(to, words.data() + (p.offset - first), bytes);
}

void WebGpuAllocator::copy(void* to, void* from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  const Place a = place(to), b = place(from);
  if (a.buffer != b.buffer && a.offset % word == 0 && b.offset % word == 0 && bytes % word == 0) return gpu_.copy(a, b, bytes);
  std::vector<std::byte> between(bytes);
  copy_out(between.data(), from, bytes);
  copy_in(to, between.data(), bytes);
}

}  // namespace tinygrad::runtime::webgpu
