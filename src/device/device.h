#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/device.h>

#include "device/allocator.h"
#include "device/kernel.h"
#include "target/target.h"

namespace tinygrad {

/// Which device, and how code for it is made: `NAME[:INDEX][:RENDERER[:ARCH]]`.
struct DeviceChoice {
  std::string name;  ///< "CPU", upper case
  int index = 0;
  std::string renderer;  ///< "LLVM"; empty: the backend's first
  std::string arch;      ///< "x86-64-v3"; empty: the machine's

  /// Throws DeviceError for a text of another form.
  static DeviceChoice parse(std::string_view text);
  /// "CPU", "CUDA:1"
  std::string canonical() const;
  friend auto operator<=>(const DeviceChoice&, const DeviceChoice&) = default;
};

/// An opened device: memory, and the way from a linear program to a kernel that runs. Safe for several threads; never destroyed.
class Device {
 public:
  virtual ~Device() = default;
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
  /// What kernels are generated for.
  const Target& target() const { return target_; }
  bool supports(DType dtype) const { return target_.supports(dtype); }
  Allocator& allocator() { return *allocator_; }

  // From a linear program to a kernel. The first two are pure functions of their arguments and the target.
  /// The source text of a linear program, as DEBUG=4 shows it.
  virtual std::string render(const UOp& linear, const KernelInfo& info) = 0;
  /// The binary of a source text, from the disk cache where it is known. Throws CompileError. A device that interprets programs
  /// returns an empty binary.
  virtual std::string compile(const std::string& source) = 0;
  /// The kernel of a binary (an interpreting device uses the program itself).
  virtual std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string& binary) = 0;
  /// Whether a tg-worker on this machine can run a binary, given its description and buffers alone.
  virtual bool runs_in_worker() const { return false; }
  /// What DEBUG=7 shows of a binary; empty if there is nothing to show.
  virtual std::string disassemble(const std::string& binary);

  /// Waits until everything launched has finished; rethrows an error that came up meanwhile.
  virtual void synchronize() {}

 protected:
  Device(std::string_view name, const Target& target, std::unique_ptr<Allocator> allocator)
      : name_(name), target_(target), allocator_(std::move(allocator)) {}

 private:
  Symbol name_;
  Target target_;
  std::unique_ptr<Allocator> allocator_;
};

/// A renderer and its compiler.
struct CodePath {
  std::string_view renderer;  ///< "LLVM"
  /// Why kernels that are not in the disk cache cannot be compiled; empty if they can. May take long.
  std::string (*missing_compiler)() = nullptr;
};

/// A kind of device that can be opened: one table of them is in runtime/backends.cpp.
struct Backend {
  std::string_view name;
  bool may_be_default = true;  ///< the default device is the first of the table that works
  /// Why no device of this kind can be opened here; empty if one can. Must be quick and quiet.
  std::string (*unavailable)() = nullptr;
  /// How code for it can be made; the first is what a plain NAME means. Empty where there is nothing to choose or to miss.
  std::span<const CodePath> code_paths = {};
  /// Throws DeviceError.
  std::unique_ptr<Device> (*open)(const DeviceChoice& choice) = nullptr;
};

/// Adds backends to the registry, in order of preference; those of a known name are left out. runtime/ calls it.
void register_backends(std::span<const Backend> backends);
/// All of them, and which work.
std::vector<DeviceStatus> registered_devices();

}  // namespace tinygrad
