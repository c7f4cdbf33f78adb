#pragma once
/// A libcuda without a GPU (fake_cuda.cpp): what tests ask and tell it.

#include <cstddef>
#include <string>

namespace tinygrad::test {

struct FakeCuda {
  int devices = 2;
  int version = 12040;
  int major = 9, minor = 0;
  int most_group_bytes = 227 << 10;  ///< that a kernel may be given
  size_t memory_bytes = size_t{1} << 30;
  /// The call of `failing` after so many others of it gives this error, once. "kernel" is a kernel that runs.
  std::string failing;
  int fail_after = 0, error = 0;

  size_t allocations = 0, bytes = 0, modules = 0, streams = 0, events = 0, graphs = 0;   ///< that there are now
  size_t launches = 0, kernels_run = 0, peer_copies = 0, graph_launches = 0, waits = 0;  ///< so far
};

}  // namespace tinygrad::test
