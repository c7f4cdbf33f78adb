#include "uop/devices.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <unordered_map>

#include <fmt/core.h>
#include <tinygrad/errors.h>

namespace tinygrad {

namespace {

/// Numbers from 0 on in the order in which keys come first.
class Numbers {
 public:
  uint32_t of(uint64_t key) { return known_.try_emplace(key, uint32_t(known_.size())).first->second; }

 private:
  std::unordered_map<uint64_t, uint32_t> known_;
};

}  // namespace

Devices Devices::interned(std::vector<Symbol> names, std::vector<uint32_t> values) {
  Devices out;
  if (names.size() == 1) out.only_ = names[0];
  if (names.size() < 2) return out;
  using Key = std::pair<std::vector<Symbol>, std::vector<uint32_t>>;
  // Never destroyed: facts of nodes may be asked for until the last moment.
  static std::mutex& mutex = *new std::mutex;
  static std::map<Key, Several>& known = *new std::map<Key, Several>;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known.try_emplace(Key{std::move(names), std::move(values)});
  Several& several = at->second;
  if (is_new) {
    several.names = at->first.first;
    several.values = at->first.second;
    Numbers parts;
    for (uint32_t s = 0; s < several.names.size(); ++s) {
      const auto device = uint64_t(std::ranges::find(several.names, several.names[s]) - several.names.begin());
      several.parts.push_back(parts.of(uint64_t(several.values[s]) << 32 | device));
      if (several.parts[s] == several.first_shards.size()) several.first_shards.push_back(s);
    }
    several.hash = hash_combine(hash_range(std::span<const Symbol>(several.names)), hash_range(std::span<const uint32_t>(several.values)));
  }
  out.several_ = &several;
  return out;
}

Devices Devices::of(std::span<const Symbol> names) {
  std::vector<uint32_t> values(names.size());
  for (uint32_t s = 0; s < values.size(); ++s) values[s] = s;
  return interned({names.begin(), names.end()}, std::move(values));
}

Devices Devices::parse(std::string_view list) {
  std::vector<Symbol> names;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    std::string_view name = list.substr(at, end - at);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (name.empty()) throw ValueError(fmt::format("devices: \"{}\" has an empty name; write them as \"CPU,CPU:1\"", list));
    names.emplace_back(name);
    at = end + 1;
  }
  return of(names);
}

Symbol Devices::operator[](size_t shard) const {
  if (shard >= size()) throw DeviceError(fmt::format("no shard {} of a value that lives on {} only", shard, to_string(*this)));
  return several_ ? several_->names[shard] : only_;
}

bool Devices::has(Symbol device) const {
  const auto is_it = [&](Symbol name) { return name == device || without_rank(name) == device; };
  return several_ ? std::ranges::any_of(several_->names, is_it) : !empty() && is_it(only_);
}

Symbol Devices::only() const {
  if (several_) throw DeviceError(fmt::format("a value lives on {}, where one device is expected", to_string(*this)));
  return only_;
}

Devices Devices::with_values(FunctionRef<uint64_t(size_t shard)> key) const {
  if (!several_) return *this;
  std::vector<uint32_t> values;
  Numbers known;
  for (size_t s = 0; s < size(); ++s) values.push_back(known.of(key(s)));
  return interned(several_->names, std::move(values));
}

Devices Devices::apart() const {
  return with_values([](size_t s) { return uint64_t(s); });
}

Devices Devices::common_values(const Devices& a, const Devices& b) {
  if (a == b) return a;
  return a.with_values([&](size_t s) { return uint64_t(a.value_of(s)) << 32 | b.value_of(s); });
}

bool Devices::has_same_shards(const Devices& other) const {
  return *this == other || (several_ && other.several_ && several_->names == other.several_->names);
}

std::strong_ordering operator<=>(const Devices& a, const Devices& b) {
  if (a == b) return std::strong_ordering::equal;
  if (const auto c = a.size() <=> b.size(); c != 0) return c;
  for (size_t s = 0; s < a.size(); ++s)
    if (const auto c = a[s] <=> b[s]; c != 0) return c;
  for (size_t s = 0; s < a.size(); ++s)
    if (const auto c = a.value_of(s) <=> b.value_of(s); c != 0) return c;
  return std::strong_ordering::equal;
}

int rank_of(Symbol device) {
  const std::string_view name = device.str();
  const size_t at = name.find('@');
  int rank = -1;
  // Names of files may have the character, too.
  if (at == name.npos || name.find('/') < at || name.find('.') < at) return rank;
  const auto [stop, error] = std::from_chars(name.data() + at + 1, name.data() + name.size(), rank);
  return error == std::errc() && stop == name.data() + name.size() ? rank : -1;
}

Symbol without_rank(Symbol device) {
  return rank_of(device) < 0 ? device : Symbol(std::string_view(device.str()).substr(0, device.str().find('@')));
}

std::string to_string(const Devices& devices) {
  std::string out;
  for (size_t i = 0; i < devices.size(); ++i) out += (i == 0 ? "" : ", ") + std::string(devices[i].str());
  return out;
}

}  // namespace tinygrad
