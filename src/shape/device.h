#pragma once
/// The devices of every node, inferred from its sources.

#include <span>
#include <string>
#include <vector>

#include <tinygrad/symbol.h>
#include "uop/uop.h"

namespace tinygrad {

/// Where a value lives: on no device of its own, on one, or, sharded, on several, in the order of the shards. Interned: equal sets compare
/// as fast as pointers, and one device takes no look-up. Lives as long as the process. Safe for many threads.
class Devices {
 public:
  Devices() = default;
  Devices(Symbol only) : only_(only) {}
  /// The same as one device if there is one.
  static Devices of(std::span<const Symbol> names);

  bool empty() const { return !several_ && only_.empty(); }
  size_t size() const { return several_ ? several_->size() : only_.empty() ? 0 : 1; }
  /// DeviceError if there is no such shard.
  Symbol operator[](size_t shard) const;
  /// The device, empty if there is none. DeviceError if there are several.
  Symbol only() const;

  friend bool operator==(const Devices&, const Devices&) = default;

 private:
  Symbol only_;
  const std::vector<Symbol>* several_ = nullptr;
};
/// "CPU", "CPU, CPU:1".
std::string to_string(const Devices& devices);

/// The devices a value lives on; empty for constants without one, index expressions, kernel-level values and groups of effects. Cached in
/// the node. Throws DeviceError if sources live on different devices.
Devices devices_of(const UOp& u);
/// The only one of them. Throws DeviceError for a sharded value, too.
Symbol device_of(const UOp& u);

}  // namespace tinygrad
