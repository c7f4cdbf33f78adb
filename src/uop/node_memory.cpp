#include "uop/node_memory.h"

#include <array>
#include <mutex>
#include <new>

#include "base/spin_lock.h"

namespace tinygrad::detail {

namespace {

constexpr size_t granule = 16, largest = 512, classes = largest / granule + 1;
constexpr size_t chunk_bytes = 64 * 1024;
constexpr uint32_t batch = 256;  // pieces that move between threads at once

// The address sanitizer sees that a piece is used after it was freed only where the system's allocator has it.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool pooled = false;
#elif defined(__has_feature)
constexpr bool pooled = !__has_feature(address_sanitizer);
#else
constexpr bool pooled = true;
#endif

struct Piece {
  Piece* next;
  Piece* next_batch;
};
static_assert(sizeof(Piece) <= granule);

struct List {
  Piece* first = nullptr;
  uint32_t count = 0;  ///< at most; a batch that a thread left when it ended may have fewer

  void push(void* memory) noexcept {
    first = new (memory) Piece{first, nullptr};
    ++count;
  }
  void* pop() noexcept {
    Piece* p = first;
    first = p->next;
    --count;
    return p;
  }
};

/// Batches that threads gave back and none has taken yet.
struct Shared {
  SpinLock lock;
  std::array<Piece*, classes> batches{};
};
constinit Shared shared;

void give(size_t c, Piece* first) noexcept {
  if (!first) return;
  std::lock_guard guard(shared.lock);
  first->next_batch = shared.batches[c];
  shared.batches[c] = first;
}

List take(size_t c) noexcept {
  std::lock_guard guard(shared.lock);
  Piece* first = shared.batches[c];
  if (!first) return {};
  shared.batches[c] = first->next_batch;
  return {first, batch};
}

/// The lists of one thread. Nothing is destroyed with the thread: destructors of other thread-local objects may still free nodes.
struct Local {
  std::array<List, classes> lists{};
  std::byte* next = nullptr;
  std::byte* end = nullptr;

  void* cut(size_t bytes) {
    if (size_t(end - next) < bytes) {
      next = static_cast<std::byte*>(::operator new(chunk_bytes));
      end = next + chunk_bytes;
    }
    void* memory = next;
    next += bytes;
    return memory;
  }
};
constinit thread_local Local local;

/// Gives a thread's lists to the others when it ends.
void give_back_at_exit() noexcept {
  struct AtExit {
    ~AtExit() {
      for (size_t c = 0; c < classes; ++c) {
        give(c, local.lists[c].first);
        local.lists[c] = {};
      }
    }
  };
  thread_local AtExit at_exit;
  (void)at_exit;
}

}  // namespace

void* allocate_node(size_t size) {
  if (!pooled || size > largest) return ::operator new(size);
  const size_t c = (size + granule - 1) / granule;
  List& list = local.lists[c];
  if (!list.first) list = take(c);
  return list.first ? list.pop() : local.cut(c * granule);
}

void free_node(void* memory, size_t size) noexcept {
  if (!pooled || size > largest) return ::operator delete(memory);
  const size_t c = (size + granule - 1) / granule;
  List& list = local.lists[c];
  if (!list.first) give_back_at_exit();
  list.push(memory);
  if (list.count < 2 * batch) return;
  List given;
  while (list.first && given.count < batch) given.push(list.pop());
  give(c, given.first);
}

}  // namespace tinygrad::detail
