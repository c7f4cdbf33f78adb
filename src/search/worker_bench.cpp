#include "search/worker_bench.h"

#include <sys/resource.h>
#include <ctime>

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "runtime/cpu/host_allocator.h"

namespace tinygrad::search {
namespace {

constexpr uint32_t most_threads = 4096;
constexpr double patience = 1.5;  // one run that takes so many times too long says enough
constexpr double slice_s = 1e-3;  // a shorter run is rarely interrupted, and the median leaves that out
constexpr uint64_t most_cold_bytes = uint64_t{1} << 28, most_scratch_bytes = uint64_t{1} << 30;

// Around buffers, with memory in use on both sides: a vector access whose mask leaves out what lies beyond a buffer takes hundreds of
// cycles where that is no memory at all. Whole pages, so that buffers are as far apart within one as in a program's arena.
constexpr size_t margin = runtime::huge_page_bytes, gap = 4096;
constexpr int untouched = 0xff;  // of each byte: read as a float it is a NaN

bool is_untouched(const std::byte* begin, const std::byte* end) {
  return begin == end || (*begin == std::byte{untouched} && std::memcmp(begin, begin + 1, size_t(end - begin) - 1) == 0);
}

int64_t times_interrupted() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

/// Processor time of the calling thread.
double processor_seconds() {
  timespec t = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

}  // namespace

double makespan(std::span<const double> pieces, size_t processors) {
  std::vector<double> busy(processors);
  for (const double piece : pieces) *std::ranges::min_element(busy) += piece;
  return std::ranges::max(busy);
}

WorkerBench::WorkerBench(const WorkerSetup& setup, const MemoryFile& shared)
    : setup_(setup), shared_(shared), pool_(std::clamp(setup.threads, 1u, most_threads)) {
  if (setup.cold_bytes > most_cold_bytes) throw FormatError(fmt::format("tg-worker: {} bytes to read", setup.cold_bytes));
  cold_.resize(setup.cold_bytes * pool_.threads() / sizeof(uint64_t), 1);
  for (const WorkerBuffer& b : setup.buffers) {
    shared_.at(b.content, b.bytes);
    if (b.written) shared_.at(b.result, b.bytes);
  }
  allocate();
  fill_all();
}

void WorkerBench::allocate() {
  std::vector<size_t> begins;
  size_t end = margin;
  for (const WorkerBuffer& b : setup_.buffers) {
    const size_t alignment = b.bytes >= runtime::huge_page_bytes ? runtime::huge_page_bytes : 64;
    begins.push_back((end + alignment - 1) / alignment * alignment);
    end = begins.back() + b.bytes + gap;
  }
  auto* memory = static_cast<std::byte*>(runtime::allocate_host(end + margin));
  if (!memory) throw OutOfMemoryError(fmt::format("tg-worker: no {} bytes for buffers", end + margin));
  memory_ = {memory, end + margin};
  for (const size_t begin : begins) buffers_.push_back(memory + begin);
}

void WorkerBench::fill(size_t i) {
  const WorkerBuffer& b = setup_.buffers[i];
  std::memcpy(buffers_[i], shared_.at(b.content, b.bytes).data(), b.bytes);
}

void WorkerBench::fill_all() {
  std::memset(memory_.data(), untouched, memory_.size());
  for (size_t i = 0; i < buffers_.size(); ++i) fill(i);
}

void WorkerBench::check() const {
  const std::byte* end = memory_.data();
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const WorkerBuffer& b = setup_.buffers[i];
    const auto* begin = static_cast<const std::byte*>(buffers_[i]);
    if (!is_untouched(end, begin)) throw DeviceError(fmt::format("it stored to what lies before argument {}", i));
    if (!b.written && std::memcmp(begin, shared_.at(b.content, b.bytes).data(), b.bytes) != 0)
      throw DeviceError(fmt::format("it stored to argument {}, which it only reads", i));
    end = begin + b.bytes;
  }
  if (!is_untouched(end, memory_.data() + memory_.size())) throw DeviceError("it stored to what lies behind its arguments");
}

std::vector<double> WorkerBench::run(const WorkerRequest& r) {
  if (r.scratch_bytes > most_scratch_bytes) throw FormatError(fmt::format("tg-worker: {} bytes a thread", r.scratch_bytes));
  const runtime::CpuCode code(std::as_bytes(std::span(r.object)), r.symbol, r.scratch_bytes);
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (setup_.buffers[i].written) fill(i);
  std::vector<double> seconds{time(code, r, true)};
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (const WorkerBuffer& b = setup_.buffers[i]; b.written) std::memcpy(shared_.at(b.result, b.bytes).data(), buffers_[i], b.bytes);
  const bool is_long = seconds[0] > slice_s;
  double sum = 0, best = seconds[0] / patience;
  while (seconds.size() <= r.repetitions && best <= r.hopeless_s && (seconds.size() <= 3 || sum < r.enough_s)) {
    seconds.push_back(time(code, r, is_long));
    sum += seconds.back();
    best = seconds.size() > 2 ? *std::min_element(seconds.begin() + 1, seconds.end()) : seconds.back() / patience;
  }
  try {
    check();
  } catch (const DeviceError&) {
    fill_all();  // for those that come after it
    throw;
  }
  return seconds;
}

/// Where `by_pieces`, a run that other processes interrupted counts as what its pieces took of processors.
double WorkerBench::time(const runtime::CpuCode& code, const WorkerRequest& r, bool by_pieces) {
  read_something_else();
  std::vector<double> pieces(by_pieces ? size_t(std::max<int64_t>(r.chunks, 1)) : 0);
  const auto piece = [&](size_t begin, size_t end) {
    const double before = processor_seconds();
    code.run_piece(buffers_, r.variables, begin, end);
    pieces[begin] = processor_seconds() - before;
  };
  const int64_t switches = times_interrupted();
  const auto start = std::chrono::steady_clock::now();
  if (by_pieces)
    pool_.run(size_t(std::max<int64_t>(r.chunks, 0)), piece);
  else
    code.run(buffers_, r.variables, r.chunks, [this]() -> ComputePool& { return pool_; });
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return by_pieces && times_interrupted() != switches ? std::min(wall, makespan(pieces, pool_.threads())) : wall;
}

/// A kernel finds in the near caches what others have left there.
void WorkerBench::read_something_else() {
  const size_t each = cold_.size() / pool_.threads();
  pool_.run(pool_.threads(), [&](size_t begin, size_t end) {
    uint64_t sum = 0;
    for (size_t i = begin * each; i < end * each; i += 8) sum += cold_[i];
    [[maybe_unused]] volatile uint64_t keep = sum;
  });
}

}  // namespace tinygrad::search
