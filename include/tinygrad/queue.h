#pragma once
/// What a device runs beside the host, in the order in which it is given: launches, copies, and points that other queues wait for.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include <tinygrad/export.h>
#include <tinygrad/kernel_info.h>

namespace tinygrad {

class Device;
class Kernel;

/// A point in a queue, raised when all commands in front of it have run.
class TINYGRAD_EXPORT Signal {
 public:
  virtual ~Signal();
  /// Until it is raised, the calling thread waits.
  virtual void wait() = 0;
};
using SignalPtr = std::shared_ptr<Signal>;

struct LaunchCommand {
  Kernel* kernel = nullptr;
  std::span<void* const> buffers;      ///< as Kernel::launch() takes them
  std::span<const int64_t> variables;  ///< likewise
  LaunchDims dims;
};
/// Into memory of the queue's device, from that of `source`, which may be the same device.
struct CopyCommand {
  void* to = nullptr;
  Device* source = nullptr;
  void* from = nullptr;
  size_t bytes = 0;
};
/// What follows runs once the signal is raised, which a queue was told to do before.
struct WaitCommand {
  SignalPtr signal;
};
/// A signal that this queue has made.
struct RaiseCommand {
  SignalPtr signal;
};
using Command = std::variant<LaunchCommand, CopyCommand, WaitCommand, RaiseCommand>;

/// The commands of a device, which run one after another. Safe for several threads. Device::synchronize() waits for them, and throws what
/// went wrong; commands behind one that failed may run, since what they wrote counts as lost. A signal that is raised behind one carries
/// that to the queues that wait for it, whose devices throw it, too.
class TINYGRAD_EXPORT Queue {
 public:
  virtual ~Queue();
  /// Behind all that was submitted before. What the commands refer to by spans may change as soon as it returns; kernels and memory stay
  /// until the commands have run. Throws DeviceError.
  virtual void submit(std::span<const Command> commands) = 0;
  virtual SignalPtr make_signal() = 0;
  /// Whether it can wait for signals of another queue without the host.
  virtual bool can_wait_for(const Queue& other) const = 0;
  /// Whether its copies reach memory of a device.
  virtual bool can_copy_from(Device& source) = 0;
};

/// A queue whose commands a thread of this process runs: for devices that are the host, and for those whose driver has no queue of its own.
/// It waits for signals of any queue, and copies from any memory that the host reaches. Kernels are launched in the options that their
/// commands were submitted in.
class TINYGRAD_EXPORT HostQueue final : public Queue {
 public:
  /// `device` is for messages.
  explicit HostQueue(std::string device);
  ~HostQueue() override;
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  void submit(std::span<const Command> commands) override;
  SignalPtr make_signal() override;
  bool can_wait_for(const Queue&) const override { return true; }
  bool can_copy_from(Device& source) override;
  /// Until all that was submitted has run. Throws DeviceError, once, for what failed, also in queues that it waited for.
  void synchronize();
  /// The same, and what failed is left for synchronize(): before memory or a kernel goes that commands may use. False if something has.
  bool drain() noexcept;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace tinygrad
