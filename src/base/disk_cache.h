#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinygrad {

/// `tinygrad_cpp` in $XDG_CACHE_HOME or ~/.cache; empty when neither is known.
std::string cache_directory();

struct DiskCacheConfig {
  std::string path = {};                   ///< of the database, whose folders are made; empty is no cache
  uint64_t max_bytes = uint64_t{2} << 30;  ///< of values; beyond it, those unused for the longest time go
  int busy_ms = 1000;                      ///< how long to wait for another process's lock
  std::function<int64_t()> clock = {};     ///< seconds, for tests
};

/// Blobs by table name and key in an SQLite file, shared by threads and processes and opened at the first use.
///
/// It never fails: what cannot be read is a miss and what cannot be written is not kept, with one log line at DEBUG=1 for a
/// database that is corrupt, locked, read-only, full or missing. Values carry a checksum and a format version; one that does
/// not match is a miss. With CACHELEVEL=0 or CCACHE=0 in the caller's options it is not touched.
///
/// Use is noted once an hour for each value, so "unused for the longest time" is that precise. Eviction goes down to 80 % of
/// the bound. The file does not shrink: SQLite fills the freed pages with later values.
class DiskCache {
 public:
  explicit DiskCache(DiskCacheConfig config);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  std::optional<std::string> get(std::string_view table, std::string_view key);
  void put(std::string_view table, std::string_view key, std::string_view value);
  /// Drops all values.
  void clear();

 private:
  class Caches;
  struct State;
  std::unique_ptr<State> state_;
};

/// The cache that CACHEDB and CACHEDB_MAX_MB of the caller say.
DiskCacheConfig disk_cache_config();
/// The process's cache, made at the first use with the caller's configuration. Never destroyed; a child of fork() has its own.
DiskCache& disk_cache();

}  // namespace tinygrad
