#include "runtime/cpu/scratch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace tinygrad::runtime {
namespace {

constexpr size_t bytes = 1 << 20;  // memory of its own: used after it was freed, it is none

/// As a user's global whose destructor launches a kernel: the objects of the main thread are gone then.
struct Late {
  Late() = default;
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;
  ~Late() {
    std::memset(thread_scratch(bytes), 1, bytes);
    _exit(0);
  }
};

void use_and_exit() {
  static Late late;
  std::memset(thread_scratch(bytes), 1, bytes);
  std::exit(1);
}

TEST(ScratchDeathTest, IsThereForGlobalsThatAreDestroyed) { EXPECT_EXIT(use_and_exit(), testing::ExitedWithCode(0), ""); }

TEST(Scratch, BelongsToAThreadAndGrows) {
  void* mine = thread_scratch(bytes);
  EXPECT_EQ(thread_scratch(bytes / 2), mine);
  std::thread([&] { EXPECT_NE(thread_scratch(bytes), mine); }).join();
  std::memset(thread_scratch(4 * bytes), 1, 4 * bytes);
}

}  // namespace
}  // namespace tinygrad::runtime
