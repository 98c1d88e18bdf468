// SPDX-License-Identifier: Apache-2.0
// The store, the rendezvous and the connections between processes.
#include <algorithm>
#include <utility>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"
#include "model/network_address.h"

namespace tacet {
namespace {

// So often nobody tries to connect in a start that succeeds: the pauses between tries grow to half a minute.
constexpr int64_t kManyTries = 5;
// Where the line does not count them, all processes of a file may have written them together.
constexpr uint32_t kManyLines = 20;
constexpr std::string_view kRetriedWord = "retried";
// The socket's time was up; the exception that follows says for which key.
constexpr std::string_view kToldAgain = "told again";

// "(172.17.0.9, 46229)" -> "172.17.0.9:46229"
std::string AddressInParentheses(std::string_view text) {
  auto rest = After(text, "(");
  if (!rest) return "";
  const std::string_view inside = rest->substr(0, rest->find(')'));
  const size_t comma = inside.rfind(',');
  if (comma == std::string_view::npos) return Capped(inside, 200);
  return Capped(Trim(inside.substr(0, comma)), 200) + ":" + Capped(Trim(inside.substr(comma + 1)), 20);
}

// torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d
//   key-value store by key '0', but store->get('0') got error: wait timeout after 20000ms, keys: /default_pg/0//cuda//0
// torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /worker/join
// RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by
// key '0',
//   but store->get('0') got error: Socket Timeout
//   ... from [0] via c10d key-value store by key '1:3', but store->get('1:3') got error: ...
// The last is a communicator of two ranks for their sends and receives; the lower one creates it, whatever the "[0]"
// says. Where the keys show the default group, its numbers are global ranks.
void ReadCreator(const LogLine& line, std::string_view keys, TorchLogRecord& record) {
  record.group_rank = IntAfter<int32_t>(line.text, "[").value_or(-1);
  record.peer_group_rank = IntAfter<int32_t>(line.text, "ncclUniqueId from [").value_or(-1);
  if (const auto key = After(line.text, "by key '")) {
    std::string_view pair = key->substr(0, key->find('\''));
    int32_t low = -1;
    if (TakeNumber(pair, &low) && low >= 0 && TakeLiteral(pair, ":")) {
      record.peer_group_rank = low;
      record.value2 = 1;
    }
  }
  if (!Contains(keys, "default_pg/0//cuda//") || record.group_rank == record.peer_group_rank) return;
  record.rank = record.group_rank;
  record.peer = record.peer_group_rank;
}

// [c10d] waitForInput: poll for socket SocketImpl(fd=79, addr=[localhost]:38812, remote=[localhost]:29500) returned 0,
// likely a timeout
// [c10d] waitForInput: socket SocketImpl(fd=79, addr=[localhost]:38812, remote=[localhost]:29500) timed out after
// 1800000ms
// A bar before it on the same line is of work that goes on, mostly another rank's.
LineUse ReadSocketWait(const LogLine& line, FailureState& state, RecordList& out) {
  if (const size_t end = line.bar.find('|'); end != std::string_view::npos)
    state.bar = Capped(Trim(line.bar.substr(0, end)), 80);
  const auto limit = IntAfter(line.text, "timed out after ");
  if (!limit) return LineUse::ignored;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::store_wait_timeout, line, "socket");
  if (!is_new) return LineUse::understood;
  record->value = *limit;
  if (!state.bar.empty() && !state.bar.ends_with("100%")) record->object = state.bar;
  record->text = Capped(line.text);
  return LineUse::understood;
}

// Whose key never came did not join: nobody has trained yet.
void AddMissingWriter(const LogLine& line, std::string_view keys, RecordList& out) {
  const int32_t writer = RankInStoreKey(keys);
  if (writer < 0 || out.highest_step() >= 0) return;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::rendezvous_incomplete, line, keys);
  if (!is_new) return;
  record->ranks = {writer};
  record->object = "key " + Capped(keys, 200);
  record->text = Capped(line.text);
}

