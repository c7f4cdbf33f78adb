#pragma once
/// Writes small checkpoints for tests, right ones and wrong ones, byte by byte.

#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/archives.h"

namespace tinygrad::test::pickle {

inline std::string text(std::string_view value) { return "X" + little(static_cast<uint32_t>(value.size())) + std::string(value); }
inline std::string integer(int64_t value) {
  if (value >= INT32_MIN && value <= INT32_MAX) return "J" + little(static_cast<uint32_t>(value));
  return "\x8a\x08" + little(static_cast<uint64_t>(value));
}
inline std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
inline std::string join(const std::vector<std::string>& parts) { return std::accumulate(parts.begin(), parts.end(), std::string()); }
inline std::string tuple(const std::vector<std::string>& parts) { return "(" + join(parts) + "t"; }
inline std::string list(const std::vector<std::string>& parts) { return "](" + join(parts) + "e"; }
/// Keys and values one after another.
inline std::string dict(const std::vector<std::string>& parts) { return "}(" + join(parts) + "u"; }
inline std::string call(const std::string& callee, const std::vector<std::string>& args) { return callee + tuple(args) + "R"; }
inline std::string sizes(const std::vector<int64_t>& values) {
  std::vector<std::string> parts;
  for (const int64_t v : values) parts.push_back(integer(v));
  return tuple(parts);
}
inline std::string ordered_dict() { return call(global("collections", "OrderedDict"), {}); }
inline std::string rebuild(const std::string& name) { return global("torch._utils", "_rebuild_" + name); }

inline std::string storage(const std::string& type, const std::string& key, int64_t count) {
  return tuple({text("storage"), global(type == "UntypedStorage" ? "torch.storage" : "torch", type), text(key), text("cpu"),
                integer(count)}) +
         "Q";
}
/// As the stream format has it.
inline std::string stream_storage(const std::string& type, const std::string& key, int64_t count, const std::string& view = "N") {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), integer(count), view}) + "Q";
}
inline std::string tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& size,
                          const std::vector<int64_t>& stride) {
  return call(rebuild("tensor_v2"), {storage, integer(offset), sizes(size), sizes(stride), "\x89", ordered_dict()});
}
inline std::string tensor_v3(const std::string& storage, int64_t offset, const std::vector<int64_t>& size,
                             const std::vector<int64_t>& stride, const std::string& dtype) {
  return call(rebuild("tensor_v3"), {storage, integer(offset), sizes(size), sizes(stride), "\x89", ordered_dict(), global("torch", dtype)});
}
inline std::string quantized(const std::string& storage, const std::vector<int64_t>& size, const std::vector<int64_t>& stride,
                             const std::string& parameters) {
  return call(rebuild("qtensor"), {storage, integer(0), sizes(size), sizes(stride), parameters, "\x89", ordered_dict()});
}
inline std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A zip archive as torch.save writes it, of this object and storages; `more` come last.
inline std::string archive(const std::string& object, const std::vector<std::pair<std::string, std::string>>& storages,
                           const std::vector<ZipMember>& more = {}, bool deflate = false) {
  std::vector<ZipMember> members{{"root/data.pkl", whole(object), deflate}, {"root/version", "3\n"}};
  for (const auto& [key, bytes] : storages) members.push_back({"root/data/" + key, bytes, deflate});
  members.insert(members.end(), more.begin(), more.end());
  return zip_of(members);
}

struct StreamStorage {
  std::string key;
  int64_t count;
  std::string bytes;
};
inline const std::string magic = std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
inline std::string machine(bool little_endian = true) { return whole(dict({text("little_endian"), little_endian ? "\x88" : "\x89"})); }
/// The stream of pickles of before.
inline std::string stream(const std::string& object, const std::vector<StreamStorage>& storages) {
  std::vector<std::string> keys;
  std::string data;
  for (const StreamStorage& s : storages) {
    keys.push_back(text(s.key));
    data += little(static_cast<uint64_t>(s.count)) + s.bytes;
  }
  return magic + whole(integer(1001)) + machine() + whole(object) + whole(list(keys)) + data;
}

}  // namespace tinygrad::test::pickle
