#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "runtime/emulated/image.h"
#include "runtime/emulated/shared_heap.h"

namespace tinygrad::runtime {

/// The emulated process that runs kernels: one for a device, started at the first launch, and again after a kernel has crashed it. It maps
/// the heap's file; requests and answers go through a socket, the arguments of a launch through the beginning of the file. Safe for several
/// threads, whose launches take turns.
class Runner {
 public:
  /// The emulator, a path and arguments, runs the program, which is made at the first launch. `device` is for messages.
  Runner(std::string device, SharedHeap& heap, std::vector<std::string> emulator, std::function<std::string()> make_program);

  /// A kernel's place in the process; of one that is gone, nowhere.
  struct Place {
    uint64_t process = 0;
    uint64_t address = 0;
  };

  /// Runs a kernel to its end, with `buffers` and `scratch` in the heap. Where `place` is of no running process, the image is loaded first.
  /// Throws DeviceError if it crashes.
  void run(const Image& image, Place& place, std::span<void* const> buffers, std::span<const int64_t> variables, int64_t chunks,
           const void* scratch);
  void unload(const Image& image, Place place) noexcept;

 private:
  struct Request {
    uint64_t what = 0, a = 0, b = 0, c = 0, d = 0;
  };

  void start();
  void load(const Image& image, Place& place);
  uint64_t ask(const Request& request);
  uint64_t exchange(const void* bytes, size_t size);
  [[noreturn]] void lost();
  /// In the process, of something in the heap.
  uint64_t address_of(const void* memory) const;

  const std::string device_;
  SharedHeap& heap_;
  const std::vector<std::string> emulator_;
  const std::function<std::string()> make_program_;
  std::mutex mutex_;
  std::unique_ptr<ChildProcess> process_;
  uint64_t number_ = 0;  ///< of the process
  uint64_t memory_ = 0;  ///< where it has the file
  const pid_t owner_;
};

}  // namespace tinygrad::runtime