LineUse ReadWaitTimeout(const LogLine& line, FailureState& state, RecordList& out) {
  if (Contains(line.text, "waitForInput: ")) return ReadSocketWait(line, state, out);
  std::string_view keys;
  // RuntimeError: Timeout waiting for key: default_pg/0//cpu//0/2 after 30000 ms
  // The store in a file.
  const auto of_file = After(line.text, "Timeout waiting for key: ");
  if (of_file && !Contains(*of_file, " after ")) return LineUse::not_understood;
  if (of_file)
    keys = of_file->substr(0, of_file->find(" after "));
  else if (const auto rest = After(line.text, "ms, keys: "))
    keys = Trim(*rest);
  else if (const auto key = After(line.text, "by key '"))
    keys = key->substr(0, key->find('\''));
  TorchLogRecord* socket = out.Said(TorchLogKind::store_wait_timeout, line, "socket");
  const auto [record, is_new] = out.AddOnce(TorchLogKind::store_wait_timeout, line, keys);
  if (!is_new) return LineUse::understood;
  if (socket != nullptr) record->object = std::exchange(socket->object, std::string(kToldAgain));
  if (socket != nullptr && !record->time.known()) record->time = socket->time;
  record->subject = Capped(keys, 500);
  record->value =
      of_file ? IntAfter(*of_file, " after ").value_or(-1) : IntAfter(line.text, "wait timeout after ").value_or(-1);
  if (Contains(line.text, "is setting up NCCL communicator")) ReadCreator(line, keys, *record);
  record->text = Capped(line.text);
  AddMissingWriter(line, keys, out);
  return LineUse::understood;
}

// [c10d] TCP client failed to connect/validate to host 10.0.0.1:29500 - retrying (try=11, timeout=1800000ms,
// delay=36371ms): Connection reset by peer
// [c10d] The client socket has failed to connect to [node0]:29500 (errno: 111 - Connection refused).
// Every start has some of these while rank 0 is not up yet; a peer that hangs up then has not died.
LineUse ReadConnectRetry(const LogLine& line, RecordList& out) {
  auto host = After(line.text, "TCP client failed to connect/validate to host ");
  const bool counted = host.has_value();
  if (!host) host = After(line.text, "The client socket has failed to connect to ");
  if (!host || (!counted && !host->starts_with('['))) return LineUse::not_understood;
  // No IPv6, or Windows' name of the host itself: the next address of the list is tried, and answers.
  if (ContainsAny(line.text, {"errno: 97 ", "system error: 10049 "})) return LineUse::ignored;
  std::string address = Capped(TakeWord(*host), 200);
  if (address.starts_with('[') && address.find("]:") != std::string::npos)
    address = address.substr(1, address.find(']') - 1) + address.substr(address.find(']') + 1);
  if (constexpr std::string_view kMapped = "::ffff:"; address.starts_with(kMapped)) address.erase(0, kMapped.size());
  const bool gave_up = Contains(line.text, " - timed out ");
  const bool few = !counted || (!gave_up && IntAfter(line.text, "(try=").value_or(0) < kManyTries);
  const auto [record, is_new] =
      out.AddOnce(TorchLogKind::store_unreachable, line, address + (counted && few ? " tried" : " again"));
  if (!is_new && !counted) record->text = Capped(line.text);  // the last try tells best why
  if (!is_new) return LineUse::understood;
  record->subject = std::move(address);
  record->object = few ? kRetriedWord : "";
  record->text = Capped(line.text);
  return LineUse::understood;
}

// [c10d] The IPv4 network addresses of (node1, 29500) cannot be retrieved (gai error: -2 - Name or service not known).
// A name without an IPv6 address is no fault: IPv4 is tried next. That the resolver fails (-3) concerns both.
LineUse ReadUnknownName(const LogLine& line, RecordList& out) {
  std::string address = AddressInParentheses(line.text);
  // "(/opt/env.sh, 29500)": what is no host never becomes one, however often it is tried.
  const size_t colon = address.rfind(':');
  const bool never = colon != std::string::npos && IsNoHost(std::string_view(address).substr(0, colon));
  if (!never && !ContainsAny(line.text, {"The IPv4 network addresses of ", "(gai error: -3 "})) return LineUse::ignored;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::store_unreachable, line, address + " again");
  if (!is_new) return LineUse::understood;
  record->subject = std::move(address);
  if (!never) record->object = kRetriedWord;
  record->text = Capped(line.text);
  return LineUse::understood;
}

