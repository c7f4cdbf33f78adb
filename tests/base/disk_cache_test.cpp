#include "base/disk_cache.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <tinygrad/context.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/temp_dir.h"

namespace tinygrad {
namespace {

using Value = std::optional<std::string>;

class DiskCacheTest : public TempDir {
 protected:
  std::string file() const { return path("cache.db"); }
  DiskCacheConfig config() const { return {.path = file(), .busy_ms = 50}; }

  /// Runs SQL as another program would.
  void sql(const std::string& text) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(db);
  }

  /// The cache gives misses, keeps quiet but for one line with `words`, and computes on.
  void expect_useless(DiskCache& cache, const std::string& words) {
    for (int i = 0; i < 5; i++) {
      EXPECT_EQ(cache.get("t", "k"), std::nullopt);
      cache.put("t", "k", "v");
    }
    EXPECT_EQ(cache.get("t", "k"), std::nullopt);
    expect_one_line(words);
  }
  void expect_one_line(const std::string& words) {
    ASSERT_EQ(lines_.size(), 1u);
    EXPECT_NE(lines_[0].find(file()), std::string::npos) << lines_[0];
    EXPECT_NE(lines_[0].find(words), std::string::npos) << lines_[0];
  }

  std::vector<std::string> lines_;
  ScopedLogSink sink_{[this](std::string_view line) { lines_.emplace_back(line); }};
  Context options_{{.cachelevel = 2, .ccache = true, .debug = 1}};
};

TEST_F(DiskCacheTest, KeepsBlobsByTableAndKey) {
  std::string blob("nul\0inside", 10);
  {
    DiskCache cache(config());
    EXPECT_EQ(cache.get("compile", "key"), std::nullopt);
    cache.put("compile", "key", blob);
    cache.put("beam", "key", "other");
    cache.put("compile", blob, "");
    EXPECT_EQ(cache.get("compile", "key"), Value(blob));
    cache.put("compile", "key", "new");
    EXPECT_EQ(cache.get("compile", "key"), Value("new"));
  }
  DiskCache again(config());
  EXPECT_EQ(again.get("compile", "key"), Value("new"));
  EXPECT_EQ(again.get("beam", "key"), Value("other"));
  EXPECT_EQ(again.get("compile", blob), Value(""));
  again.clear();
  EXPECT_EQ(again.get("beam", "key"), std::nullopt);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(DiskCacheTest, OpensAtTheFirstUseAndMakesFolders) {
  DiskCache cache({.path = path("a/b/cache.db")});
  EXPECT_FALSE(std::filesystem::exists(path("a")));
  cache.put("t", "k", "v");
  EXPECT_EQ(cache.get("t", "k"), Value("v"));
  EXPECT_TRUE(std::filesystem::exists(path("a/b/cache.db")));
}

TEST_F(DiskCacheTest, OptionsSwitchItOff) {
  DiskCache cache(config());
  {
    Context off{{.cachelevel = 0}};
    cache.put("t", "k", "v");
    EXPECT_FALSE(std::filesystem::exists(file()));
  }
  cache.put("t", "k", "v");
  Context off{{.ccache = false}};
  EXPECT_EQ(cache.get("t", "k"), std::nullopt);
}

TEST_F(DiskCacheTest, AFileThatIsNoDatabaseIsAMissAndStays) {
  std::string text(5000, 'x');
  write_file_atomic(file(), text);
  DiskCache cache(config());
  expect_useless(cache, "file is not a database");
  EXPECT_EQ(read_file(file()), text);
}

TEST_F(DiskCacheTest, ADamagedDatabaseIsAMiss) {
  {
    DiskCache cache(config());
    for (int i = 0; i < 50; i++) cache.put("t", std::to_string(i), std::string(2000, 'v'));
  }
  std::string bytes = read_file(file());
  std::fill(bytes.begin() + 100, bytes.end(), '\x5a');
  write_file_atomic(file(), bytes);
  DiskCache cache(config());
  expect_useless(cache, "cannot read");
}

TEST_F(DiskCacheTest, AnotherProgramsDatabaseIsLeftAlone) {
  sql("CREATE TABLE entries (x); INSERT INTO entries VALUES (1); PRAGMA user_version=7;");
  DiskCache cache(config());
  expect_useless(cache, "another program");
  sql("UPDATE entries SET x=2;");
}

TEST_F(DiskCacheTest, ADamagedValueIsDroppedAloneAndCanBeStoredAgain) {
  DiskCache cache(config());
  cache.put("t", "a", "value a");
  cache.put("t", "b", "value b");
  sql("UPDATE tinygrad_cache SET value=x'00' WHERE key=CAST('a' AS BLOB);");
  EXPECT_EQ(cache.get("t", "a"), std::nullopt);
  EXPECT_EQ(cache.get("t", "b"), Value("value b"));
  expect_one_line("table 't' is damaged");
  cache.put("t", "a", "again");
  EXPECT_EQ(cache.get("t", "a"), Value("again"));
}

TEST_F(DiskCacheTest, AValueUnderAnotherKeyIsFoundOut) {
  DiskCache cache(config());
  cache.put("t", "a", "value a");
  sql("UPDATE tinygrad_cache SET key=CAST('b' AS BLOB);");
  EXPECT_EQ(cache.get("t", "b"), std::nullopt);
}

TEST_F(DiskCacheTest, ValuesOfAnotherFormatAndTablesOfAnotherSchemaAreMisses) {
  {
    DiskCache cache(config());
    cache.put("t", "a", "value");
    sql("UPDATE tinygrad_cache SET format=99;");
    EXPECT_EQ(cache.get("t", "a"), std::nullopt);
    cache.put("t", "a", "value");
  }
  sql("PRAGMA user_version=99; ALTER TABLE tinygrad_cache RENAME COLUMN value TO other;");
  DiskCache cache(config());
  EXPECT_EQ(cache.get("t", "a"), std::nullopt);
  cache.put("t", "a", "new");
  EXPECT_EQ(cache.get("t", "a"), Value("new"));
  EXPECT_TRUE(lines_.empty());
}

TEST_F(DiskCacheTest, ALockedDatabaseIsAMissAndKeepsNobodyWaiting) {
  DiskCache(config()).put("t", "k", "v");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE; DELETE FROM tinygrad_cache;", nullptr, nullptr, nullptr),
            SQLITE_OK);
  DiskCache cache(config());
  expect_useless(cache, "another process holds it");
  sqlite3_close(other);
}

TEST_F(DiskCacheTest, ReadersGoOnWhileAnotherProcessWrites) {
  DiskCache cache(config());
  cache.put("t", "k", "v");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE; DELETE FROM tinygrad_cache;", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(cache.get("t", "k"), Value("v"));
  sqlite3_close(other);
}

TEST_F(DiskCacheTest, APlaceThatCannotBeWrittenIsAMiss) {
  DiskCache cache({.path = "/proc/no/such/cache.db"});
  cache.put("t", "k", "v");
  EXPECT_EQ(cache.get("t", "k"), std::nullopt);
  ASSERT_EQ(lines_.size(), 1u);
  DiskCache nowhere({.path = ""});
  nowhere.put("t", "k", "v");
  EXPECT_EQ(nowhere.get("t", "k"), std::nullopt);
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(DiskCacheTest, AReadOnlyDatabaseIsNoError) {
  DiskCache(config()).put("t", "k", "v");
  std::filesystem::permissions(file(), std::filesystem::perms(0444));
  std::filesystem::permissions(path(""), std::filesystem::perms(0555));
  // Root may write anywhere, so the cache is used as nobody.
  uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  {
    DiskCache cache(config());
    cache.put("t", "new", "v");
    EXPECT_EQ(cache.get("t", "new"), std::nullopt);
  }
  if (user == 0) {
    ASSERT_EQ(seteuid(0), 0);
  }
  std::filesystem::permissions(path(""), std::filesystem::perms(0755));
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(DiskCacheTest, TheOldestUnusedValuesGoFirst) {
  int64_t time = 1'000'000;
  DiskCache cache({.path = file(), .max_bytes = 10'000, .clock = [&] { return time; }});
  for (int i = 0; i < 10; i++, time++) cache.put("t", std::to_string(i), std::string(1000, 'v'));
  time += 5000;
  EXPECT_TRUE(cache.get("t", "0"));  // used again, an hour later
  cache.put("t", "new", std::string(1000, 'v'));
  EXPECT_TRUE(cache.get("t", "0"));
  EXPECT_TRUE(cache.get("t", "new"));
  EXPECT_TRUE(cache.get("t", "9"));
  EXPECT_FALSE(cache.get("t", "1"));
  int kept = 0;
  for (int i = 0; i < 10; i++) kept += cache.get("t", std::to_string(i)).has_value();
  EXPECT_EQ(kept, 7);  // with the new one 8000 bytes, 80 % of the bound
  cache.put("t", "too large", std::string(10'001, 'v'));
  EXPECT_FALSE(cache.get("t", "too large"));
  EXPECT_TRUE(cache.get("t", "0"));
}

TEST_F(DiskCacheTest, ThreadsShareOneCache) {
  DiskCache cache(config());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t, options = Context::current()] {
      Context scope(options);
      for (int i = 0; i < 50; i++) {
        cache.put("t", std::to_string(i), "value " + std::to_string(i));
        EXPECT_EQ(cache.get("t", std::to_string(i)), Value("value " + std::to_string(i))) << t;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_TRUE(lines_.empty());
}

TEST_F(DiskCacheTest, ProcessesShareOneFile) {
  std::vector<pid_t> children;
  DiskCacheConfig patient{.path = file(), .busy_ms = 20'000};
  DiskCache mine(patient);
  mine.put("t", "parent", "v");  // the connection is open when the process forks
  for (int p = 0; p < 4; p++) {
    pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      bool good = mine.get("t", "parent") == "v";
      DiskCache cache(patient);
      for (int i = 0; i < 30; i++) {
        std::string key = std::to_string(p) + "," + std::to_string(i);
        cache.put("t", key, key);
        good = good && cache.get("t", key) == key;
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  for (int p = 0; p < 4; p++)
    for (int i = 0; i < 30; i++) EXPECT_TRUE(mine.get("t", std::to_string(p) + "," + std::to_string(i)));
}

// Locks, SQLite's too, may be held by threads that no child has.
TEST_F(DiskCacheTest, AChildForkedWhileOthersUseTheCacheCanUseItToo) {
  DiskCache cache({.path = file(), .busy_ms = 20'000});
  cache.put("t", "parent", "v");
  std::atomic<bool> stop{false};
  std::vector<std::thread> users;
  for (int i = 0; i < 2; i++)
    users.emplace_back([&, i] {
      for (int n = 0; !stop; n++) {
        cache.put("t", std::to_string(i), std::to_string(n));
        EXPECT_EQ(cache.get("t", "parent"), "v");
      }
    });
  for (int i = 0; i < 20; i++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a deadlock would keep the test forever
      const std::string key = "child " + std::to_string(i);
      cache.put("t", key, "w");
      _exit(cache.get("t", "parent") == "v" && cache.get("t", key) == "w" ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& t : users) t.join();
}

TEST_F(DiskCacheTest, TheFolderFollowsXdg) {
  std::string old = getenv("XDG_CACHE_HOME") ? getenv("XDG_CACHE_HOME") : "", home = getenv("HOME") ? getenv("HOME") : "";
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(cache_directory(), "/somewhere/tinygrad_cpp");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(cache_directory(), "/home/me/.cache/tinygrad_cpp");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(cache_directory(), "");
  if (!old.empty()) setenv("XDG_CACHE_HOME", old.c_str(), 1);
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace tinygrad
