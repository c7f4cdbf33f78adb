// Large buffers of the CPU ask for huge pages.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "device/buffer.h"
#include "device/device.h"
#include "runtime/cpu/host_allocator.h"

namespace tinygrad::runtime {
namespace {

/// The kernel's flags of the mapping that has an address, " rd wr mr mw me ac hg "; empty where it tells none.
std::string flags_of(const void* address) {
  std::ifstream file("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
      here = begin <= uintptr_t(address) && uintptr_t(address) < end;
    else if (here && line.starts_with("VmFlags:"))
      return line.substr(8) + " ";
  }
  return {};
}

bool has_huge_pages(const void* address) { return flags_of(address).find(" hg ") != std::string::npos; }

class HugePages : public testing::Test {
 protected:
  void SetUp() override {
    std::string modes;
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), modes);
    if (modes.empty() || modes.find("[never]") != std::string::npos) GTEST_SKIP() << "this system has no transparent huge pages";
    if (flags_of(&modes).empty()) GTEST_SKIP() << "this system does not tell the flags of mappings";
  }
};

TEST_F(HugePages, AreAskedForWhereMemoryIsLarge) {
  for (const size_t bytes : {huge_page_bytes, 3 * huge_page_bytes + 12345, 64 * huge_page_bytes}) {
    auto* memory = static_cast<std::byte*>(allocate_host(bytes));
    ASSERT_TRUE(memory);
    EXPECT_EQ(uintptr_t(memory) % huge_page_bytes, 0u);
    EXPECT_TRUE(has_huge_pages(memory)) << bytes;
    EXPECT_TRUE(has_huge_pages(memory + bytes / huge_page_bytes * huge_page_bytes - 1)) << bytes;
    free_host(memory);
  }
}

TEST_F(HugePages, HoldBuffers) {
  const BufferPtr buffer = Buffer::make(Device::get("CPU"), 4 << 20, DType::float32);
  buffer->ensure_allocated();
  EXPECT_TRUE(has_huge_pages(buffer->handle()));
}

}  // namespace
}  // namespace tinygrad::runtime