// [c10d] The client socket has timed out after 60000ms while trying to connect to (node1, 29500).
// [c10d] The client socket has failed to connect to any network address of (node1, 29500).
LineUse ReadUnreachable(const LogLine& line, RecordList& out) {
  if (Contains(line.text, "cannot be retrieved (gai error: ")) return ReadUnknownName(line, out);
  if (const LineUse use = ReadConnectRetry(line, out); use != LineUse::not_understood) return use;
  // RuntimeError: connect() timed out. Original timeout was 60000 ms.
  const auto place = After(line.text, "socket has ");
  std::string address = place ? AddressInParentheses(*place) : "";
  // Releases before 1.13: "... while trying to connect to 10.0.0.1:29400"
  if (auto bare = After(line.text, "while trying to connect to "); address.empty() && bare) {
    address = Capped(TakeWord(*bare), 200);
    while (address.ends_with('.') || address.ends_with(',')) address.pop_back();
  }
  const auto [record, is_new] = out.AddOnce(TorchLogKind::store_unreachable, line, address);
  if (!is_new) return LineUse::understood;
  record->subject = std::move(address);
  if (auto limit = After(line.text, "timed out after "); limit && TakeNumber(*limit, &record->value))
    if (limit->starts_with("s ")) record->value *= 1000;
  if (const auto limit = IntAfter(line.text, "Original timeout was ")) record->value = *limit;
  record->text = Capped(line.text);
  return LineUse::understood;
}

// torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 3/4 clients joined.
LineUse ReadMissingClients(const LogLine& line, RecordList& out) {
  const size_t end = std::min(line.text.find(" clients joined"), line.text.find(" workers joined"));
  const size_t blank = line.text.rfind(' ', end == 0 ? 0 : end - 1);
  std::string_view counts = line.text.substr(blank == std::string_view::npos ? 0 : blank + 1);
  int64_t joined = 0, expected = 0;
  if (!TakeNumber(counts, &joined) || !TakeLiteral(counts, "/") || !TakeNumber(counts, &expected))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::rendezvous_incomplete, line, "clients");
  if (!is_new) return LineUse::understood;
  record->value = joined;
  record->value2 = expected;
  record->text = Capped(line.text);
  return LineUse::understood;
}

// Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1
// (world_size=4,
//   num_workers_joined=3, timeout=0:30:00)
// Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=2,
//   worker_count=1, timeout=0:30:00)
LineUse ReadStoreBarrier(const LogLine& line, RecordList& out) {
  const bool waits = line.has(Keyword::store_barrier_wait);
  const auto after_key = After(line.text, "store_based_barrier_key:");
  const std::string_view key = after_key ? after_key->substr(0, after_key->find(' ')) : std::string_view();
  if (line.has(Keyword::store_barrier_passed)) {
    out.AddOnce(TorchLogKind::barrier_passed, line, key).first->subject = Capped(key, 60);
    return LineUse::understood;
  }
  // Where lines have no label, several ranks tell it as one voice.
  const auto rank = IntAfter<int32_t>(line.text, "rank: ");
  const std::string waiter = std::string(key) + '/' + std::to_string(rank.value_or(-1));
  const auto [record, is_new] = out.AddOnce(TorchLogKind::rendezvous_incomplete, line, waiter);
  record->object = Capped(key, 60);
  // A rank that still waits may yet get through; the import forgets it when the rank goes on.
  const bool waited = !is_new && !record->subject.empty();
  if (waits && waited) record->source = line.source;
  // The line that gives up is another one than those that wait: it is cited, and counted by itself.
  if (!waits && waited) record->source = line.source, record->time = line.time, record->repeats = 1;
  if (waits && !is_new && !waited) --record->repeats;
  if (is_new || !waits) record->subject = waits ? "waiting" : "";
  for (const std::string_view joined : {"num_workers_joined=", "worker_count="})
    if (const auto count = IntAfter(line.text, joined)) record->value = *count;
  // The last line may be cut: what an earlier one told stands.
  if (const auto world = IntAfter(line.text, "world_size=")) record->value2 = *world;
  if (rank) record->rank = *rank;
  if (is_new || (!waits && waited) || (waits == waited && line.text.size() >= record->text.size()))
    record->text = Capped(line.text);
  return LineUse::understood;
}

// torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError
// torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See
// inner ...
// Below num_nodes_waiting(), which an agent asks again and again while its workers run, the store was there and went;
// below next_rendezvous() it could not be reached in the first place.
LineUse ReadRendezvousError(const LogLine& line, const FailureState& state, RecordList& out) {
  constexpr uint32_t kFramesOfATraceback = 60;
  const std::string_view type = line.text.substr(0, line.text.find(':'));
  if (type.find(' ') != std::string_view::npos) return LineUse::not_understood;  // a line of code that names it
  // "The node 'n1_2207_0' has failed to shutdown the rendezvous '77' due to an error of type
  // RendezvousConnectionError."
  const bool at_its_end = Contains(line.text, "has failed to shutdown the rendezvous") ||
                          Contains(line.text, "has failed to send a keep-alive heartbeat");
  const bool runs = state.running_agent_line > 0 && line.source.line - state.running_agent_line <= kFramesOfATraceback;
  if (line.has(Keyword::rendezvous_connection) && (at_its_end || runs)) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::store_lost, line, kRendezvousStore);
    if (is_new) record->object = kRendezvousStore, record->text = Capped(line.text);
    if (is_new) record->value = Contains(line.text, "has failed to shutdown") ? 1 : 0;
    return LineUse::understood;
  }
  const auto kind =
      line.has(Keyword::rendezvous_timeout) ? TorchLogKind::rendezvous_incomplete : TorchLogKind::store_unreachable;
  const auto [record, is_new] = out.AddOnce(kind, line, "elastic");
  if (is_new) record->text = Capped(line.text);
  if (is_new) record->subject = kind == TorchLogKind::store_unreachable ? state.rdzv_endpoint : "agents";
  record->of_launcher = true;
  return LineUse::understood;
}

// "[10.0.1.17]:22780" behind "by peer ", "Read error " or "remote peer "
std::string_view PeerAddress(std::string_view text) {
  for (const std::string_view key : {"closed by peer ", "Read error ", "Write error ", "closed by remote peer "}) {
    auto rest = After(text, key);
    if (!rest) continue;
    std::string_view address = TakeWord(*rest);
    while (!address.empty() && std::string_view(":,.;\"'`)").find(address.back()) != std::string_view::npos)
      address.remove_suffix(1);
    return address;
  }
  return {};
}

}  // namespace

// [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.1.17]:22780
// [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:535] Read error [10.1.3.122]:42916: Connection reset by peer
LineUse ReadLostConnection(const LogLine& line, bool certain, RecordList& out) {
  if (!line.has(Keyword::peer_gone)) return LineUse::not_understood;
  if (Contains(line.text, "TCP client failed to connect")) return LineUse::ignored;
  // A data loader or a web client may lose its connection too: that is not ours.
  if (!certain && line.severity == 0 && !Contains(line.text, "gloo") && !Contains(line.text, "torch.distributed.Dist"))
    return LineUse::not_understood;
  // [7] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but
  // store->get('0') got error: Connection reset by peer: the store is lost, which runs in rank 0.
  if (Contains(line.text, "c10d key-value store")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::store_lost, line, "");
    if (is_new) record->text = Capped(line.text);
    return LineUse::understood;
  }
  const std::string_view address = PeerAddress(line.text);
  const auto [record, is_new] = out.AddOnce(TorchLogKind::connection_lost, line, address);
  if (!is_new) return LineUse::understood;
  record->subject = Capped(address, 200);
  record->text = Capped(line.text);
  return LineUse::understood;
}

