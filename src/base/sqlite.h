#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tinygrad::sqlite {

/// What SQLite refused; `code` is its primary result code.
class Failure : public std::runtime_error {
 public:
  Failure(int result, const std::string& message) : std::runtime_error(message), code(result & 0xFF) {}
  int code;
};

class Database;

/// A prepared statement. Each use is bind, step while rows come, reset; bound text must live until the reset.
class Statement {
 public:
  Statement(Database& database, const char* sql);
  Statement& bind(int index, std::string_view blob);
  Statement& bind_text(int index, std::string_view text);
  Statement& bind(int index, int64_t value);
  /// True while there is a row. Throws Failure.
  bool step();
  /// Runs to the end and makes it ready for the next use.
  void run();
  void reset() noexcept { sqlite3_reset(statement_.get()); }

  int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::string blob(int column) const;

 private:
  void check(int result) const;
  sqlite3* connection_;
  std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement_;
};

/// Resets a statement at the end of a scope, so that it holds no lock.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(Statement& statement) : statement_(statement) {}
  ~ResetAtEnd() { statement_.reset(); }
  ResetAtEnd(const ResetAtEnd&) = delete;
  ResetAtEnd& operator=(const ResetAtEnd&) = delete;

 private:
  Statement& statement_;
};

/// A connection, for one thread at a time.
class Database {
 public:
  /// `flags` as of sqlite3_open_v2. Throws Failure.
  Database(const std::string& path, int flags, int busy_ms);
  void execute(const char* sql);
  /// The first column of the first row, 0 without one.
  int64_t query_integer(const char* sql);
  int changes() const { return sqlite3_changes(connection_.get()); }
  bool read_only() const { return sqlite3_db_readonly(connection_.get(), "main") == 1; }
  sqlite3* get() const { return connection_.get(); }

 private:
  std::unique_ptr<sqlite3, decltype(&sqlite3_close_v2)> connection_;
};

/// A write transaction, rolled back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) { database.execute("BEGIN IMMEDIATE"); }
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace tinygrad::sqlite
