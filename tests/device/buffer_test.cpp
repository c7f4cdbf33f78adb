#include "device/buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <set>

#include <tinygrad/context.h>
#include <tinygrad/counters.h>
#include <tinygrad/errors.h>

#include "device/fake_device.h"
#include "support/message_of.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using test::FakeDevice;
using test::message_of;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

TEST(Buffer, TakesMemoryWhenFirstUsedAndReturnsIt) {
  FakeDevice device("FAKE");
  const int64_t before = GlobalCounters::mem_used;
  {
    const BufferPtr b = Buffer::make(device, 10, DType::float32);
    EXPECT_FALSE(b->is_allocated());
    EXPECT_EQ(GlobalCounters::mem_used, before);
    void* handle = b->handle();
    EXPECT_EQ(handle, b->handle());
    EXPECT_TRUE(b->is_allocated());
    EXPECT_EQ(GlobalCounters::mem_used, before + 40);
    EXPECT_EQ(device.allocator().bytes_in_use(), 40u);
  }
  EXPECT_EQ(GlobalCounters::mem_used, before);
  EXPECT_EQ(device.allocator().bytes_in_use(), 0u);
  EXPECT_EQ(device.allocator().bytes_cached(), 40u);
}

TEST(Buffer, ViewsShareAndKeepTheBase) {
  FakeDevice device("FAKE");
  BufferPtr base = Buffer::make(device, 8, DType::uint8);
  BufferPtr middle = base->view(2, 4, DType::uint8);
  const BufferPtr inner = middle->view(2, 1, DType::uint16);
  EXPECT_EQ(&inner->base(), base.get());
  EXPECT_EQ(inner->byte_offset(), 4u);
  base->copyin(bytes_of({0, 1, 2, 3, 4, 5, 6, 7}));
  middle->copyin(bytes_of({20, 30, 40, 50}));
  base = nullptr;
  middle = nullptr;
  std::vector<std::byte> got(2);
  inner->copyout(got);
  EXPECT_EQ(got, bytes_of({40, 50}));
  EXPECT_EQ(inner->data(), inner->handle());
}

TEST(Buffer, ViewsMustBeInside) {
  FakeDevice device("FAKE");
  const BufferPtr b = Buffer::make(device, 8, DType::float32);
  EXPECT_NO_THROW(b->view(32, 0, DType::float32));
  EXPECT_THROW(b->view(4, 8, DType::float32), ValueError);
  EXPECT_THROW(b->view(-4, 1, DType::float32), ValueError);
  EXPECT_THROW(b->view(0, INT64_MAX, DType::float32), ValueError);
  EXPECT_THROW(Buffer::make(device, -1, DType::float32), ValueError);
  EXPECT_THROW(Buffer::make(device, INT64_MAX, DType::float32), ValueError);
}

TEST(Buffer, ExternalMemoryIsUsedInPlace) {
  FakeDevice device("FAKE");
  std::vector<std::byte> memory = bytes_of({1, 2, 3});
  const int64_t before = GlobalCounters::mem_used;
  {
    const BufferPtr b = Buffer::make(device, 3, DType::uint8, {.external_ptr = memory.data()});
    EXPECT_TRUE(b->is_allocated());
    EXPECT_EQ(b->handle(), memory.data());
    b->copyin(bytes_of({4, 5, 6}));
  }
  EXPECT_EQ(memory, bytes_of({4, 5, 6}));
  EXPECT_EQ(GlobalCounters::mem_used, before);
  EXPECT_EQ(device.counting().allocations, 0);
}

TEST(Buffer, CopiesBetweenDevices) {
  for (const bool from_visible : {false, true}) {
    for (const bool to_visible : {false, true}) {
      FakeDevice a("A", from_visible), b("B", to_visible);
      const BufferPtr from = Buffer::make(a, 3, DType::uint8), to = Buffer::make(b, 3, DType::uint8),
                      same = Buffer::make(a, 3, DType::int8);
      from->copyin(bytes_of({7, 8, 9}));
      to->copy_from(*from);
      same->copy_from(*from);
      for (Buffer* buffer : {to.get(), same.get()}) {
        std::vector<std::byte> got(3);
        buffer->copyout(got);
        EXPECT_EQ(got, bytes_of({7, 8, 9}));
      }
    }
  }
}

