#include "base/disk_cache.h"

#include <fmt/core.h>
#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "base/sqlite.h"

namespace tinygrad {
namespace {

using sqlite::Database;
using sqlite::Failure;
using sqlite::ResetAtEnd;
using sqlite::Statement;
using sqlite::Transaction;

constexpr int64_t kSchema = 1;  // of the table; another one is replaced
constexpr int64_t kFormat = 1;  // of the values; raise it when what is stored under a key changes its meaning
constexpr int64_t kNoteUseAfter = 3600;
constexpr int kMostBusy = 3;  // so many waits in vain and a process does without

constexpr const char* kCreate =
    "CREATE TABLE IF NOT EXISTS tinygrad_cache (name TEXT NOT NULL, key BLOB NOT NULL, format INTEGER NOT NULL, checksum INTEGER NOT NULL,"
    " used INTEGER NOT NULL, size INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (name, key));"
    "CREATE INDEX IF NOT EXISTS tinygrad_cache_by_use ON tinygrad_cache (used, size);";

/// Covers the key too: a value that ended up under another key is found out.
int64_t checksum_of(std::string_view table, std::string_view key, std::string_view value) {
  return static_cast<int64_t>(ContentHasher().add(table).add(key).add(value).finish().lo);
}

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Write-ahead logging lets readers and a writer work at once. Changing to it needs the file for a moment alone, for which
/// SQLite does not always wait by itself.
void use_write_ahead_log(Database& database, int busy_ms) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_ms);
  for (;;) {
    try {
      return database.execute("PRAGMA journal_mode=WAL");
    } catch (const Failure& failure) {
      if (failure.code != SQLITE_BUSY || std::chrono::steady_clock::now() >= deadline) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

void create_tables(Database& database) {
  if (database.query_integer("PRAGMA user_version") == kSchema) return;
  Transaction transaction(database);
  int64_t schema = database.query_integer("PRAGMA user_version");  // another process may have been first
  if (schema != kSchema && schema != 0) {
    if (database.query_integer("SELECT COUNT(*) FROM sqlite_master WHERE name='tinygrad_cache'") == 0)
      throw Failure(SQLITE_NOTADB, "it is the database of another program");
    database.execute("DROP TABLE tinygrad_cache");
  }
  database.execute(kCreate);
  database.execute(fmt::format("PRAGMA user_version={}", kSchema).c_str());
  transaction.commit();
}

/// The open database with its statements.
struct Connection {
  explicit Connection(const DiskCacheConfig& config) : database(open(config)) {
    if (!database.read_only()) {
      use_write_ahead_log(database, config.busy_ms);
      database.execute("PRAGMA synchronous=NORMAL");
      create_tables(database);
    }
    find.emplace(database, "SELECT value, checksum, format, used, rowid FROM tinygrad_cache WHERE name=? AND key=?");
    if (database.read_only()) return;
    store.emplace(database,
                  "INSERT OR REPLACE INTO tinygrad_cache (name, key, format, checksum, used, size, value) VALUES (?,?,?,?,?,?,?)");
    note_use.emplace(database, "UPDATE tinygrad_cache SET used=? WHERE rowid=?");
    drop.emplace(database, "DELETE FROM tinygrad_cache WHERE rowid=?");
    oldest.emplace(database, "SELECT rowid, size FROM tinygrad_cache ORDER BY used, rowid");
  }

  static Database open(const DiskCacheConfig& config) {
    std::error_code ignored;  // opening the file gives the better message
    std::filesystem::create_directories(std::filesystem::path(config.path).parent_path(), ignored);
    return Database(config.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, config.busy_ms);
  }

  int64_t sum() { return database.query_integer("SELECT SUM(size) FROM tinygrad_cache"); }

  Database database;
  std::optional<Statement> find, store, note_use, drop, oldest;
  std::optional<int64_t> total_bytes;  // from the first put() on; an estimate, as other processes add and remove too
};

}  // namespace

/// All caches of the process. SQLite's connections, locks and notes of file locks do not survive a fork(): at that moment no cache is in
/// use, and none has its file open.
class DiskCache::Caches {
 public:
  static Caches& instance() {
    static Caches* caches = new Caches;
    return *caches;
  }
  void add(State& cache);
  void remove(State& cache);

 private:
  Caches() {
    pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork(); }, [] { instance().after_fork(); });
  }
  void before_fork();
  void after_fork();

  std::mutex mutex_;
  std::vector<State*> caches_;
};

struct DiskCache::State {
  explicit State(DiskCacheConfig c) : config(std::move(c)) { Caches::instance().add(*this); }
  ~State() { Caches::instance().remove(*this); }

  Connection* connection();
  void complain(const std::string& what);
  void failed(const char* doing, const Failure& failure);
  void evict(Connection& c);
  std::optional<std::string> get(std::string_view table, std::string_view key);
  void put(std::string_view table, std::string_view key, std::string_view value);
  int64_t now() const { return config.clock ? config.clock() : seconds_now(); }

  template <class F>
  void guarded(const char* doing, F&& f) {
    const Options& options = current_options();
    if (options.cachelevel < 1 || !options.ccache || config.path.empty()) return;
    std::lock_guard lock(mutex);
    try {
      f();
    } catch (const Failure& failure) {
      failed(doing, failure);
    }
  }

  std::mutex mutex;
  const DiskCacheConfig config;
  std::unique_ptr<Connection> open_connection;
  bool off = false, writable = true, complained = false;
  int busy = 0;
};

void DiskCache::Caches::add(State& cache) {
  std::lock_guard lock(mutex_);
  caches_.push_back(&cache);
}

