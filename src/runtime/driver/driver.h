#pragma once
/// What NVIDIA's driver and AMD's runtime have in common: a library, opened at run time, with contexts, streams, events, memory, modules
/// and graphs. GPUs (gpu.h), their memory, kernels, queues and graphs are made on top of it, and know neither vendor.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace tinygrad::runtime::driver {

using Result = int;
using DeviceNumber = int;
using DevicePointer = uint64_t;
using Context = struct ContextOfDriver*;
using Stream = struct StreamOfDriver*;
using Event = struct EventOfDriver*;
using Module = struct ModuleOfDriver*;
using Function = struct FunctionOfDriver*;
using Graph = struct GraphOfDriver*;
using GraphNode = struct GraphNodeOfDriver*;
using GraphExec = struct GraphExecOfDriver*;

/// A launch as a node of a graph.
struct KernelNode {
  Function function;
  unsigned grid[3], group[3];
  unsigned group_bytes;
  void** parameters;
  Context context;
};

// Values that both vendors share.
inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kPeerAccessAlreadyEnabled = 704;
inline constexpr unsigned kPortable = 1, kDeviceMapped = 2;  ///< flags of host_allocate

/// The functions that both call alike.
struct Functions {
#define X(function, nvidia, amd, arguments) Result(*function) arguments = nullptr;
#include "runtime/driver/functions.def"
#undef X
};

/// An opened library. Never destroyed, as devices are not.
class Driver : public Functions {
 public:
  /// A device and what calls that work on it are made in.
  struct Opened {
    DeviceNumber device = 0;
    Context context = nullptr;
  };

  Driver(std::string name, std::string library) : name_(std::move(name)), library_(std::move(library)) {}
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// "CUDA", "HIP": for messages.
  const std::string& name() const { return name_; }
  /// The name under which the library was found.
  const std::string& library() const { return library_; }

  /// Throws OutOfMemoryError or DeviceError for any other result than success: "CUDA: `what` failed: CUDA_ERROR_...: text".
  void check(Result result, std::string_view what) const;

  // What the vendors do differently.
  virtual std::string describe(Result result) const = 0;
  /// Throws DeviceError.
  virtual Opened open(int number) const = 0;
  virtual void close(DeviceNumber device) const = 0;
  /// Makes it the one that the calling thread's calls go to.
  virtual Result enter(Context context) const = 0;
  /// Lets launches of a function ask for so much memory of a group. Throws DeviceError.
  virtual void give_group_bytes(DeviceNumber device, Function function, int64_t bytes, std::string_view kernel) const = 0;
  virtual Result enable_peer(Context other) const = 0;
  virtual Result copy_to_peer(DevicePointer to, Context device, DevicePointer from, Context other, size_t bytes, Stream stream) const = 0;
  /// What kernels of the module still run ends first.
  virtual Result unload(Module module) const = 0;
  /// Adds a launch that runs after the node `before`, if there is one. The arguments are copied.
  virtual Result add_kernel(GraphNode* made, Graph graph, const GraphNode* before, const KernelNode& node) const = 0;
  virtual Result set_kernel(GraphExec graph, GraphNode node, const KernelNode& changed) const = 0;

 private:
  const std::string name_, library_;
};

/// Drivers of one vendor that are open, by the path that an option gave.
template <class VendorDriver>
class OpenDrivers {
 public:
  explicit OpenDrivers(std::unique_ptr<VendorDriver> (*open)(const std::string& path)) : open_(open) {}

  /// Opens it at the first use; where that throws, the next call tries again.
  const VendorDriver& at(const std::string& path) {
    const std::lock_guard lock(mutex_);
    auto found = by_path_.find(path);
    if (found == by_path_.end()) found = by_path_.emplace(path, open_(path)).first;
    return *found->second;
  }

 private:
  std::unique_ptr<VendorDriver> (*const open_)(const std::string& path);
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<VendorDriver>> by_path_;
};

}  // namespace tinygrad::runtime::driver