TEST(Buffer, RefusesWrongSizes) {
  FakeDevice hidden("HIDDEN", false);
  const BufferPtr b = Buffer::make(hidden, 3, DType::uint8), other = Buffer::make(hidden, 4, DType::uint8);
  std::vector<std::byte> three(3), two(2);
  EXPECT_THROW(b->copyin(two), ValueError);
  EXPECT_THROW(b->copyout(two), ValueError);
  EXPECT_NO_THROW(b->copyout(three)) << "anything is in it";
  EXPECT_THROW(b->copy_from(*other), ValueError);
  EXPECT_THROW(b->data(), DeviceError);
}

TEST(Buffer, PoisonedContentCannotBeRead) {
  FakeDevice device("FAKE");
  const BufferPtr b = Buffer::make(device, 2, DType::uint8), view = b->view(0, 1, DType::uint8),
                  other = Buffer::make(device, 2, DType::uint8);
  b->copyin(bytes_of({1, 2}));
  view->poison("the kernel 'E_2' failed");
  std::vector<std::byte> got(2);
  EXPECT_NE(message_of<Error>([&] { b->copyout(got); }).find("E_2"), std::string::npos);
  EXPECT_THROW(other->copy_from(*b), DeviceError);
  view->copyin(bytes_of({5}));  // only a part
  EXPECT_TRUE(b->poisoned());
  b->copyin(bytes_of({3, 4}));
  EXPECT_FALSE(view->poisoned());
  b->copyout(got);
  EXPECT_EQ(got, bytes_of({3, 4}));
}

TEST(Buffer, IsTheResourceOfABufferNode) {
  FakeDevice device("FAKE");
  const BufferPtr b = Buffer::make(device, 2, DType::float32);
  const BufferArg arg{.id = next_buffer_id(), .size = 2, .scope = Scope::device, .device = "FAKE", .resource = b};
  const UOp node = buffer(DType::float32, arg);
  EXPECT_EQ(&buffer_of(node), b.get());
  EXPECT_THROW(buffer_of(index_const(1)), InternalError);
}

TEST(LruAllocator, ReusesTheSameSizeOnly) {
  FakeDevice device("FAKE");
  Allocator& a = device.allocator();
  void* first = a.allocate(100, {});
  a.deallocate(first, 100, {});
  EXPECT_EQ(a.allocate(100, {}), first);
  void* second = a.allocate(101, {});
  EXPECT_EQ(device.counting().allocations, 2);
  a.deallocate(first, 100, {});
  a.deallocate(second, 101, {});
  EXPECT_EQ(a.bytes_cached(), 201u);
  a.empty_cache();
  EXPECT_EQ(a.bytes_cached(), 0u);
  EXPECT_EQ(device.counting().frees, 2);
}

TEST(LruAllocator, CanBeSwitchedOff) {
  FakeDevice device("FAKE");
  Context guard{{.lru = false}};
  void* memory = device.allocator().allocate(100, {});
  device.allocator().deallocate(memory, 100, {});
  EXPECT_EQ(device.allocator().bytes_cached(), 0u);
  EXPECT_EQ(device.counting().frees, 1);
}

TEST(LruAllocator, EmptiesItsCacheBeforeItGivesUp) {
  FakeDevice device("FAKE");
  Context guard{{.memory_limit = 1000}};
  Allocator& a = device.allocator();
  void* big = a.allocate(800, {});
  a.deallocate(big, 800, {});
  void* other = a.allocate(900, {});  // only fits without the cached 800
  EXPECT_EQ(device.counting().frees, 1);
  const std::string why = message_of<Error>([&] { a.allocate(200, {}); });
  EXPECT_NE(why.find("200 bytes asked for"), std::string::npos) << why;
  EXPECT_NE(why.find("900 bytes in use"), std::string::npos) << why;
  EXPECT_THROW(a.allocate(SIZE_MAX, {}), OutOfMemoryError);
  a.deallocate(other, 900, {});
  void* again = a.allocate(200, {});  // nothing was lost
  a.deallocate(again, 200, {});
  EXPECT_EQ(a.bytes_in_use(), 0u);
  a.empty_cache();
}