// What the tries ran into says more than that the time was up: "(errno: 111 - Connection refused)".
static void TellLastTry(TorchLog& log) {
  const TorchLogRecord* last = nullptr;
  for (const TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::store_unreachable && record.object == kRetriedWord &&
        ContainsAny(record.text, {"(errno: ", "(gai error: "}))
      last = &record;
  if (last == nullptr) return;
  const size_t at = std::min(last->text.find("(errno: "), last->text.find("(gai error: "));
  if (at == std::string::npos) return;
  const std::string reason = last->text.substr(at, last->text.find(')', at) - at + 1);
  for (TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::store_unreachable && record.object != kRetriedWord &&
        record.source.line > last->source.line && !ContainsAny(record.text, {"errno: ", "gai error: "}))
      record.cure = reason, record.reason_line = last->source.line;
}

void DropFewRetries(TorchLog& log) {
  TellLastTry(log);
  std::erase_if(log.records, [&](TorchLogRecord& record) {
    if (record.kind == TorchLogKind::store_wait_timeout) return record.object == kToldAgain;
    if (record.kind != TorchLogKind::store_unreachable || record.object != kRetriedWord) return false;
    record.object.clear();
    if (record.repeats >= kManyLines) return false;
    log.harmless.push_back({HarmlessWarning::store_retried, record.repeats, record.source, record.subject});
    return true;
  });
}

LineUse ReadStoreText(const LogLine& line, FailureState& state, RecordList& out) {
  // "  rdzv_endpoint    : 10.40.1.16:29400"
  if (line.has(Keyword::rdzv_endpoint) && Trim(line.text).starts_with("rdzv_endpoint")) {
    std::string_view value = Trim(line.text).substr(13);
    SkipBlanks(value);
    if (!TakeLiteral(value, ":")) return LineUse::not_understood;
    state.rdzv_endpoint = Capped(Trim(value), 100);
    return LineUse::understood;
  }
  if (line.has(Keyword::agent_runs)) state.running_agent_line = line.source.line;
  // "Socket Timeout when using DDP" is a title, and no error.
  const bool of_socket = line.has(Keyword::socket_timeout) &&
                         (Contains(line.text, ": Socket Timeout") || Trim(line.text).ends_with("Socket Timeout"));
  if (line.has(Keyword::wait_timeout) || of_socket) return ReadWaitTimeout(line, state, out);
  if (line.has(Keyword::client_timeout)) return ReadUnreachable(line, out);
  if (line.has(Keyword::waiting_clients)) return ReadMissingClients(line, out);
  if (line.has(Keyword::store_barrier) || line.has(Keyword::store_barrier_wait) ||
      line.has(Keyword::store_barrier_passed))
    return ReadStoreBarrier(line, out);
  if (line.has(Keyword::rendezvous_timeout) || line.has(Keyword::rendezvous_connection))
    return ReadRendezvousError(line, state, out);
  // torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote
  // server ...
  const bool of_store =
      line.has(Keyword::on_socket) || line.has(Keyword::should_dump) || line.has(Keyword::broadcast_failed);
  if (of_store && line.severity == 0 && Contains(line.text, "DistNetworkError")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::store_lost, line, "");
    if (is_new) record->text = Capped(line.text);
    return LineUse::understood;
  }
  if (of_store) return LineUse::not_understood;
  const LineUse use = ReadLostConnection(line, false, out);
  // The sentence before it names whose connection it was.
  if (state.barrier != nullptr && state.barrier_voice == line.voice && use == LineUse::understood) {
    if (TorchLogRecord* lost = out.Said(TorchLogKind::connection_lost, line, PeerAddress(line.text)))
      lost->peer = state.barrier->peer;
    state.barrier = nullptr;
  }
  return use;
}

}  // namespace tacet
