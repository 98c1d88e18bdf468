// SPDX-License-Identifier: Apache-2.0
#include "nsys_database.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/mapped_file.h"

namespace tacet {
namespace {

constexpr int kInstructionsOfCall = 10'000;
constexpr uint64_t kRowsBetweenReturns = 100'000;  // then the pages of a mapping are given back
constexpr int kLongestValue = 16 << 20;
constexpr size_t kMostTables = 2000;

// Reading plain tables, and nothing else: no ATTACH, no PRAGMA, no function, no writing.
int Authorise(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

void Harden(sqlite3* handle) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_exec(handle, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY", nullptr, nullptr,
               nullptr);
  const std::pair<int, int> limits[] = {
      {SQLITE_LIMIT_LENGTH, kLongestValue}, {SQLITE_LIMIT_SQL_LENGTH, 1 << 20}, {SQLITE_LIMIT_COLUMN, 500},
      {SQLITE_LIMIT_EXPR_DEPTH, 50},        {SQLITE_LIMIT_COMPOUND_SELECT, 1},  {SQLITE_LIMIT_VDBE_OP, 10'000},
      {SQLITE_LIMIT_FUNCTION_ARG, 8},       {SQLITE_LIMIT_ATTACHED, 0},         {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
      {SQLITE_LIMIT_VARIABLE_NUMBER, 10},   {SQLITE_LIMIT_TRIGGER_DEPTH, 1},    {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (const auto& [which, most] : limits) sqlite3_limit(handle, which, most);
  sqlite3_set_authorizer(handle, Authorise, nullptr);
}

// A column that is computed runs functions of SQLite's for every row, in a time that has nothing to do with the size of
// the file: "end INTEGER AS (length(hex(zeroblob(99999999))))". Nsight's own tables have none.
bool MayCompute(std::string_view sql) {
  std::string word;
  for (size_t i = 0; i <= sql.size(); ++i) {
    const char c = i < sql.size() ? sql[i] : ' ';
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (word.size() < 16) word += static_cast<char>(c | 0x20);
      continue;
    }
    if (word == "as" || word == "generated" || word == "virtual") return true;
    word.clear();
  }
  return false;
}

// "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)"
bool HasIdAsKey(std::string_view sql) {
  const size_t open = sql.find('(');
  if (open == std::string_view::npos) return false;
  std::string_view first = sql.substr(open + 1);
  first = first.substr(0, first.find(','));
  while (first.starts_with(' ')) first.remove_prefix(1);
  return first.starts_with("id INTEGER") && first.find("PRIMARY KEY") != std::string_view::npos;
}

struct Finalise {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalise>;

Statement Prepare(sqlite3* handle, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(handle, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  return Statement(statement);
}

// Names of tables and columns are constants of ours, so they need no escaping.
std::string Quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

}  // namespace

bool NsysRow::IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

int64_t NsysRow::Int(int column, int64_t otherwise) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
    case SQLITE_TEXT: return sqlite3_column_int64(statement_, column);
    case SQLITE_FLOAT: {
      const double value = sqlite3_column_double(statement_, column);
      return std::isfinite(value) && std::fabs(value) < 9e18 ? static_cast<int64_t>(value) : otherwise;
    }
    default: return otherwise;
  }
}

std::string_view NsysRow::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text ? std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
              : std::string_view();
}

std::string_view NsysRow::Bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes ? std::string_view(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
               : std::string_view();
}

void NsysDatabase::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
void NsysDatabase::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

std::string NsysDatabase::TextById(std::string_view table, int64_t id, size_t longest) {
  if (text_table_ != table) {
    text_by_id_.reset(Prepare(handle_.get(), "SELECT value FROM main." + Quoted(table) + " WHERE id = ?1").release());
    text_table_ = table;
  }
  if (!text_by_id_) return {};
  sqlite3_reset(text_by_id_.get());
  sqlite3_bind_int64(text_by_id_.get(), 1, id);
  if (sqlite3_step(text_by_id_.get()) != SQLITE_ROW) return {};
  return std::string(NsysRow(text_by_id_.get()).Text(0).substr(0, longest));
}

Result<NsysDatabase> NsysDatabase::Open(std::string_view bytes, bool mapped) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  if (bytes.size() < 512 || !bytes.starts_with(kMagic))
    return Error{"not a SQLite database", "export the report: nsys export --type sqlite report.nsys-rep"};
  NsysDatabase database;
  database.state_ = std::make_unique<State>();
  State& state = *database.state_;
  state.bytes = bytes;
  state.mapped = mapped;
  // A row takes at least four bytes and a dozen instructions a column; the file is gone through once for each table.
  state.max_rows = bytes.size() / 4 + 1000;
  state.work_left = static_cast<int64_t>(bytes.size() / 100) + 10'000;
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  const int opened = sqlite3_open_v2(":memory:", &handle, flags, nullptr);
  database.handle_.reset(handle);
  if (opened != SQLITE_OK) return Error{"SQLite cannot be started", ""};
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // read-only: it is never written to
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  if (sqlite3_deserialize(handle, "main", data, size, size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    return Error{"not readable as a SQLite database", "export it again: nsys export --type sqlite report.nsys-rep"};
  Harden(handle);
  sqlite3_progress_handler(
      handle, kInstructionsOfCall, [](void* context) { return static_cast<State*>(context)->work_left-- <= 0 ? 1 : 0; },
      &state);
  if (!database.ListTables()) {
    const bool journal = bytes.size() > 19 && bytes[18] == 2;
    return Error{std::string("cannot be read as a SQLite database: ") + sqlite3_errmsg(handle),
                 journal ? "it is in write-ahead mode: sqlite3 FILE 'PRAGMA journal_mode=DELETE' makes it one file"
                         : "export it again: nsys export --type sqlite report.nsys-rep"};
  }
  return database;
}

bool NsysDatabase::ListTables() {
  const Statement schema = Prepare(handle_.get(), "SELECT type, name, rootpage, sql FROM sqlite_master");
  if (!schema) return false;
  const NsysRow row(schema.get());
  int status = SQLITE_OK;
  while ((status = sqlite3_step(schema.get())) == SQLITE_ROW && state_->tables.size() < kMostTables)
    if (row.Text(0) == "table" && row.Int(2) > 0 && !MayCompute(row.Text(3))) {
      state_->tables.emplace(row.Text(1));
      if (HasIdAsKey(row.Text(3))) state_->keyed.emplace(row.Text(1));
    }
  return status == SQLITE_DONE || status == SQLITE_ROW;
}

void NsysDatabase::Note(std::string_view table, const char* message) {
  if (state_->problem.empty()) state_->problem = std::string(table) + ": " + message;
}

bool NsysDatabase::Read(std::string_view table, std::initializer_list<std::string_view> columns,
                        const std::function<void(const NsysRow&)>& row) {
  if (!HasTable(table)) return false;
  // Versions differ in their columns.
  const Statement all = Prepare(handle_.get(), "SELECT * FROM main." + Quoted(table));
  if (!all) return false;
  std::vector<std::string_view> present;
  for (int i = 0; i < sqlite3_column_count(all.get()); ++i)
    if (const char* name = sqlite3_column_name(all.get(), i)) present.emplace_back(name);
  std::string sql;
  for (const std::string_view column : columns) {
    const bool known = std::find(present.begin(), present.end(), column) != present.end();
    sql += (sql.empty() ? "SELECT " : ", ") + (known ? Quoted(column) : std::string("NULL"));
  }
  const Statement wanted = Prepare(handle_.get(), sql + " FROM main." + Quoted(table));
  if (!wanted) return false;
  const NsysRow view(wanted.get());
  int status = SQLITE_OK;
  while ((status = sqlite3_step(wanted.get())) == SQLITE_ROW) {
    if (++state_->rows > state_->max_rows) {
      Note(table, "more rows than the file has room for");
      return true;
    }
    row(view);
    if (state_->mapped && state_->rows % kRowsBetweenReturns == 0) GiveBackPages(state_->bytes);
  }
  if (status == SQLITE_INTERRUPT)
    Note(table, "more events than the size of the file explains");
  else if (status != SQLITE_DONE)
    Note(table, sqlite3_errmsg(handle_.get()));
  return true;
}

}  // namespace tacet
