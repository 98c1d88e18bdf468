// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_reader.h"
#include "base/text_scan.h"
#include "evidence/nccl_tests/nccl_tests_parse.h"

namespace tacet {
namespace {

using Token = JsonReader::Token;

// Calls `member(key)` for each member of the object that begins here; it must take the value. False: the text ends.
template <typename Member>
bool ReadObject(JsonReader& reader, Member&& member) {
  while (true) {
    const Token token = reader.Next();
    if (token == Token::object_end) return true;
    if (token != Token::key) return false;
    if (!member(reader.raw())) return false;
  }
}

// Calls `item(token)` for each item of the array that begins here.
template <typename Item>
bool ReadArray(JsonReader& reader, Item&& item) {
  while (true) {
    const Token token = reader.Next();
    if (token == Token::array_end) return true;
    if (token == Token::end || token == Token::error || !item(token)) return false;
  }
}

bool IsOver(Token token) { return token == Token::end || token == Token::error; }

// A scalar; objects and arrays are passed over.
bool ReadScalar(JsonReader& reader, Token* token) {
  *token = reader.Next();
  if (*token == Token::object_begin) return ReadObject(reader, [&](auto) { return !reader.SkipValue().empty(); });
  if (*token == Token::array_begin) {
    for (size_t depth = reader.depth(); reader.depth() >= depth;)
      if (IsOver(reader.Next())) return false;
    return true;
  }
  return !IsOver(*token);
}

double Positive(double value) { return std::isfinite(value) && value >= 0 ? value : -1; }

// The numbers of the newest scalar: nulls and "nan" are nothing.
double NumberOf(const JsonReader& reader, Token token) {
  return token == Token::number ? Positive(reader.Double()) : -1;
}

// "out_of_place":{"time":2977.879125,"alg_bw":1.408487,"bus_bw":2.112730,"nwrong":0.000000}
bool ReadFigure(JsonReader& reader, NcclTestsFigure& figure, bool& host_times) {
  const Token begin = reader.Next();
  if (begin == Token::null) return true;
  if (begin != Token::object_begin) return !IsOver(begin);
  return ReadObject(reader, [&](std::string_view key) {
    Token token;
    if (!ReadScalar(reader, &token)) return false;
    const double value = NumberOf(reader, token);
    if (key == "time" || key == "cpu_time") figure.time_us = value;
    if (key == "cpu_time") host_times = true;
    if (key == "alg_bw") figure.algorithm_gbs = value;
    if (key == "bus_bw") figure.bus_gbs = value;
    if (key == "nwrong") figure.wrong = value;
    return true;
  });
}

// "in_place_per_iter":{"skipped_iterations":0,...,"times_us":[104.2,...],"per_process_max_times_us":[[...],...]}
bool ReadIterations(JsonReader& reader, NcclTestsFigure& figure) {
  std::vector<double>& times = figure.iterations_us;
  const Token begin = reader.Next();
  if (begin != Token::object_begin) return !IsOver(begin);
  return ReadObject(reader, [&](std::string_view key) {
    for (const auto& [name, value] : {std::pair{"min_us", &figure.min_us}, std::pair{"p50_us", &figure.median_us},
                                      std::pair{"p95_us", &figure.p95_us}, std::pair{"p99_us", &figure.p99_us},
                                      std::pair{"max_us", &figure.max_us}}) {
      if (key != name) continue;
      Token token;
      if (!ReadScalar(reader, &token)) return false;
      *value = NumberOf(reader, token);
      return true;
    }
    if (key != "times_us") return !reader.SkipValue().empty();
    if (reader.Next() != Token::array_begin) return false;
    return ReadArray(reader, [&](Token token) {
      if (const double value = NumberOf(reader, token); value >= 0) times.push_back(value);
      return token == Token::number || token == Token::string || token == Token::null;
    });
  });
}

// {"size":1024,"count":256,"type":"float","redop":"sum","root":"    -1","out_of_place":{...},"in_place":{...},...}
bool ReadRow(JsonReader& reader, NcclTestsRow& row, bool& host_times) {
  row.offset = reader.offset();
  return ReadObject(reader, [&](std::string_view key) {
    if (key == "out_of_place") return ReadFigure(reader, row.out_of_place, host_times);
    if (key == "in_place") return ReadFigure(reader, row.in_place, host_times);
    if (key == "out_of_place_per_iter") return ReadIterations(reader, row.out_of_place);
    if (key == "in_place_per_iter") return ReadIterations(reader, row.in_place);
    Token token;
    if (!ReadScalar(reader, &token)) return false;
    if (token == Token::string && key == "type") row.type = reader.raw();
    if (token == Token::string && key == "redop") row.redop = reader.raw();
    if (key == "root") {
      std::string_view text = Trim(reader.raw());
      TakeNumber(text, &row.root);
    }
    if (token == Token::number && key == "size") row.bytes = reader.Int();
    if (token == Token::number && key == "count") row.elements = reader.Int();
    return true;
  });
}

bool ReadDevice(JsonReader& reader, NcclTestsDevice& device) {
  return ReadObject(reader, [&](std::string_view key) {
    Token token;
    if (!ReadScalar(reader, &token)) return false;
    if (key == "rank") device.rank = reader.Int();
    if (key == "group") device.group = reader.Int();
    if (key == "pid") device.pid = reader.Int();
    if (key == "device") device.device = reader.Int();
    if (key == "hostname") device.host = reader.raw();
    if (key == "device_hex") device.bus = reader.raw();
    if (key == "device_info") device.name = reader.raw();
    return true;
  });
}

class DocumentReader {
 public:
  DocumentReader(std::string_view text, NcclTestsOutput& out) : reader_(text), out_(out), table_(out.tables.back()) {}

