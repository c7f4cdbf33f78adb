#include "faults/backend/failing_new.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

thread_local bool armed = false;
thread_local int64_t left = 0, counted = 0;
thread_local bool has_failed = false;
thread_local bool watched = false;
thread_local size_t largest = 0;

bool fails() {
  if (!armed) return false;
  ++counted;
  if (left-- != 0) return false;
  has_failed = true;
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (watched) largest = std::max(largest, bytes);
  if (fails()) return nullptr;
  if (bytes == 0) bytes = 1;
  return alignment == 0 ? std::malloc(bytes) : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment = 0) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return allocate_or_throw(bytes, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return allocate_or_throw(bytes, static_cast<std::size_t>(a)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }

namespace {

int64_t memalign_left = -1;
int memalign_failures = 0;

}  // namespace

// Drivers must find this one, too: free() of a sanitizer, which they find, takes what that has allocated.
extern "C" __attribute__((visibility("default"))) int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  if (memalign_failures == 1 || (memalign_failures == 0 && memalign_left >= 0 && memalign_left-- == 0)) {
    ++memalign_failures;
    return ENOMEM;
  }
  *memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *memory ? 0 : ENOMEM;
}

namespace {

int64_t room_on_disk = -1;  // negative: as much as there is

}  // namespace

extern "C" ssize_t pwrite(int file, const void* from, size_t bytes, off_t at) {
  if (room_on_disk >= 0) {
    if (room_on_disk == 0 && bytes != 0) return errno = ENOSPC, -1;
    bytes = std::min(bytes, static_cast<size_t>(room_on_disk));
    room_on_disk -= static_cast<int64_t>(bytes);
  }
  return ::syscall(SYS_pwrite64, file, from, bytes, at);
}

namespace tinygrad::test {

FullDisk::FullDisk(int64_t room) { room_on_disk = room; }
FullDisk::~FullDisk() { room_on_disk = -1; }

LargestNew::LargestNew() {
  largest = 0;
  watched = true;
}
LargestNew::~LargestNew() { watched = false; }
size_t LargestNew::bytes() { return largest; }

FailingMemalign::FailingMemalign(int64_t number) {
  memalign_failures = 0;
  memalign_left = number;
}
FailingMemalign::~FailingMemalign() {
  memalign_left = -1;
  memalign_failures = 2;
}
bool FailingMemalign::failed() { return memalign_failures > 0; }

FailingNew::FailingNew(int64_t number) {
  left = number;
  counted = 0;
  has_failed = false;
  armed = true;
}
FailingNew::~FailingNew() { armed = false; }

int64_t FailingNew::count() { return counted; }
bool FailingNew::failed() { return has_failed; }

}  // namespace tinygrad::test
