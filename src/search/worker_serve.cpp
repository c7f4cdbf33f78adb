#include "search/worker_serve.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <ctime>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "runtime/cpu/cpu_code.h"
#include "runtime/cpu/host_allocator.h"
#include "search/worker_protocol.h"

namespace tinygrad::search {
namespace {

constexpr uint32_t most_threads = 4096;
constexpr double patience = 1.5;  // one run that takes so many times too long says enough
constexpr uint64_t most_cold_bytes = uint64_t{1} << 28, most_scratch_bytes = uint64_t{1} << 30;

/// False at the end of the stream.
bool receive(int socket, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, to, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    bytes -= size_t(n);
  }
  return true;
}

void send(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw IoError("tg-worker: the search is gone");
    bytes.remove_prefix(size_t(n));
  }
}

/// Ends the process when a request takes too long, also where nobody is left to do it.
class Limit {
 public:
  explicit Limit(double seconds) { set(std::clamp(seconds, 0.001, 86400.0)); }
  ~Limit() { set(0); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  static void set(double seconds) {
    itimerval timer = {};
    timer.it_value.tv_sec = time_t(seconds);
    timer.it_value.tv_usec = suseconds_t((seconds - double(timer.it_value.tv_sec)) * 1e6);
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
};

int64_t times_interrupted() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

/// Of all threads.
double processor_seconds() {
  timespec t = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

class SharedMemory {
 public:
  explicit SharedMemory(int file) {
    struct stat s = {};
    if (::fstat(file, &s) != 0 || s.st_size <= 0) throw FormatError("tg-worker: it has no memory file");
    size_ = uint64_t(s.st_size);
    void* m = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (m == MAP_FAILED) throw OutOfMemoryError("tg-worker: the memory file cannot be mapped");
    memory_ = static_cast<std::byte*>(m);
  }
  std::byte* at(uint64_t offset, uint64_t bytes) const {
    if (offset > size_ || bytes > size_ - offset) throw FormatError(fmt::format("tg-worker: {} bytes at {} of {}", bytes, offset, size_));
    return memory_ + offset;
  }

 private:
  std::byte* memory_;  // for as long as the process lives
  uint64_t size_ = 0;
};

class Bench {
 public:
  Bench(const WorkerSetup& setup, const SharedMemory& shared)
      : setup_(setup), shared_(shared), pool_(std::clamp(setup.threads, 1u, most_threads)) {
    if (setup.cold_bytes > most_cold_bytes) throw FormatError(fmt::format("tg-worker: {} bytes to read", setup.cold_bytes));
    cold_.resize(setup.cold_bytes * pool_.threads() / sizeof(uint64_t), 1);
    for (const WorkerBuffer& b : setup.buffers) {
      shared_.at(b.content, b.bytes);
      if (b.written) shared_.at(b.result, b.bytes);
    }
    allocate();
    for (size_t i = 0; i < buffers_.size(); ++i) fill(i);
  }

  std::vector<double> run(const WorkerRequest& r) {
    if (r.scratch_bytes > most_scratch_bytes) throw FormatError(fmt::format("tg-worker: {} bytes a thread", r.scratch_bytes));
    const runtime::CpuCode code(std::as_bytes(std::span(r.object)), r.symbol, r.scratch_bytes);
    for (size_t i = 0; i < buffers_.size(); ++i)
      if (setup_.buffers[i].written) fill(i);
    std::vector<double> seconds{time(code, r)};
    for (size_t i = 0; i < buffers_.size(); ++i)
      if (const WorkerBuffer& b = setup_.buffers[i]; b.written) std::memcpy(shared_.at(b.result, b.bytes), buffers_[i], b.bytes);
    double sum = 0, best = seconds[0] / patience;
    while (seconds.size() <= r.repetitions && best <= r.hopeless_s && (seconds.size() <= 3 || sum < r.enough_s)) {
      seconds.push_back(time(code, r));
      sum += seconds.back();
      best = seconds.size() > 2 ? *std::min_element(seconds.begin() + 1, seconds.end()) : seconds.back() / patience;
    }
    return seconds;
  }

 private:
  /// One after the other, as a program's arena has them, and with memory in use on both sides: a vector access whose mask leaves out what
  /// lies beyond a buffer takes hundreds of cycles where that is no memory at all.
  void allocate() {
    constexpr size_t margin = runtime::huge_page_bytes;
    std::vector<size_t> begins;
    size_t end = margin;
    for (const WorkerBuffer& b : setup_.buffers) {
      const size_t alignment = b.bytes >= runtime::huge_page_bytes ? runtime::huge_page_bytes : 64;
      begins.push_back((end + alignment - 1) / alignment * alignment);
      end = begins.back() + b.bytes;
    }
    auto* memory = static_cast<std::byte*>(runtime::allocate_host(end + margin));
    if (!memory) throw OutOfMemoryError(fmt::format("tg-worker: no {} bytes for buffers", end + margin));
    std::memset(memory, 0, margin);
    std::memset(memory + end, 0, margin);
    for (const size_t begin : begins) buffers_.push_back(memory + begin);
  }

  void fill(size_t i) {
    const WorkerBuffer& b = setup_.buffers[i];
    std::memcpy(buffers_[i], shared_.at(b.content, b.bytes), b.bytes);
  }

  /// A run that other processes interrupted counts as the processor time that it took, shared out among its threads.
  double time(const runtime::CpuCode& code, const WorkerRequest& r) {
    read_something_else();
    const int64_t switches = times_interrupted();
    const double processor = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    code.run(buffers_, r.variables, r.chunks, [this]() -> ComputePool& { return pool_; });
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (times_interrupted() == switches) return wall;
    const auto threads = double(std::clamp<int64_t>(r.chunks, 1, int64_t(pool_.threads())));
    return std::min(wall, (processor_seconds() - processor) / threads);
  }

  /// A kernel finds in the near caches what others have left there.
  void read_something_else() {
    const size_t each = cold_.size() / pool_.threads();
    pool_.run(pool_.threads(), [&](size_t begin, size_t end) {
      uint64_t sum = 0;
      for (size_t i = begin * each; i < end * each; i += 8) sum += cold_[i];
      [[maybe_unused]] volatile uint64_t keep = sum;
    });
  }

  const WorkerSetup setup_;
  const SharedMemory& shared_;
  ComputePool pool_;
  std::vector<void*> buffers_;  ///< for as long as the process lives
  std::vector<uint64_t> cold_;
};

WorkerReply answer(FrameKind kind, std::string_view payload, const SharedMemory& shared, std::unique_ptr<Bench>& bench) {
  WorkerReply reply;
  try {
    if (kind == FrameKind::setup && !bench) {
      bench = std::make_unique<Bench>(decode_setup(payload), shared);
    } else if (kind == FrameKind::request && bench) {
      const WorkerRequest request = decode_request(payload);
      const Limit limit(request.limit_s);
      reply.seconds = bench->run(request);
    } else {
      throw FormatError("tg-worker: a message at the wrong time");
    }
  } catch (const std::exception& e) {
    reply.error = e.what();
  }
  return reply;
}

}  // namespace

int serve_worker(int socket, int memory_file) {
  try {
    const SharedMemory shared(memory_file);
    std::unique_ptr<Bench> bench;
    for (char head[frame_header_bytes]; receive(socket, head, sizeof head);) {
      const FrameHeader header = decode_header({head, sizeof head});
      std::string payload(header.bytes, '\0');
      if (!receive(socket, payload.data(), payload.size())) return 1;
      send(socket, encode(answer(header.kind, payload, shared, bench)));
    }
    return 0;
  } catch (const std::exception&) {
    return 1;  // the search sees the end of the stream
  }
}

}  // namespace tinygrad::search
