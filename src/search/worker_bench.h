#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory_file.h"
#include "base/thread_pool.h"
#include "runtime/cpu/cpu_code.h"
#include "search/worker_protocol.h"

namespace tinygrad::search {

/// Where a tg-worker runs kernels.
class WorkerBench {
 public:
  WorkerBench(const WorkerSetup& setup, const MemoryFile& shared);

  /// The times of a kernel's runs. What the first has stored is in the shared memory then. DeviceError if the kernel has stored to what is
  /// not its to store to, next to its buffers or in one that it only reads.
  std::vector<double> run(const WorkerRequest& request);

 private:
  void allocate();
  void fill(size_t buffer);
  void fill_all();
  void check() const;
  double time(const runtime::CpuCode& code, const WorkerRequest& request, bool by_pieces);
  void read_something_else();

  const WorkerSetup setup_;
  const MemoryFile& shared_;
  ComputePool pool_;
  std::span<std::byte> memory_;  ///< for as long as the process lives
  std::vector<void*> buffers_;   ///< in it
  std::vector<uint64_t> cold_;
};

/// How long pieces of work take on so many processors that do nothing else, each the next one when it is done with one.
double makespan(std::span<const double> pieces, size_t processors);

}  // namespace tinygrad::search
