#pragma once
/// Names of the devices that a value is on.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tinygrad/symbol.h>
#include "base/function_ref.h"
#include "base/hash.h"

namespace tinygrad {

/// Where a value lives: on no device of its own, on one, or on several, in the order of its shards. A device may have several shards, and
/// shards may be known to be equal: those of them that are on one device are one part, memory that there is once. Interned: equal sets
/// compare as fast as pointers, and one device takes no look-up. Lives as long as the process. Safe for many threads.
class Devices {
 public:
  Devices() = default;
  Devices(Symbol only) : only_(only) {}
  Devices(const char* only) : only_(only) {}
  /// A shard on each, no two of them known to be equal. The same as one device if there is one.
  static Devices of(std::span<const Symbol> names);
  /// The names of a list with commas, "CPU,CPU:1"; ValueError for an empty name in it.
  static Devices parse(std::string_view list);

  bool empty() const { return !several_ && only_.empty(); }
  size_t size() const { return several_ ? several_->names.size() : only_.empty() ? 0 : 1; }
  bool are_several() const { return several_ != nullptr; }
  /// DeviceError if there is no such shard.
  Symbol operator[](size_t shard) const;
  /// Whether a shard is on the device; on that of each rank are those of its name.
  bool has(Symbol device) const;
  Symbol first() const { return several_ ? several_->names[0] : only_; }
  /// The device, empty if there is none. DeviceError if there are several.
  Symbol only() const;

  /// Parts are numbered in the order of their first shards.
  size_t part_count() const { return several_ ? several_->first_shards.size() : size(); }
  size_t part_of(size_t shard) const { return several_ ? several_->parts[shard] : 0; }
  size_t first_shard(size_t part) const { return several_ ? several_->first_shards[part] : 0; }
  /// A number that equal shards have in common, on whatever devices they are. They are numbered in the order of their first shards.
  size_t value_of(size_t shard) const { return several_ ? several_->values[shard] : 0; }
  /// The same shards, where those with the same key are equal.
  Devices with_values(FunctionRef<uint64_t(size_t shard)> key) const;
  /// The same shards, no two of them known to be equal.
  Devices apart() const;
  /// Of a value that is made of both: shards are equal where they are in both. Both have the same shards.
  static Devices common_values(const Devices& a, const Devices& b);
  bool has_same_shards(const Devices& other) const;

  friend bool operator==(const Devices&, const Devices&) = default;
  friend std::strong_ordering operator<=>(const Devices& a, const Devices& b);
  friend uint64_t hash_value(const Devices& d) noexcept { return d.several_ ? d.several_->hash : hash_value(d.only_); }

 private:
  struct Several {
    std::vector<Symbol> names;
    std::vector<uint32_t> values, parts, first_shards;
    uint64_t hash = 0;
  };
  static Devices interned(std::vector<Symbol> names, std::vector<uint32_t> values);

  Symbol only_;
  const Several* several_ = nullptr;
};
/// Of "CPU@1" 1; -1 for the device of each rank.
int rank_of(Symbol device);
/// The device of each rank that is called as that of one: "CPU" for "CPU@1".
Symbol without_rank(Symbol device);
/// "CPU, CPU:1".
std::string to_string(const Devices& devices);

/// Shards along one direction of a mesh: shard s is at s / stride % count.
struct MeshAxis {
  int32_t count = 1, stride = 1;
  auto operator<=>(const MeshAxis&) const = default;

  int64_t at(size_t shard) const { return int64_t(shard) / stride % count; }
};
inline uint64_t hash_value(const MeshAxis& m) noexcept { return hash_all(m.count, m.stride); }

/// An axis of a value that is cut into as many equal parts as the mesh has shards along `mesh`, the last ones padded. Of memory it may be
/// gathered: then whoever reads it sees an axis that is not cut.
struct ShardedAxis {
  int32_t axis = 0;
  MeshAxis mesh = {};
  bool is_gathered = false;
  auto operator<=>(const ShardedAxis&) const = default;
};
inline uint64_t hash_value(const ShardedAxis& a) noexcept { return hash_all(a.axis, a.mesh, a.is_gathered); }

}  // namespace tinygrad
