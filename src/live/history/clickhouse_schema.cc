// SPDX-License-Identifier: Apache-2.0
#include "live/history/clickhouse_schema.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json_writer.h"
#include "live/agent/operation_metrics.h"

namespace tacet {
namespace {

struct Column {
  std::string_view name, type, comment;
};

constexpr std::string_view kText = "LowCardinality(String)";
constexpr Column kColumns[] = {
    {"time", "DateTime", "when it ended, by the clock of its host"},
    {"job", kText, ""},
    {"host", kText, "the node, as its agent calls it"},
    {"pid", "Int32", ""},
    {"rank", "Int32", "in the job; -1 unknown"},
    {"group", kText, "name of the communicator"},
    {"comm", "String", "identity of the communicator"},
    {"group_rank", "Int32", "in the communicator; -1 unknown"},
    {"group_size", "Int32", "-1 unknown"},
    {"operation", kText, "all_reduce, send, ..."},
    {"seq", "UInt64", "number among the collectives, or the sends and receives, of the communicator"},
    {"serial", "UInt64", "number among all operations of the process"},
    {"algorithm", kText, ""},
    {"protocol", kText, ""},
    {"bytes", "Int64", "of the whole operation; -1 unknown"},
    {"issue_wall_ns", "Int64", "when the host called NCCL, by its clock; 0 unknown"},
    {"duration_ns", "Int64", "on the GPU, or as the host saw it: waiting for the last member included"},
    {"in_flight_ns", "Int64", "from the call to the end; -1 unknown"},
    {"bus_bytes_per_second", "Float64", "as nccl-tests define it; 0 where there is none"},
    {"wait_own_gpu_ns", "Int64", "of its network steps, summed"},
    {"wait_peer_credit_ns", "Int64", ""},
    {"wait_network_ns", "Int64", ""},
    {"wait_data_ns", "Int64", ""},
};

constexpr std::string_view kAlgorithms[] = {"unknown", "tree",      "ring", "collnet_direct", "collnet_chain",
                                            "nvls",    "nvls_tree", "pat",  "symmetric"};
constexpr std::string_view kProtocols[] = {"unknown", "ll", "ll128", "simple"};

template <size_t n>
std::string_view NameIn(const std::string_view (&names)[n], size_t index) {
  return names[index < n ? index : 0];
}

std::string Hex(uint64_t id) {
  char text[24] = "0x";
  return {text, std::to_chars(text + 2, text + sizeof text, id, 16).ptr};
}

void WriteUnsigned(JsonWriter& json, uint64_t value) { json.Raw(std::to_string(value)); }

}  // namespace

ClickHouseVersion ParseClickHouseVersion(std::string_view text) {
  ClickHouseVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, version.major);
  if (wrong != std::errc() || dot == end || *dot != '.') return {};
  return std::from_chars(dot + 1, end, version.minor).ec == std::errc() ? version : ClickHouseVersion{};
}

std::string CreateDatabaseStatement(std::string_view database) {
  return "CREATE DATABASE IF NOT EXISTS " + std::string(database);
}

std::string CreateTableStatement(std::string_view database, ClickHouseVersion version, int days) {
  const bool modern = version.IsAtLeast(19, 6);
  std::string out = "CREATE TABLE IF NOT EXISTS " + std::string(database) + ".operations\n(\n";
  for (const Column& column : kColumns) {
    const std::string_view type = modern || column.type != kText ? column.type : "String";
    out.append("    `").append(column.name).append("` ").append(type);
    if (modern && !column.comment.empty()) out.append(" COMMENT '").append(column.comment).append("'");
    out += &column == std::end(kColumns) - 1 ? "\n" : ",\n";
  }
  // A batch may arrive twice when the answer to the first is lost; Replacing leaves one of equal keys.
  out +=
      ")\nENGINE = ReplacingMergeTree\nPARTITION BY toDate(time)\n"
      "ORDER BY (job, `group`, operation, time, host, pid, serial)\n";
  if (modern) out += "TTL time + INTERVAL " + std::to_string(days) + " DAY\n";
  return out;
}

std::string InsertStatement(std::string_view database) {
  std::string out = "INSERT INTO " + std::string(database) + ".operations (";
  for (const Column& column : kColumns) out.append(&column == kColumns ? "`" : ", `").append(column.name).append("`");
  return out + ") FORMAT JSONEachRow";
}

bool AppendHistoryRow(const FinishedOperation& finished, std::string_view host, std::string& out) {
  if (finished.duration_ns < 0) return false;
  const BoxState& box = *finished.box;
  const box::Op& op = *finished.op;
  const int64_t issued = std::max<int64_t>(0, finished.issue_wall_ns);
  const int64_t ended = finished.finish_wall_ns > 0 ? finished.finish_wall_ns : issued;
  JsonWriter json;
  json.BeginObject();
  json.Key("time").Int(std::min<int64_t>(ended / 1'000'000'000, UINT32_MAX));
  json.Key("job").String(box.job);
  json.Key("host").String(host);
  json.Key("pid").Int(static_cast<int32_t>(box.pid));
  json.Key("rank").Int(box.rank);
  json.Key("group").String(finished.comm == nullptr ? "unknown" : GroupNameOf(*finished.comm));
  json.Key("comm").String(Hex(op.comm_id));
  json.Key("group_rank").Int(finished.comm == nullptr ? -1 : finished.comm->rank);
  json.Key("group_size").Int(finished.comm == nullptr ? -1 : finished.comm->size);
  json.Key("operation").String(Name(finished.kind));
  WriteUnsigned(json.Key("seq"), op.seq);
  WriteUnsigned(json.Key("serial"), op.serial);
  json.Key("algorithm").String(NameIn(kAlgorithms, static_cast<size_t>(op.algorithm)));
  json.Key("protocol").String(NameIn(kProtocols, static_cast<size_t>(op.protocol)));
  json.Key("bytes").Int(finished.bytes);
  json.Key("issue_wall_ns").Int(issued);
  json.Key("duration_ns").Int(finished.duration_ns);
  json.Key("in_flight_ns").Int(finished.in_flight_ns);
  json.Key("bus_bytes_per_second").Double(finished.bus_bytes_per_second);
  static constexpr std::string_view kWaits[] = {"wait_own_gpu_ns", "wait_peer_credit_ns", "wait_network_ns",
                                                "wait_data_ns"};
  for (size_t cause = 0; cause < finished.wait_ns.size(); ++cause) json.Key(kWaits[cause]).Int(finished.wait_ns[cause]);
  json.EndObject();
  out.append(json.text()).append("\n");
  return true;
}

}  // namespace tacet
