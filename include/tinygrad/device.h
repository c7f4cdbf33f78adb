#pragma once
/// Which devices there are, and what a device is: docs/new-backend.md shows how to add one. A device is named `NAME[:INDEX]`, in any case:
/// "CPU", "cuda:1".

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/allocator.h>
#include <tinygrad/code_path.h>
#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/kernel_info.h>
#include <tinygrad/queue.h>
#include <tinygrad/render.h>
#include <tinygrad/symbol.h>
#include <tinygrad/target.h>

namespace tinygrad {

/// One kind of device that the library knows.
struct DeviceStatus {
  std::string name;
  bool works = false;
  std::string reason;  ///< why it does not work
};

/// All kinds of devices, in order of preference, each followed by its other renderers and the processors that it emulates, as the option
/// DEV names them ("CPU:CLANG", "CPU:LLVM:rv64gcv").
TINYGRAD_EXPORT std::vector<DeviceStatus> available_devices();
/// The device that tensors are on when none is named: that of the option DEV, else the first that works. Throws DeviceError.
TINYGRAD_EXPORT std::string default_device();
/// The name under which a device is known: upper case, without ":0". Throws DeviceError for an unknown kind.
TINYGRAD_EXPORT std::string canonical_device(std::string_view name);
/// Waits until everything launched on a device has finished. Throws DeviceError if something of that failed.
TINYGRAD_EXPORT void synchronize(std::string_view device);
/// Whether kernels of a device compute with a dtype as it is; others are computed through dtypes that it has.
TINYGRAD_EXPORT bool is_dtype_supported(DType dtype, std::string_view device);

/// What a device was opened as, its memory in bytes, and what it has run.
struct DeviceStatistics {
  std::string name, target;  ///< "CPU", "CPU:LLVM:znver4"
  size_t in_use = 0, peak = 0, cached = 0;
  uint64_t kernels = 0;  ///< launches
  uint64_t waits = 0;    ///< times that the host waited for it
};
/// Opens the device if it is not. Throws DeviceError.
TINYGRAD_EXPORT DeviceStatistics device_statistics(std::string_view device);
/// The statistics of all devices that the process has opened, once for each renderer and architecture.
TINYGRAD_EXPORT std::vector<DeviceStatistics> opened_devices();

// What follows is for those who write a backend.

/// A kernel loaded on a device. Safe to launch from several threads at once.
class TINYGRAD_EXPORT Kernel {
 public:
  virtual ~Kernel();

  /// Runs the kernel once. `buffers` are device handles by slot (see Allocator), `variables` the values in the order of
  /// KernelInfo::variables. With `wait`, returns after the kernel has finished and gives the seconds that it ran.
  virtual std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                                       bool wait = false) = 0;
};

/// A launch of a list that runs again and again. The buffers and variables may be others each time.
struct GraphLaunch {
  Kernel* kernel = nullptr;
  const KernelInfo* info = nullptr;
  std::span<void* const> buffers;
  std::span<const int64_t> variables;
  LaunchDims dims;
};

/// A list of launches as one object of the device, such as a CUDA graph. Used by one thread at a time.
class TINYGRAD_EXPORT Graph {
 public:
  virtual ~Graph();

  /// Runs the list it was made of; each launch sees what those before it wrote. `changed` are the numbers of the launches that differ, in
  /// buffers, variables or dims, from the run before. As with a kernel, `wait` waits and gives the seconds that it ran.
  virtual std::optional<double> launch(std::span<const GraphLaunch> launches, std::span<const uint32_t> changed, bool wait = false) = 0;
};

/// Which device, and how code for it is made: `NAME[:INDEX][:RENDERER[:ARCH]]`, or `NAME:PATH` with a path that begins with '/' or '.';
/// of DISK with any path, which becomes absolute, or `DISK:shm:NAME` for shared memory of the system. `NAME[:INDEX]@RANK` is a device of
/// one of the ranks (tinygrad/comm.h).
struct TINYGRAD_EXPORT DeviceChoice {
  std::string name;  ///< "CPU", upper case
  int index = 0;
  std::string renderer;     ///< "LLVM"; empty: the backend's first
  std::string arch;         ///< "x86-64-v3"; empty: the machine's
  std::string path;         ///< "/tmp/weights.bin", "shm:weights"; of devices that are files
  std::optional<int> rank;  ///< whose device it is; none: each rank's own

