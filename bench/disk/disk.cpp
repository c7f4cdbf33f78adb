// 512 MiB of a file to the CPU, in GB/s, through a DISK tensor and from a mapping, as one JSON object.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <tinygrad/tinygrad.h>

using namespace tinygrad;
using Clock = std::chrono::steady_clock;

namespace {

constexpr size_t kBytes = size_t{512} << 20;

/// Best of a few, in GB/s; `cold` drops the file from the page cache before each.
double rate(const std::string& path, bool cold, const std::function<void()>& copy) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const int file = ::open(path.c_str(), O_RDONLY);
    if (cold && ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0) std::abort();
    ::close(file);
    const auto start = Clock::now();
    copy();
    best = std::max(best, double(kBytes) / std::chrono::duration<double>(Clock::now() - start).count() * 1e-9);
  }
  return best;
}

}  // namespace

int main(int, char** argv) {
  const std::string path = argv[1];
  const Tensor on_disk = Tensor::empty({int64_t(kBytes)}, {.dtype = DType::uint8, .device = "DISK:" + path});
  Tensor(std::vector<int>(1)).realize();
  on_disk.to("CPU").realize();  // memory that the cache has from now on
  const int file = ::open(path.c_str(), O_RDWR);
  std::vector<char> block(size_t{1} << 20, 'x');
  for (size_t at = 0; at < kBytes; at += block.size())
    if (::pwrite(file, block.data(), block.size(), off_t(at)) != ssize_t(block.size())) std::abort();
  ::fsync(file);
  std::vector<char> to(kBytes);
  const auto read = [&] { on_disk.to("CPU").realize(); };
  const auto map = [&] {
    void* from = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file, 0);
    ::madvise(from, kBytes, MADV_SEQUENTIAL);
    std::memcpy(to.data(), from, kBytes);
    ::munmap(from, kBytes);
  };
  std::printf(R"({"cached_read": %.2f, "cached_map": %.2f, "cold_read": %.2f, "cold_map": %.2f})"
              "\n",
              rate(path, false, read), rate(path, false, map), rate(path, true, read), rate(path, true, map));
}