void DiskCache::Caches::remove(State& cache) {
  std::lock_guard lock(mutex_);
  std::erase(caches_, &cache);
}

void DiskCache::Caches::before_fork() {
  mutex_.lock();
  for (State* cache : caches_) {
    cache->mutex.lock();
    cache->open_connection.reset();
  }
}

void DiskCache::Caches::after_fork() {
  for (State* cache : caches_) cache->mutex.unlock();
  mutex_.unlock();
}

/// Null when the cache is off for the rest of the process.
Connection* DiskCache::State::connection() {
  if (!open_connection && !off) open_connection = std::make_unique<Connection>(config);
  if (open_connection && open_connection->database.read_only()) writable = false;
  return open_connection.get();
}

void DiskCache::State::complain(const std::string& what) {
  if (!complained && log_enabled(1)) log_line(fmt::format("disk cache {}: {}", config.path, what));
  complained = true;
}

void DiskCache::State::failed(const char* doing, const Failure& failure) {
  switch (failure.code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      complain(fmt::format("cannot {}: another process holds it ({})", doing, failure.what()));
      off = off || ++busy >= kMostBusy;
      break;
    case SQLITE_READONLY:
    case SQLITE_FULL:
      complain(fmt::format("cannot {}: {}; nothing more is kept", doing, failure.what()));
      writable = false;
      break;
    default:
      complain(fmt::format("cannot {}: {}; going on without it (if the file is damaged, delete it)", doing, failure.what()));
      off = true;
  }
  if (off) open_connection.reset();
}

std::optional<std::string> DiskCache::State::get(std::string_view table, std::string_view key) {
  Connection* c = connection();
  if (!c) return std::nullopt;
  std::string value;
  int64_t checksum, format, used, row;
  {
    ResetAtEnd reset(*c->find);
    c->find->bind_text(1, table).bind(2, key);
    if (!c->find->step()) return std::nullopt;
    value = c->find->blob(0);
    checksum = c->find->integer(1), format = c->find->integer(2), used = c->find->integer(3), row = c->find->integer(4);
  }
  if (format != kFormat || checksum != checksum_of(table, key, value)) {
    if (format == kFormat) complain(fmt::format("a value of table '{}' is damaged and was dropped", table));
    if (writable) c->drop->bind(1, row).run();
    return std::nullopt;
  }
  if (int64_t time = now(); writable && time - used >= kNoteUseAfter) {
    try {
      c->note_use->bind(1, time).bind(2, row).run();
    } catch (const Failure& failure) {
      failed("note the use of a value", failure);  // the value itself is good
    }
  }
  return value;
}

void DiskCache::State::put(std::string_view table, std::string_view key, std::string_view value) {
  if (value.size() > config.max_bytes) return;
  Connection* c = connection();
  if (!c || !writable) return;
  ResetAtEnd reset(*c->store);
  c->store->bind_text(1, table).bind(2, key).bind(3, kFormat).bind(4, checksum_of(table, key, value));
  c->store->bind(5, now()).bind(6, static_cast<int64_t>(value.size())).bind(7, value).run();
  c->total_bytes = c->total_bytes ? *c->total_bytes + static_cast<int64_t>(value.size()) : c->sum();
  if (static_cast<uint64_t>(*c->total_bytes) > config.max_bytes) evict(*c);
}

/// Drops what was unused for the longest time.
void DiskCache::State::evict(Connection& c) {
  Transaction transaction(c.database);
  int64_t left = c.sum();
  auto keep = static_cast<int64_t>(config.max_bytes / 5 * 4);
  if (static_cast<uint64_t>(left) > config.max_bytes) {
    ResetAtEnd reset(*c.oldest);
    std::vector<int64_t> rows;
    for (; left > keep && c.oldest->step(); left -= c.oldest->integer(1)) rows.push_back(c.oldest->integer(0));
    c.oldest->reset();
    for (int64_t row : rows) c.drop->bind(1, row).run();
  }
  transaction.commit();
  c.total_bytes = left;
}

DiskCache::DiskCache(DiskCacheConfig config) : state_(std::make_unique<State>(std::move(config))) {}
DiskCache::~DiskCache() = default;

std::optional<std::string> DiskCache::get(std::string_view table, std::string_view key) {
  std::optional<std::string> value;
  state_->guarded("read", [&] { value = state_->get(table, key); });
  return value;
}

void DiskCache::put(std::string_view table, std::string_view key, std::string_view value) {
  state_->guarded("write", [&] { state_->put(table, key, value); });
}

void DiskCache::clear() {
  state_->guarded("clear", [&] {
    Connection* c = state_->connection();
    if (!c || !state_->writable) return;
    c->database.execute("DELETE FROM tinygrad_cache");
    c->total_bytes = 0;
  });
}

std::string cache_directory() {
  auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  // The XDG specification: a path that is not absolute counts as unset.
  if (std::string xdg = variable("XDG_CACHE_HOME"); xdg.starts_with('/')) return xdg + "/tinygrad_cpp";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/tinygrad_cpp";
}

DiskCacheConfig disk_cache_config() {
  const Options& options = current_options();
  std::string path = options.cachedb;
  if (std::string folder = cache_directory(); path.empty() && !folder.empty()) path = folder + "/cache.db";
  return {.path = path, .max_bytes = static_cast<uint64_t>(options.cachedb_max_mb) << 20};
}

DiskCache& disk_cache() {
  static DiskCache* cache = new DiskCache(disk_cache_config());
  return *cache;
}

}  // namespace tinygrad
