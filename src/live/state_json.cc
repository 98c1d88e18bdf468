// SPDX-License-Identifier: Apache-2.0
#include "live/state_json.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/json_reader.h"

namespace tacet {
namespace {

constexpr std::string_view kSchema = "tacet.state.v1";
constexpr std::string_view kStageNames[] = {"unknown", "in_group", "in_group_end", "in_launch", "away"};
constexpr std::string_view kWaitNames[] = {"nothing", "own_gpu", "peer_credit", "network", "data"};
constexpr std::string_view kDropNames[] = {"op_table_full", "proxy_table_full", "comm_table_full", "peer_table_full",
                                           "ring_busy",     "stale_handle",     "unknown_context", "contended",
                                           "output_lost",   "output_lapped"};
constexpr size_t kMostBoxes = 1024, kMostItems = 65536;  // an agent hands out no more boxes
// A tree takes a hundred bytes for each value, and an answer of a few bytes each may be all values. The largest node of
// today has a tenth of this.
constexpr size_t kMostValues = 300'000;

void WriteKnown(JsonWriter& json, int64_t value) { value < 0 ? json.Null() : json.Int(value); }
void WriteCount(JsonWriter& json, uint64_t value) {
  json.Int(static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
}
// 64 bits do not fit a JavaScript number.
void WriteId(JsonWriter& json, uint64_t id) {
  char text[20];
  const auto end = std::to_chars(text, text + sizeof text, id, 16).ptr;
  json.String("0x" + std::string(text, end));
}

void WriteComm(JsonWriter& json, const CommState& comm) {
  json.BeginObject();
  WriteId(json.Key("id"), comm.id);
  json.Key("name").String(comm.name);
  WriteKnown(json.Key("rank"), comm.rank);
  WriteKnown(json.Key("size"), comm.size);
  WriteCount(json.Key("issued"), comm.issued);
  WriteCount(json.Key("finished"), comm.finished);
  WriteKnown(json.Key("idle_ns"), comm.idle_ns);
  json.Key("live").Bool(comm.live);
  json.EndObject();
}

void WriteFlow(JsonWriter& json, const FlowState& flow) {
  json.BeginObject();
  json.Key("peer").Int(flow.peer);
  json.Key("direction").String(flow.send ? "send" : "recv");
  json.Key("channel").Int(flow.channel);
  json.Key("steps_done").Int(flow.steps_done);
  json.Key("steps_total").Int(flow.steps_total);
  json.Key("waits_for").String(kWaitNames[static_cast<size_t>(flow.waiting)]);
  WriteKnown(json.Key("waiting_ns"), flow.waiting_ns);
  json.EndObject();
}

void WriteOperation(JsonWriter& json, const OperationState& op, StateForm form) {
  json.BeginObject();
  WriteId(json.Key("comm"), op.comm);
  json.Key("kind").String(Name(op.kind));
  WriteCount(json.Key("seq"), op.seq);
  WriteKnown(json.Key("bytes"), op.bytes);
  json.Key("age_ns").Int(op.age_ns);
  WriteKnown(json.Key("normal_ns"), op.normal_ns);
  WriteKnown(json.Key("channels"), op.channels);
  json.Key("channels_started").Int(op.channels_started);
  json.Key("channels_finished").Int(op.channels_finished);
  json.Key("host_stage").String(kStageNames[static_cast<size_t>(op.host)]);
  json.Key("tells_end").Bool(op.tells_end);
  WriteId(json.Key("progress"), op.progress);
  if (form == StateForm::full) {
    json.Key("flows").BeginArray();
    for (const FlowState& flow : op.flows) WriteFlow(json, flow);
    json.EndArray();
  }
  json.EndObject();
}

void WriteOperations(JsonWriter& json, const BoxState& box, StateForm form) {
  json.BeginArray();
  std::set<uint64_t> told;
  for (const OperationState& op : box.operations) {  // oldest first
    if (form == StateForm::brief && !(op.tells_end && told.insert(op.comm).second)) continue;
    WriteOperation(json, op, form);
  }
  json.EndArray();
}

void WriteIds(JsonWriter& json, const LauncherIds& ids) {
  const auto write = [&](std::string_view key, const std::string& value) {
    json.Key(key);
    value.empty() ? json.Null() : json.String(value);
  };
  json.BeginObject();
  write("slurm_job_id", ids.slurm_job);
  write("slurm_step_id", ids.slurm_step);
  write("kubernetes_pod", ids.kubernetes_pod);
  write("kubernetes_namespace", ids.kubernetes_namespace);
  write("torchelastic_run_id", ids.torchelastic_run);
  WriteKnown(json.Key("restarts"), ids.restarts);
  json.EndObject();
}

void WriteDrops(JsonWriter& json, const BoxState& box) {
  json.BeginObject();
  for (size_t i = 0; i < box.drops.size(); ++i)
    if (box.drops[i] > 0)
      WriteCount(json.Key(DropName(i).empty() ? "reason_" + std::to_string(i) : std::string(DropName(i))),
                 box.drops[i]);
  json.EndObject();
}

// Reading: a member's value or what stands for an unknown one.
int64_t IntOf(const JsonValue& object, std::string_view key, int64_t otherwise = -1) {
  const JsonValue* value = object.Find(key);
  return value != nullptr && value->kind == JsonValue::Kind::number ? value->Int(otherwise) : otherwise;
}
int32_t SmallOf(const JsonValue& object, std::string_view key) {
  return static_cast<int32_t>(std::clamp<int64_t>(IntOf(object, key), -1, INT32_MAX));
}
int64_t UidOf(const JsonValue& object) { return std::clamp<int64_t>(IntOf(object, "uid"), -1, UINT32_MAX); }
uint64_t CountOf(const JsonValue& object, std::string_view key) {
  return static_cast<uint64_t>(std::max<int64_t>(0, IntOf(object, key, 0)));
}
std::string TextOf(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  return value != nullptr && value->kind == JsonValue::Kind::string ? value->text.substr(0, 256) : "";
}
bool FlagOf(const JsonValue& object, std::string_view key, bool otherwise) {
  const JsonValue* value = object.Find(key);
  return value != nullptr && value->kind == JsonValue::Kind::boolean ? value->boolean : otherwise;
}
uint64_t IdOf(const JsonValue& object, std::string_view key) {
  const std::string text = TextOf(object, key);
  uint64_t id = 0;
  if (text.starts_with("0x")) std::from_chars(text.data() + 2, text.data() + text.size(), id, 16);
  return id;
}
const std::vector<JsonValue>& ItemsOf(const JsonValue& object, std::string_view key) {
  static const std::vector<JsonValue> kNone;
  const JsonValue* value = object.Find(key);
  return value != nullptr && value->is_array() && value->items.size() <= kMostItems ? value->items : kNone;
}
template <size_t n>
size_t IndexOf(const std::string_view (&names)[n], const std::string& name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? 0 : static_cast<size_t>(found - std::begin(names));
}

CommState ReadComm(const JsonValue& value) {
  CommState comm;
  comm.id = IdOf(value, "id");
  comm.name = TextOf(value, "name");
  comm.rank = SmallOf(value, "rank");
  comm.size = SmallOf(value, "size");
  comm.issued = CountOf(value, "issued");
  comm.finished = CountOf(value, "finished");
  comm.idle_ns = IntOf(value, "idle_ns");
  comm.live = FlagOf(value, "live", true);
  return comm;
}

OperationState ReadOperation(const JsonValue& value) {
  OperationState op;
  op.comm = IdOf(value, "comm");
  op.kind = ParseOpKind(TextOf(value, "kind"));
  op.seq = CountOf(value, "seq");
  op.bytes = IntOf(value, "bytes");
  op.age_ns = std::max<int64_t>(0, IntOf(value, "age_ns", 0));
  op.normal_ns = IntOf(value, "normal_ns");
  op.channels = SmallOf(value, "channels");
  op.channels_started = SmallOf(value, "channels_started");
  op.channels_finished = SmallOf(value, "channels_finished");
  op.host = static_cast<HostStage>(IndexOf(kStageNames, TextOf(value, "host_stage")));
  op.tells_end = FlagOf(value, "tells_end", true);
  op.progress = IdOf(value, "progress");
  for (const JsonValue& entry : ItemsOf(value, "flows")) {
    FlowState flow;
    flow.peer = SmallOf(entry, "peer");
    flow.send = TextOf(entry, "direction") == "send";
    flow.channel = SmallOf(entry, "channel");
    flow.steps_done = SmallOf(entry, "steps_done");
    flow.steps_total = SmallOf(entry, "steps_total");
    flow.waiting = static_cast<FlowWait>(IndexOf(kWaitNames, TextOf(entry, "waits_for")));
    flow.waiting_ns = IntOf(entry, "waiting_ns");
    op.flows.push_back(flow);
  }
  return op;
}

LauncherIds ReadIds(const JsonValue& value) {
  return {TextOf(value, "slurm_job_id"),         TextOf(value, "slurm_step_id"),       TextOf(value, "kubernetes_pod"),
          TextOf(value, "kubernetes_namespace"), TextOf(value, "torchelastic_run_id"), SmallOf(value, "restarts")};
}

BoxState ReadBox(const JsonValue& value) {
  BoxState box;
  box.name = TextOf(value, "name");
  box.uid = UidOf(value);
  box.trouble = TextOf(value, "trouble");
  box.reason = TextOf(value, "reason");
  box.job = TextOf(value, "job");
  box.host = TextOf(value, "host");
  box.program = TextOf(value, "program");
  box.rank = SmallOf(value, "rank");
  box.world_size = SmallOf(value, "world_size");
  box.local_rank = SmallOf(value, "local_rank");
  box.device = SmallOf(value, "device");
  box.pid = IntOf(value, "pid");
  box.sight = ParseProcessSight(TextOf(value, "process"));
  box.ended = FlagOf(value, "ended", false);
  box.heartbeat_age_ns = IntOf(value, "heartbeat_age_ns");
  box.heartbeat_interval_ns = IntOf(value, "heartbeat_interval_ns");
  if (const JsonValue* ids = value.Find("ids"); ids != nullptr && ids->is_object()) box.ids = ReadIds(*ids);
  box.suspected = FlagOf(value, "suspected", false);
  for (const JsonValue& entry : ItemsOf(value, "communicators")) box.comms.push_back(ReadComm(entry));
  for (const JsonValue& entry : ItemsOf(value, "operations")) box.operations.push_back(ReadOperation(entry));
  box.operations_total = CountOf(value, "operations_total");
  box.lapped = CountOf(value, "lapped");
  box.torn = CountOf(value, "torn");
  if (const JsonValue* drops = value.Find("drops"); drops != nullptr && drops->is_object())
    for (size_t i = 0; i < std::size(kDropNames); ++i) box.drops[i] = CountOf(*drops, kDropNames[i]);
  return box;
}

}  // namespace

HangSuspicion ReadSuspicion(const JsonValue& value) {
  HangSuspicion suspicion;
  suspicion.job = TextOf(value, "job");
  suspicion.uid = UidOf(value);
  suspicion.comm = IdOf(value, "comm");
  suspicion.group = TextOf(value, "group");
  suspicion.kind = ParseOpKind(TextOf(value, "kind"));
  suspicion.seq = CountOf(value, "seq");
  suspicion.still_ns = IntOf(value, "still_ns", 0);
  suspicion.limit_ns = IntOf(value, "limit_ns", 0);
  suspicion.since_wall_ns = IntOf(value, "since_wall_ns", 0);
  suspicion.waiting = SmallOf(value, "waiting");
  suspicion.members_seen = SmallOf(value, "members_seen");
  suspicion.size = SmallOf(value, "size");
  for (const JsonValue& rank : ItemsOf(value, "lost_ranks"))
    suspicion.lost_ranks.push_back(static_cast<int32_t>(std::clamp<int64_t>(rank.Int(-1), -1, INT32_MAX)));
  return suspicion;
}

std::string_view DropName(size_t index) { return index < std::size(kDropNames) ? kDropNames[index] : ""; }

void WriteBox(JsonWriter& json, const BoxState& box, StateForm form) {
  json.BeginObject();
  json.Key("name").String(box.name);
  WriteKnown(json.Key("uid"), box.uid);
  if (!box.trouble.empty()) {
    json.Key("trouble").String(box.trouble);
    json.Key("reason").String(box.reason);
    json.EndObject();
    return;
  }
  json.Key("job").String(box.job);
  json.Key("host").String(box.host);
  WriteKnown(json.Key("rank"), box.rank);
  WriteKnown(json.Key("world_size"), box.world_size);
  json.Key("pid").Int(box.pid);
  json.Key("process").String(Name(box.sight));
  json.Key("ended").Bool(box.ended);
  json.Key("suspected").Bool(box.suspected);
  WriteKnown(json.Key("heartbeat_age_ns"), box.heartbeat_age_ns);
  WriteKnown(json.Key("heartbeat_interval_ns"), box.heartbeat_interval_ns);
  json.Key("communicators").BeginArray();
  for (const CommState& comm : box.comms) WriteComm(json, comm);
  json.EndArray();
  WriteCount(json.Key("operations_total"), box.operations_total);
  WriteOperations(json.Key("operations"), box, form);
  if (form == StateForm::full) {
    WriteKnown(json.Key("local_rank"), box.local_rank);
    WriteKnown(json.Key("device"), box.device);
    json.Key("program").String(box.program);
    WriteIds(json.Key("ids"), box.ids);
    WriteDrops(json.Key("drops"), box);
    WriteCount(json.Key("lapped"), box.lapped);
    WriteCount(json.Key("torn"), box.torn);
  }
  json.EndObject();
}

void WriteSuspicion(JsonWriter& json, const HangSuspicion& suspicion) {
  json.BeginObject();
  json.Key("job").String(suspicion.job);
  WriteKnown(json.Key("uid"), suspicion.uid);
  WriteId(json.Key("comm"), suspicion.comm);
  json.Key("group").String(suspicion.group);
  json.Key("kind").String(Name(suspicion.kind));
  WriteCount(json.Key("seq"), suspicion.seq);
  json.Key("still_ns").Int(suspicion.still_ns);
  json.Key("limit_ns").Int(suspicion.limit_ns);
  json.Key("since_wall_ns").Int(suspicion.since_wall_ns);
  json.Key("waiting").Int(suspicion.waiting);
  json.Key("members_seen").Int(suspicion.members_seen);
  WriteKnown(json.Key("size"), suspicion.size);
  json.Key("lost_ranks").BeginArray();
  for (const int32_t rank : suspicion.lost_ranks) json.Int(rank);
  json.EndArray();
  json.EndObject();
}

std::string WriteState(const AgentState& state, StateForm form) {
  JsonWriter json;
  json.BeginObject();
  json.Key("schema").String(kSchema);
  json.Key("host").String(state.host.host);
  json.Key("time_wall_ns").Int(state.host.wall_ns);
  if (!state.note.empty()) json.Key("note").String(state.note);
  json.Key("hangs").BeginArray();
  for (const HangSuspicion& suspicion : state.suspicions) WriteSuspicion(json, suspicion);
  json.EndArray();
  json.Key("boxes").BeginArray();
  for (const BoxState& box : state.host.boxes) WriteBox(json, box, form);
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

Result<AgentState> ReadState(std::string_view text) {
  JsonValue document;
  bool truncated = false;
  const auto values =
      std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == '[' || c == '{' || c == ':'; });
  if (static_cast<size_t>(values) > 2 * kMostValues)
    return Error{"the answer has more entries than a node can have", ""};
  if (!ParseJson(text, &document, &truncated) || truncated || !document.is_object())
    return Error{"the answer is not complete JSON", ""};
  if (const std::string schema = TextOf(document, "schema"); schema != kSchema)
    return schema.starts_with("tacet.state.")
               ? Error{"it uses " + schema + ", this server " + std::string(kSchema),
                       "install one version on all nodes"}
               : Error{"the answer is not " + std::string(kSchema), "is this a tacet agent?"};
  AgentState state;
  state.host.host = TextOf(document, "host");
  state.host.wall_ns = IntOf(document, "time_wall_ns", 0);
  state.note = TextOf(document, "note");
  const auto& boxes = ItemsOf(document, "boxes");
  if (boxes.size() > kMostBoxes) return Error{"the answer names more boxes than a node can have", ""};
  for (const JsonValue& box : boxes) state.host.boxes.push_back(ReadBox(box));
  for (const JsonValue& hang : ItemsOf(document, "hangs")) state.suspicions.push_back(ReadSuspicion(hang));
  return state;
}

}  // namespace tacet
