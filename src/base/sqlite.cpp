#include "base/sqlite.h"

namespace tinygrad::sqlite {

Database::Database(const std::string& path, int flags, int busy_ms) : connection_(nullptr, sqlite3_close_v2) {
  sqlite3* raw = nullptr;
  int result = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  connection_.reset(raw);  // given even where opening failed
  if (result != SQLITE_OK) throw Failure(result, raw ? sqlite3_errmsg(raw) : sqlite3_errstr(result));
  sqlite3_busy_timeout(raw, busy_ms);
}

void Database::execute(const char* sql) {
  if (int result = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr); result != SQLITE_OK)
    throw Failure(result, sqlite3_errmsg(connection_.get()));
}

int64_t Database::query_integer(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

Statement::Statement(Database& database, const char* sql) : connection_(database.get()), statement_(nullptr, sqlite3_finalize) {
  sqlite3_stmt* raw = nullptr;
  check(sqlite3_prepare_v2(connection_, sql, -1, &raw, nullptr));
  statement_.reset(raw);
}

void Statement::check(int result) const {
  if (result != SQLITE_OK) throw Failure(result, sqlite3_errmsg(connection_));
}

// A null pointer would bind NULL, which is not the empty blob.
Statement& Statement::bind(int index, std::string_view blob) {
  check(sqlite3_bind_blob64(statement_.get(), index, blob.empty() ? "" : blob.data(), blob.size(), SQLITE_STATIC));
  return *this;
}

Statement& Statement::bind_text(int index, std::string_view text) {
  check(sqlite3_bind_text64(statement_.get(), index, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(int index, int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), index, value));
  return *this;
}

bool Statement::step() {
  int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  Failure failure(result, sqlite3_errmsg(connection_));
  reset();
  throw failure;
}

void Statement::run() {
  while (step()) {}
  reset();
}

std::string Statement::blob(int column) const {
  // In this order: asking for the size first could convert the value.
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes ? std::string(bytes, size) : std::string();
}

Transaction::~Transaction() {
  // Errors have nowhere to go; SQLite rolls back by itself where it must.
  if (open_) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace tinygrad::sqlite