  bool Read() {
    if (reader_.Next() != Token::object_begin) return false;
    return ReadObject(reader_, [&](std::string_view key) { return Member(key); });
  }

 private:
  bool Member(std::string_view key) {
    if (key == "args" || key == "errors") return ReadWords(key == "args");
    if (key == "env") return ReadEnvironment();
    if (key == "config")
      return reader_.Next() == Token::object_begin && ReadObject(reader_, [&](std::string_view name) {
               return name == "devices" ? ReadDevices() : !reader_.SkipValue().empty();
             });
    if (key == "devices") return ReadDevices();
    if (key == "results") return ReadRows();
    if (key == "out_of_bounds" || key == "average_bus_bandwidth") return ReadSummary(key == "out_of_bounds");
    Token token;
    if (!ReadScalar(reader_, &token)) return false;
    if (key == "nccl_version" && token == Token::number) table_.library = reader_.Int();
    return true;
  }

  // The command line names the program, the list of errors what NCCL said last.
  bool ReadWords(bool arguments) {
    if (reader_.Next() != Token::array_begin) return false;
    return ReadArray(reader_, [&](Token token) {
      if (token != Token::string) return token == Token::null;
      if (arguments && table_.program.empty()) {
        const std::string& word = out_.owned.emplace_back(reader_.String());
        const size_t slash = word.rfind('/');
        table_.program = std::string_view(word).substr(slash == std::string::npos ? 0 : slash + 1);
      } else if (!arguments && !Trim(reader_.raw()).empty()) {
        table_.last_error = out_.owned.emplace_back(reader_.String());
        table_.failure_offset = reader_.offset();
      }
      return true;
    });
  }

  // The whole environment of rank 0; only what forces a way is kept.
  bool ReadEnvironment() {
    if (reader_.Next() != Token::array_begin) return false;
    return ReadArray(reader_, [&](Token token) {
      if (token == Token::string) {
        std::string_view word = reader_.raw();
        if (TakeLiteral(word, "NCCL_ALGO="))
          table_.algorithm = word;
        else if (TakeLiteral(word, "NCCL_PROTO="))
          table_.protocol = word;
      }
      return token == Token::string || token == Token::null;
    });
  }

  bool ReadDevices() {
    if (reader_.Next() != Token::array_begin) return false;
    return ReadArray(reader_, [&](Token token) {
      NcclTestsDevice device;
      if (token != Token::object_begin || !ReadDevice(reader_, device)) return false;
      table_.devices.push_back(device);
      return true;
    });
  }

  bool ReadRows() {
    if (reader_.Next() != Token::array_begin) return false;
    return ReadArray(reader_, [&](Token token) {
      NcclTestsRow row;
      if (token != Token::object_begin || !ReadRow(reader_, row, table_.host_times)) return false;
      if (row.bytes >= 0) table_.rows.push_back(std::move(row));
      return true;
    });
  }

  bool ReadSummary(bool out_of_bounds) {
    table_.concluded = true;
    if (out_of_bounds) table_.summary_offset = reader_.offset();
    const Token begin = reader_.Next();
    if (begin != Token::object_begin) return !IsOver(begin);
    return ReadObject(reader_, [&](std::string_view key) {
      Token token;
      if (!ReadScalar(reader_, &token)) return false;
      if (key == "count" && token == Token::number) table_.out_of_bounds = reader_.Int();
      if (key == "bandwidth") table_.average_gbs = NumberOf(reader_, token);
      if (key == "okay" && !out_of_bounds) table_.average_failed = reader_.raw() == "false";
      return true;
    });
  }

  JsonReader reader_;
  NcclTestsOutput& out_;
  NcclTestsTable& table_;
};

}  // namespace

// {"version":3,"start_time":"2026-11-15
// 00:30:05","args":["...all_reduce_perf","-b","1K",...],"env":[...],"nccl_version":22803,
bool IsNcclTestsJson(std::string_view prefix) {
  const size_t begin = prefix.find_first_not_of(" \r\n\t");
  if (begin == std::string_view::npos || prefix[begin] != '{') return false;
  JsonReader reader(prefix.substr(begin, 4096));
  if (reader.Next() != Token::object_begin) return false;
  bool version = false, started = false;
  while (reader.Next() == Token::key) {
    const std::string_view key = reader.raw();
    if (key == "args") return version && started;
    version |= key == "version";
    started |= key == "start_time";
    if (reader.SkipValue().empty()) return false;
  }
  return false;
}

NcclTestsOutput ParseNcclTestsJson(std::string_view bytes) {
  NcclTestsOutput out;
  out.tables.emplace_back();
  out.truncated = !DocumentReader(bytes, out).Read();
  const NcclTestsTable& table = out.tables.back();
  if (table.rows.empty() && table.devices.empty() && !table.concluded) {
    out.not_understood = bytes.size();
    out.tables.clear();
    return out;
  }
  out.understood = bytes.size();
  if (out.truncated && !table.rows.empty()) {
    // Behind the newest whole row nothing is certain.
    out.understood = std::min<uint64_t>(bytes.size(), table.rows.back().offset);
    out.not_understood = bytes.size() - out.understood;
  }
  return out;
}

}  // namespace tacet