  /// Throws DeviceError for a text of another form.
  static DeviceChoice parse(std::string_view text);
  /// "CPU", "CUDA:1", "CPU@1", "DISK:/tmp/weights.bin"
  std::string canonical() const;
  friend auto operator<=>(const DeviceChoice&, const DeviceChoice&) = default;
};

class LaunchLog;

/// An opened device: it has memory, loads binaries and runs kernels; what makes binaries is its code path. Safe for several threads; never
/// destroyed.
class TINYGRAD_EXPORT Device {
 public:
  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// The device of this name ("CPU", "cuda:1"), opened on first use. Where the option DEV names the same device, its renderer and
  /// architecture are chosen. Throws DeviceError for an unknown device, listing the known ones, and for one that cannot be opened.
  static Device& get(std::string_view name);
  /// The name under which a device is known: upper case, without ":0".
  static Symbol canonical(std::string_view name);
  /// The device of the option DEV, else the first that works. Throws DeviceError.
  static Symbol default_name();

  /// "CPU", "CUDA:1"
  Symbol name() const { return name_; }
  /// The machine that kernels are generated for.
  const Target& target() const { return target_; }
  bool supports(DType dtype) const { return target_.supports(dtype); }
  Allocator& allocator() { return *allocator_; }

  // From a linear program to a kernel.
  /// How code for it is made. Throws DeviceError for a device that only holds data.
  const CodePath& code_path() const;
  // The functions of its code path: the text of a linear program, the binary of a text (or the text itself, where the driver compiles), and
  // the instructions of a binary, as text.
  std::string render(const UOp& linear, const KernelInfo& info) const { return code_path().render(target_, linear, info); }
  std::string compile(const std::string& source) const;
  std::string disassemble(const std::string& binary) const;
  /// The kernel of a binary, or of a text where the driver compiles; from an empty one, a device that interprets takes the program itself.
  /// Throws DeviceError, and CompileError with what the driver says of a text.
  virtual std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string& binary) = 0;
  /// Whether a tg-worker on this machine can run a binary, given its description and buffers alone.
  virtual bool runs_in_worker() const { return false; }

  // What a device may have besides.
  /// Whether launches and graphs may return before what they run has finished, and fail after that.
  virtual bool is_async() const { return false; }
  /// Waits until everything launched has finished; throws DeviceError, once, for what failed meanwhile. Everybody but wait() calls wait().
  virtual void synchronize() {}
  /// Whether make_graph() makes graphs.
  virtual bool has_graphs() const { return false; }
  /// The list as one object; null where these launches are better made one by one.
  virtual std::unique_ptr<Graph> make_graph(std::span<const GraphLaunch> launches);
  /// The queue that its launches go through, by which copies within lists and between devices are ordered; null if these wait for the host.
  virtual Queue* queue() { return nullptr; }
  /// Whether it records, with PROFILE on, each launch and copy by its own timestamps, by the end of synchronize(); else each launch is
  /// waited for and timed.
  virtual bool records_profile() const { return false; }

  /// synchronize(); if that throws, what was written since the last time is lost.
  void wait();
  LaunchLog& launches() const { return *launches_; }

 protected:
  /// A code path without a renderer: it only holds data.
  Device(std::string_view name, const Target& target, std::unique_ptr<Allocator> allocator, const CodePath& code);

 private:
  const Symbol name_;
  const Target target_;
  const CodePath code_;
  const std::unique_ptr<Allocator> allocator_;
  const std::unique_ptr<LaunchLog> launches_;
};

/// A kind of device that can be opened. What it names must live as long as the process.
struct Backend {
  std::string_view name;
  bool may_be_default = true;  ///< the default device is the first of the known ones that works
  /// Why no device of this kind can be opened here, and what to install; empty if one can. Must be quick and quiet.
  std::string (*unavailable)() = nullptr;
  /// How code for it can be made; the first is what a plain NAME means. Empty for what only holds data.
  std::span<const CodePath> code_paths = {};
  /// Throws DeviceError.
  std::unique_ptr<Device> (*open)(const DeviceChoice& choice) = nullptr;
};

/// Adds a kind of device behind those of the library. One of a known name is left out.
TINYGRAD_EXPORT void register_backend(const Backend& backend);

}  // namespace tinygrad
