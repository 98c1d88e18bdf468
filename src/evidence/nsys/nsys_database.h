// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tacet {

// One row while it is looked at. Columns are counted as they were asked for; one that the table does not have is null.
class NsysRow {
 public:
  explicit NsysRow(sqlite3_stmt* statement) : statement_(statement) {}
  bool IsNull(int column) const;
  int64_t Int(int column, int64_t otherwise = -1) const;  // of a text or a real number too, where it is whole
  std::string_view Text(int column) const;
  std::string_view Bytes(int column) const;

 private:
  sqlite3_stmt* statement_;
};

// A SQLite file that lies in memory, read as hostile input: nothing but reads of plain tables is allowed, no views,
// triggers, virtual tables, computed columns or functions; the work of all reads together is bounded by the size of the
// file, since pages that point at each other can pretend to hold any number of rows.
class NsysDatabase {
 public:
  // `bytes` must outlive the database. `mapped`: they are a mapping of the file, whose pages may be given back.
  static Result<NsysDatabase> Open(std::string_view bytes, bool mapped);

  bool HasTable(std::string_view table) const { return state_->tables.contains(table); }
  // Every row of a table, in the order of the file. False where there is no such table.
  bool Read(std::string_view table, std::initializer_list<std::string_view> columns,
            const std::function<void(const NsysRow&)>& row);

  // True where `table` finds rows by its column `id` at once; then TextById may be asked for the `value` of one.
  bool IsKeyedById(std::string_view table) const { return state_->keyed.contains(table); }
  std::string TextById(std::string_view table, int64_t id, size_t longest);

  const std::string& problem() const { return state_->problem; }  // what ended a read early; empty where nothing did
  uint64_t rows() const { return state_->rows; }

 private:
  struct State {
    std::string_view bytes;
    bool mapped = false;
    int64_t work_left = 0;  // calls of the progress handler, each for some instructions of SQLite's machine
    uint64_t rows = 0, max_rows = 0;
    std::string problem;
    std::set<std::string, std::less<>> tables;  // plain ones: no views, no virtual tables, no computed columns
    std::set<std::string, std::less<>> keyed;   // of these, with "id INTEGER PRIMARY KEY"
  };
  struct Close {
    void operator()(sqlite3* handle) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  NsysDatabase() = default;
  bool ListTables();
  void Note(std::string_view table, const char* message);

  std::unique_ptr<State> state_;  // SQLite's callbacks hold its address
  std::unique_ptr<sqlite3, Close> handle_;
  std::unique_ptr<sqlite3_stmt, Close> text_by_id_;  // goes before the handle
  std::string text_table_;
};

}  // namespace tacet