TEST(LruAllocator, FreesWhatWasNotAskedForLately) {
  FakeDevice device("FAKE");
  Allocator& a = device.allocator();
  const auto use = [&](size_t bytes) { a.deallocate(a.allocate(bytes, {}), bytes, {}); };
  use(1000);  // at its peak 1000 bytes are in use, so that 2000 may be held
  for (const size_t bytes : {300, 400, 300}) use(bytes);
  EXPECT_EQ(a.bytes_cached(), 1700u);
  EXPECT_EQ(device.counting().frees, 0);
  void* held = a.allocate(200, {});
  use(500);  // 200 in use and 2200 in the cache
  EXPECT_EQ(device.counting().frees, 1);
  EXPECT_EQ(a.bytes_cached(), 1200u) << "the 1000 bytes were the oldest";
  use(400);
  use(850);  // the peak is 1050 now: 200 in use and 2050 in the cache, of which 300 are the oldest
  EXPECT_EQ(a.bytes_cached(), 1750u);
  a.deallocate(held, 200, {});
  EXPECT_EQ(a.bytes_cached(), 1950u);
  EXPECT_EQ(a.bytes_in_use(), 0u);
}

TEST(LruAllocator, MemoryThatNobodyGotMakesNoRoomInTheCache) {
  FakeDevice device("FAKE");
  Allocator& a = device.allocator();
  a.deallocate(a.allocate(100, {}), 100, {});
  device.counting().fail_in = 0;
  EXPECT_THROW(a.allocate(1 << 20, {}), OutOfMemoryError);
  EXPECT_EQ(a.peak_bytes(), 100u);
}

TEST(Buffer, ContentIsAnotherAfterEachWrite) {
  FakeDevice device("FAKE");
  const BufferPtr b = Buffer::make(device, 8, DType::uint8), part = b->view(2, 4, DType::uint8);
  std::set<uint64_t> seen{b->content()};
  const auto is_new = [&] { return b->content() == part->content() && seen.insert(b->content()).second; };
  const std::vector<std::byte> whole(8), four(4);
  b->copyin(whole);
  EXPECT_TRUE(is_new());
  part->copyin(four);
  EXPECT_TRUE(is_new());
  part->note_write();
  EXPECT_TRUE(is_new());
  std::vector<std::byte> out(8);
  b->copyout(out);
  EXPECT_FALSE(is_new()) << "nothing was written";
}

TEST(Buffer, ContentIsNotKnownWhereTheHostMayWrite) {
  FakeDevice device("FAKE");
  std::array<std::byte, 8> memory;
  EXPECT_EQ(Buffer::make(device, 8, DType::uint8, {.external_ptr = memory.data()})->content(), 0u);
  const BufferPtr b = Buffer::make(device, 8, DType::uint8), part = b->view(2, 4, DType::uint8);
  EXPECT_NE(b->content(), 0u);
  part->data();
  EXPECT_EQ(b->content(), 0u);
}

TEST(Buffer, SharedMemoryHasOneContent) {
  FakeDevice device("FAKE"), other("FAKE2");
  const BufferPtr b = Buffer::make(device, 8, DType::uint8), shared = Buffer::sharing(other, b->view(2, 4, DType::uint8));
  ASSERT_TRUE(shared);
  EXPECT_EQ(&shared->origin(), b.get());
  EXPECT_EQ(shared->content(), b->content());
  const uint64_t before = b->content();
  shared->copyin(std::vector<std::byte>(4, std::byte{7}));
  EXPECT_NE(b->content(), before);
  EXPECT_EQ(shared->content(), b->content());
  std::vector<std::byte> out(8);
  b->copyout(out);
  EXPECT_EQ(out[2], std::byte{7});
  shared->data();
  EXPECT_EQ(b->content(), 0u);
}

TEST(LruAllocator, FailedBufferTakesNothing) {
  FakeDevice device("FAKE");
  Context guard{{.memory_limit = 100}};
  const int64_t before = GlobalCounters::mem_used;
  const BufferPtr b = Buffer::make(device, 101, DType::uint8);
  EXPECT_THROW(b->ensure_allocated(), OutOfMemoryError);
  EXPECT_FALSE(b->is_allocated());
  EXPECT_EQ(GlobalCounters::mem_used, before);
  Context more{{.memory_limit = 200}};
  EXPECT_NO_THROW(b->ensure_allocated());
}

}  // namespace
}  // namespace tinygrad
