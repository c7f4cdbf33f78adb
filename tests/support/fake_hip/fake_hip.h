#pragma once
/// A libamdhip64 without a GPU (fake_hip.cpp): what tests ask and tell it.

#include <cstddef>
#include <string>

namespace tinygrad::test {

struct FakeHip {
  int devices = 2;
  int version = 60000000;
  const char* arch = "gfx942:sramecc+:xnack-";
  /// The call of `failing` after so many others of it gives this error, once.
  std::string failing;
  int fail_after = 0, error = 0;

  size_t allocations = 0, modules = 0, streams = 0, events = 0, graphs = 0;  ///< that there are now
  size_t launches = 0, peer_copies = 0, graph_launches = 0, waits = 0;       ///< so far
};

}  // namespace tinygrad::test
