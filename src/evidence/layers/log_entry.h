// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// One line of output as a log store keeps it.
struct LogEntry {
  enum class Store : uint8_t { docker, journal, other } store = Store::other;
  std::string text;
  std::string host;    // of a journal
  std::string source;  // pod or container, where told
  bool to_stderr = false;
  bool kernel = false;
  int64_t wall_ns = -1;
  size_t offset = 0;  // of the text in the file
  bool labelled = false;
};

// {"log":"text\n","stream":"stdout","time":"2026-11-15T00:20:00.123456789Z"}                            Docker's
// json-file
// {"__REALTIME_TIMESTAMP":"1794700800000000","_HOSTNAME":"node7","_TRANSPORT":"kernel","MESSAGE":"text"}  journalctl -o
// json
// {"labels":{"pod":"trainer-3"},"line":"text","timestamp":"2026-11-15T00:20:00Z"}                       logcli -o jsonl
// {"@timestamp":"...","message":"text","kubernetes":{"pod_name":"trainer-3"}}                            Fluentd,
// Vector
// {"textPayload":"text","timestamp":"...","resource":{"labels":{"pod_name":"trainer-3"}}}                Google Cloud
// False for any other object.
bool ReadLogEntry(std::string_view json, LogEntry* entry);

// A whole document with such objects in it, at any depth, or with Loki's pairs: [["1794700800000000000","text"], ...].
bool HasLogEntries(std::string_view beginning);
std::vector<LogEntry> ReadLogDocument(std::string_view bytes, size_t most_bytes);

// journalctl -o export: NAME=value lines, or NAME, newline, eight bytes of length, value; an empty line ends an entry.
std::vector<LogEntry> ReadJournalExport(std::string_view bytes, size_t most_bytes);

// Log stores often give the newest first. True when the entries were put into another order.
bool PutInOrder(std::vector<LogEntry>& entries);

// Where entries of several pods stand in one file, each says whose it is.
void LabelSources(std::vector<LogEntry>& entries);

std::string WriteLogEntry(const LogEntry& entry);

}  // namespace tacet
