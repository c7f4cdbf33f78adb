#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/profile_log.h"
#include "runtime/metal/objc.h"

namespace tinygrad::runtime::metal {

/// Devices of the system, in its order. Throws DeviceError where there is no Metal.
std::vector<Object> all_devices();

/// A GPU and the one queue that everything on it goes through, in order. Its memory is the host's: handles are addresses of both. Safe for
/// several threads.
class Gpu {
 public:
  /// Throws DeviceError for a number that there is no device of.
  explicit Gpu(int number);

  Id device() const { return device_.get(); }
  /// Within a Pool.
  Id new_commands() const { return send(queue_.get(), "commandBuffer"); }
  /// Starts what was recorded, a launch of this kernel; wait() is told how it went.
  void commit(Id commands, const std::string& kernel);
  /// Waits for one that was committed, and everything before it.
  static void wait_for(Id commands) { send<void>(commands, "waitUntilCompleted"); }
  /// Waits for everything. Throws DeviceError for what failed meanwhile.
  void wait();

  /// Memory of a size, aligned to 16 KiB; or, with `external`, memory of the host's that is. nullptr where there is none.
  void* allocate(size_t bytes, void* external);
  void free(void* address) noexcept;
  /// The MTLBuffer that an address is in, and where in it. Throws DeviceError for memory of another device.
  std::pair<Id, size_t> buffer_of(void* address) const;

 private:
  struct Buffer {
    Object buffer;
    size_t bytes = 0;
  };

  Object device_, queue_;
  ProfileLog<Object> profile_;  // command buffers
  mutable std::mutex mutex_;    // of what follows
  std::vector<Object> running_;
  std::map<std::byte*, Buffer> buffers_;
};

}  // namespace tinygrad::runtime::metal
