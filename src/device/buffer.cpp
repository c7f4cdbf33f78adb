#include "device/buffer.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/counters.h>
#include <tinygrad/errors.h>

#include "device/device.h"
#include "device/launch_log.h"
#include "device/rank_device.h"
#include "uop/graph.h"

namespace tinygrad {

Buffer::Buffer(Device& device, int64_t size, DType dtype, const BufferSpec& spec, BufferPtr base, size_t byte_offset)
    : device_(device), size_(size), dtype_(dtype), spec_(spec), base_(std::move(base)), byte_offset_(byte_offset) {
  if (!base_ && spec.external_ptr) memory_ = spec.external_ptr;
  if (base_) share_memory(*base_);
}

BufferPtr Buffer::make(Device& device, int64_t size, DType dtype, const BufferSpec& spec) {
  int64_t bytes = 0;
  if (size < 0 || __builtin_mul_overflow(size, static_cast<int64_t>(itemsize(dtype)), &bytes)) {
    throw ValueError(fmt::format("buffer on {}: {} elements of {}: the size must not be negative and its bytes must fit 63 bits",
                                 device.name().str(), size, repr(dtype)));
  }
  if (spec.external_ptr && !device.allocator().uses_host_memory()) {
    throw DeviceError(fmt::format("buffer on {}: it cannot use memory of the host in place; make it on CPU and copy it with to(\"{}\")",
                                  device.name().str(), device.name().str()));
  }
  return BufferPtr(new Buffer(device, size, dtype, spec, nullptr, 0));
}

BufferPtr Buffer::sharing(Device& device, const BufferPtr& memory) {
  std::byte* host = memory->device().allocator().host_pointer(memory->handle());
  const bool usable = host && device.allocator().uses_host_memory() && device.target().computes();
  if (!usable || reinterpret_cast<uintptr_t>(host) % itemsize(memory->dtype()) != 0) return {};
  memory->check_readable();
  BufferPtr out = make(device, memory->size(), memory->dtype(), {.external_ptr = host});
  out->shared_ = memory;
  out->share_memory(*memory);
  return out;
}

BufferPtr Buffer::view(int64_t byte_offset, int64_t size, DType dtype) {
  int64_t bytes = 0;
  const auto whole = static_cast<int64_t>(nbytes());
  if (byte_offset < 0 || byte_offset > whole || size < 0 || __builtin_mul_overflow(size, static_cast<int64_t>(itemsize(dtype)), &bytes) ||
      bytes > whole - byte_offset) {
    throw ValueError(
        fmt::format("view of {} elements of {} at byte {} of {}: it must be inside", size, repr(dtype), byte_offset, describe()));
  }
  return BufferPtr(new Buffer(device_, size, dtype, spec_, BufferPtr(&base()), byte_offset_ + static_cast<size_t>(byte_offset)));
}

Buffer::~Buffer() {
  if (!base_) deallocate();
}

namespace {

/// Whether memory on the device counts as this process's.
bool is_counted(const Device& device) { return device.target().computes() && !is_of_other_rank(device); }

}  // namespace

void Buffer::ensure_allocated() {
  Buffer& b = base();
  if (b.memory_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(b.mutex_);
  if (b.memory_.load(std::memory_order_relaxed)) return;
  b.memory_.store(device_.allocator().allocate(b.nbytes(), b.spec_), std::memory_order_release);
  if (is_counted(device_)) GlobalCounters::mem_used += static_cast<int64_t>(b.nbytes());
}

namespace {

/// Before memory goes that is somebody else's.
void wait_for_users(Device& device) {
  if (device.is_async()) try {
      device.wait();
    } catch (const std::exception&) {}  // whoever reads what was lost is told
}

}  // namespace

void Buffer::deallocate() {
  Buffer& b = base();
  std::lock_guard lock(b.mutex_);
  void* memory = b.memory_.exchange(nullptr);
  if (memory && b.spec_.external_ptr) wait_for_users(device_);
  if (!memory || b.spec_.external_ptr) return;
  device_.allocator().deallocate(memory, b.nbytes(), b.spec_);
  if (is_counted(device_)) GlobalCounters::mem_used -= static_cast<int64_t>(b.nbytes());
}

void* Buffer::handle() {
  ensure_allocated();
  void* memory = base().memory_.load(std::memory_order_acquire);
  return byte_offset_ ? device_.allocator().offset(memory, byte_offset_) : memory;
}

std::byte* Buffer::data() {
  std::byte* host = device_.allocator().host_pointer(handle());
  if (host && device_.is_async()) device_.wait();
  if (!host) throw DeviceError(fmt::format("{}: its memory is not visible to the host; copy it out", describe()));
  origin().shown_.store(true, std::memory_order_release);
  return host;
}

uint64_t Buffer::content() const {
  const Buffer& b = origin();
  if (b.spec_.external_ptr || b.shown_.load(std::memory_order_acquire)) return 0;
  return b.content_.load(std::memory_order_acquire);
}

void Buffer::copyin(std::span<const std::byte> from) {
  if (from.size() != nbytes()) throw ValueError(fmt::format("copy of {} bytes into {}: the sizes differ", from.size(), describe()));
  void* to = handle();
  device_.wait();
  device_.allocator().copy_in(to, from.data(), from.size());
  written_whole();
}

void Buffer::copyout(std::span<std::byte> to) {
  if (to.size() != nbytes()) throw ValueError(fmt::format("copy of {} into {} bytes: the sizes differ", describe(), to.size()));
  check_readable();
  device_.wait();
  check_readable();  // what was launched may have failed
  device_.allocator().copy_out(to.data(), handle(), to.size());
}

void Buffer::copy_from(Buffer& from) {
  if (from.nbytes() != nbytes()) throw ValueError(fmt::format("copy of {} into {}: the sizes differ", from.describe(), describe()));
  from.check_readable();
  void* to = handle();
  void* source = from.handle();
  if (copy_by_queues(to, from, source)) return;
  from.device_.wait();
  if (&from.device_ != &device_) device_.wait();
  from.check_readable();  // what was launched may have failed
  Allocator &mine = device_.allocator(), &theirs = from.device_.allocator();
  if (&mine == &theirs)
    mine.copy(to, source, nbytes());
  else if (const std::byte* host = theirs.host_pointer(source))
    mine.copy_in(to, host, nbytes());
  else if (std::byte* own_host = mine.host_pointer(to))
    theirs.copy_out(own_host, source, nbytes());
  else
    copy_through_host(to, from, source);
  written_whole();
}

bool Buffer::copy_by_queues(void* to, Buffer& from, void* source) {
  const uint64_t number = device_.launches().begin();
  bool copied = false;
  try {
    copied = tinygrad::copy_by_queues(device_, to, from.device_, source, nbytes());
  } catch (...) {
    device_.launches().end();
    throw;
  }
  if (copied) {
    written_whole();
    written_by(number);
  }
  device_.launches().end();
  return copied;
}

/// In pieces, so that a large copy does not need as much host memory again. Two devices that compute go through memory of neither: each may
/// keep others from its own, and would wait for the other where another thread copies the other way.
void Buffer::copy_through_host(void* to, Buffer& from, void* source) {
  Allocator &mine = device_.allocator(), &theirs = from.device_.allocator();
  const auto read = [&](std::byte* piece, size_t at, size_t bytes) {
    theirs.copy_out(piece, at ? theirs.offset(source, at) : source, bytes);
  };
  if (from.device_.target().computes())
    mine.Allocator::copy_in_read(to, nbytes(), read);
  else
    mine.copy_in_read(to, nbytes(), read);
}

void Buffer::poison(std::string_view reason) noexcept {
  Buffer& b = base();
  const std::lock_guard lock(b.mutex_);
  b.poisoned_.store(true, std::memory_order_release);
  try {
    b.poison_reason_ = reason;
  } catch (const std::bad_alloc&) {
    b.poison_reason_.clear();
  }
}

bool Buffer::try_claim(bool writes) noexcept {
  int32_t now = claims_.load();
  while (writes ? now == 0 : now >= 0)
    if (claims_.compare_exchange_weak(now, writes ? -1 : now + 1)) return true;
  return false;
}

void Buffer::written_whole() {
  note_write();
  if (base_ && nbytes() != base_->nbytes()) return;
  base().poisoned_.store(false, std::memory_order_release);
  base().last_launch_.store(0, std::memory_order_relaxed);
}

void Buffer::written_by(uint64_t launch) {
  Buffer& b = base();
  // What was lost is not repaired by a kernel that may write a part of it.
  if (std::string why = device_.launches().why_lost(b.last_launch_.exchange(launch)); !why.empty()) poison(why);
}

void Buffer::check_readable() const {
  if (poisoned()) {
    const Buffer& b = base();
    std::lock_guard lock(b.mutex_);
    throw DeviceError(fmt::format("{}: its content is lost: {}; write it as a whole before reading it", describe(), b.poison_reason_));
  }
  if (const std::string why = device_.launches().why_lost(base().last_launch_.load()); !why.empty()) {
    throw DeviceError(
        fmt::format("{}: its content is lost, because something launched before failed: {}; compute it again", describe(), why));
  }
}

std::string Buffer::describe() const {
  return fmt::format("a {} of {} elements of {} on {}", base_ ? "view" : "buffer", size_, repr(dtype_), device_.name().str());
}

SmallVector<Buffer*, 1> buffers_of(const UOp& memory) {
  if (!memory.is(Op::MSTACK)) return {&buffer_of(memory)};
  SmallVector<Buffer*, 1> out;
  for (const UOp& part : memory.src()) out.push_back(&buffer_of(part));
  return out;
}

Buffer& buffer_of(const UOp& node) {
  if (node.is(Op::BUFFER)) {
    if (auto* buffer = dynamic_cast<Buffer*>(node.arg_as<BufferArg>().resource.get())) return *buffer;
  }
  throw InternalError(fmt::format("{} has no buffer: only a BUFFER node of device scope has one", print_expr(node)));
}

}  // namespace tinygrad
