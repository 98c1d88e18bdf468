// SPDX-License-Identifier: Apache-2.0
// What rank 0 has the hosts measure, in which order.
#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/json_writer.h"
#include "preflight/coordinator.h"

namespace tacet {
namespace {

constexpr size_t kMostForAllPairs = 64;  // hosts; beyond that each tries its next neighbours
constexpr size_t kNeighbours = 16, kMostRounds = 6;
constexpr int kStreams = 4;  // one TCP stream does not fill a fast link
constexpr int64_t kStreamMs = 400, kAloneMs = 600, kLoopbackMs = 250;
constexpr int64_t kAnswerMs = 12'000;
constexpr int64_t kSmallBytes = 64 << 10, kLargeLeast = 1 << 20, kLargeMost = 128 << 20;

double DoubleIn(const JsonValue& message, std::string_view key) {
  const JsonValue* value = message.Find(key);
  return value != nullptr ? value->Double() : 0;
}

bool BoolIn(const JsonValue& message, std::string_view key) {
  const JsonValue* value = message.Find(key);
  return value != nullptr && value->boolean;
}

}  // namespace

// {"do":"send","address":"10.0.0.2","port":40001,...}
std::string Coordinator::CommandTo(size_t to, const char* what, const std::string& more) const {
  JsonWriter json;
  json.BeginObject()
      .Key("do")
      .String(what)
      .Key("address")
      .String(evidence_.hosts[to].address)
      .Key("port")
      .Int(evidence_.hosts[to].port);
  std::string text = json.EndObject().Take();
  text.insert(text.size() - 1, more);
  return text;
}

void Coordinator::Measure() {
  const auto tell = [&](const char* what) {
    if (options_.progress) options_.progress(what);
  };
  tell("clocks");
  ReadClocks();
  if (evidence_.hosts.size() < 2 || !options_.measure) return;
  tell("connections");
  TryConnections();
  tell("links");
  MeasureLoopback();
  MeasurePairs();
  MeasureAlone();
  tell("exchanges");
  MeasureRings();
  tell("GPUs");
  MeasureGpus();
}

void Coordinator::ReadClocks() {
  for (size_t host = 0; host < evidence_.hosts.size(); ++host) {
    PreflightHost& one = evidence_.hosts[host];
    for (int i = 0; i < 5; ++i) {
      const int64_t before = WallNs();
      const auto answers = Ask({{host, "{\"do\":\"time\"}"}}, 2000);
      const int64_t after = WallNs();
      const JsonValue* there = answers[0] ? answers[0]->Find("wall_ns") : nullptr;
      if (there == nullptr) return;
      const double error_ms = static_cast<double>(after - before) / 2e6;
      if (one.clock_ms && error_ms >= one.clock_error_ms) continue;
      one.clock_error_ms = error_ms;
      one.clock_ms = static_cast<double>(there->Int() - (before + (after - before) / 2)) / 1e6;
    }
  }
}

void Coordinator::TryConnections() {
  const size_t count = evidence_.hosts.size();
  std::vector<std::pair<size_t, std::string>> commands;
  std::vector<std::vector<size_t>> peers(count);
  for (size_t from = 0; from < count; ++from) {
    const size_t most = count <= kMostForAllPairs ? count - 1 : kNeighbours;
    JsonWriter json;
    json.BeginObject().Key("do").String("connect").Key("peers").BeginArray();
    for (size_t step = 1; step <= most; ++step) {
      const size_t to = (from + step) % count;
      if (!evidence_.hosts[to].port_problem.empty()) continue;
      peers[from].push_back(to);
      json.BeginObject()
          .Key("address")
          .String(evidence_.hosts[to].address)
          .Key("port")
          .Int(evidence_.hosts[to].port)
          .EndObject();
    }
    commands.emplace_back(from, json.EndArray().EndObject().Take());
  }
  const auto answers = Ask(commands, kAnswerMs);
  evidence_.tried_connections = true;
  for (size_t from = 0; from < count; ++from) {
    const JsonValue* links = answers[from] ? answers[from]->Find("links") : nullptr;
    for (size_t i = 0; i < peers[from].size(); ++i) {
      const bool told = links != nullptr && i < links->items.size();
      const std::string error = told ? links->items[i].text : "no answer from " + evidence_.hosts[from].name;
      if (!error.empty()) evidence_.failed.push_back({from, peers[from][i], error});
    }
  }
}

void Coordinator::MeasureLoopback() {
  std::vector<std::pair<size_t, std::string>> commands;
  for (size_t host = 0; host < evidence_.hosts.size(); ++host)
    commands.emplace_back(
        host, CommandTo(host, "send",
                        ",\"streams\":" + std::to_string(kStreams) + ",\"for_ms\":" + std::to_string(kLoopbackMs)));
  const auto answers = Ask(commands, kAnswerMs);
  for (size_t host = 0; host < answers.size(); ++host)
    if (answers[host]) evidence_.hosts[host].loopback_bytes_per_s = DoubleIn(*answers[host], "bytes_per_s");
}

void Coordinator::MeasureDirection(const std::vector<std::pair<size_t, size_t>>& pairs, bool alone) {
  std::vector<std::pair<size_t, std::string>> commands;
  std::vector<std::pair<size_t, size_t>> asked;
  for (const auto& [from, to] : pairs) {
    const bool failed =
        std::any_of(evidence_.failed.begin(), evidence_.failed.end(),
                    [&, f = from, t = to](const FailedConnection& one) { return one.from == f && one.to == t; });
    if (failed || !ChannelOf(from).open()) continue;
    const NetInterface* interface = evidence_.hosts[from].facts.InterfaceOf(evidence_.hosts[from].address);
    commands.emplace_back(
        from, CommandTo(to, "send",
                        ",\"streams\":" + std::to_string(kStreams) +
                            ",\"for_ms\":" + std::to_string(alone ? kAloneMs : kStreamMs) +
                            ",\"mtu\":" + std::to_string(interface != nullptr && !alone ? interface->mtu : 0)));
    asked.emplace_back(from, to);
  }
  const auto answers = Ask(commands, kAnswerMs);
  for (size_t i = 0; i < answers.size(); ++i) {
    LinkMeasurement link;
    link.from = asked[i].first;
    link.to = asked[i].second;
    link.alone = alone;
    link.error = "no answer";
    if (answers[i]) {
      const JsonValue* error = answers[i]->Find("error");
      link.error = error != nullptr ? error->text : "no answer";
      link.rtt_us = DoubleIn(*answers[i], "rtt_us");
      link.bytes_per_s = DoubleIn(*answers[i], "bytes_per_s");
      link.tried_datagrams = !alone;
      link.small = BoolIn(*answers[i], "small");
      link.large = BoolIn(*answers[i], "large");
    }
    evidence_.links.push_back(std::move(link));
  }
}

void Coordinator::MeasurePairs() {
  for (auto pairs : PairRounds(evidence_.hosts.size(), kMostRounds)) {
    MeasureDirection(pairs, false);
    for (auto& [a, b] : pairs) std::swap(a, b);
    MeasureDirection(pairs, false);
  }
}

// A host that looks slow gets a second look with nothing else on the wire, and with the partner that did best.
void Coordinator::MeasureAlone() {
  const std::vector<SlowHost> slow = FindSlowHosts(evidence_);
  constexpr size_t kMostLooks = 8;
  for (size_t i = 0; i < slow.size() && i < kMostLooks; ++i) {
    size_t partner = slow[i].host;
    double best = 0;
    for (const LinkMeasurement& link : evidence_.links)
      if (const size_t other = slow[i].sends ? link.to : link.from; other != slow[i].host && link.bytes_per_s > best) {
        best = link.bytes_per_s;
        partner = other;
      }
    if (partner == slow[i].host) continue;
    MeasureDirection({slow[i].sends ? std::pair{slow[i].host, partner} : std::pair{partner, slow[i].host}}, true);
  }
}

void Coordinator::MeasureRings() {
  const size_t count = evidence_.hosts.size();
  double slowest = 0, trip_us = 0;
  for (size_t i = 0; i < count; ++i) {
    const double rate = ExpectedBytesPerS(evidence_.hosts[i], evidence_.hosts[(i + 1) % count]);
    if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
  }
  double measured = 0;
  for (const LinkMeasurement& link : evidence_.links) {
    trip_us = std::max(trip_us, link.rtt_us);
    if (link.error.empty() && (measured == 0 || link.bytes_per_s < measured)) measured = link.bytes_per_s;
  }
  if (!evidence_.failed.empty() || measured <= 0) return;
  // About a second's worth, also on a slow link.
  const int64_t large = std::clamp(static_cast<int64_t>(measured / 2), kLargeLeast, kLargeMost);
  struct Plan {
    const char* kind;
    int64_t bytes;
    int repeat;
  };
  int64_t id = 0;
  for (const Plan& plan : {Plan{"barrier", static_cast<int64_t>(count), 20}, Plan{"small all-reduce", kSmallBytes, 20},
                           Plan{"large all-reduce", large, 2}}) {
    ++id;
    std::vector<std::pair<size_t, std::string>> commands;
    for (size_t host = 0; host < count; ++host)
      commands.emplace_back(host, CommandTo((host + 1) % count, "ring",
                                            ",\"id\":" + std::to_string(id) + ",\"hosts\":" + std::to_string(count) +
                                                ",\"bytes\":" + std::to_string(plan.bytes) +
                                                ",\"repeat\":" + std::to_string(plan.repeat)));
    RingMeasurement ring{plan.kind, plan.bytes, "", 0, 0};
    const double steps = 2.0 * static_cast<double>(count - 1);
    ring.predicted_s =
        slowest > 0 ? steps * (trip_us / 2e6 + static_cast<double>(plan.bytes) / static_cast<double>(count) / slowest)
                    : 0;
    for (const auto& answer : Ask(commands, 25'000)) {
      const JsonValue* seconds = answer ? answer->Find("seconds") : nullptr;
      const JsonValue* error = answer ? answer->Find("error") : nullptr;
      if (seconds == nullptr || seconds->items.empty() || (error != nullptr && !error->text.empty())) {
        ring.error = error != nullptr && !error->text.empty() ? error->text : "a host did not answer";
        continue;
      }
      std::vector<double> times;
      for (const JsonValue& one : seconds->items) times.push_back(one.Double());
      std::sort(times.begin(), times.end());
      ring.seconds = std::max(ring.seconds, times[times.size() / 2]);
    }
    evidence_.rings.push_back(ring);
    if (!ring.error.empty()) return;
  }
}

// NCCL itself, first inside each host, then over all of them, where there are GPUs and something to drive them.
void Coordinator::MeasureGpus() {
  const auto read = [](const std::optional<JsonValue>& answer) {
    GpuMeasurement gpus;
    const JsonValue* error = answer ? answer->Find("error") : nullptr;
    gpus.error = error != nullptr ? error->text : "no answer";
    if (answer) gpus.small_us = DoubleIn(*answer, "small_us");
    if (answer) gpus.bus_bytes_per_s = DoubleIn(*answer, "bus_bytes_per_s");
    return gpus;
  };
  std::vector<std::pair<size_t, std::string>> local, across;
  std::vector<size_t> asked;
  int64_t world = 0;
  bool all_have_torch = true;
  for (const PreflightHost& host : evidence_.hosts) world += host.facts.Number("gpu_count", 0);
  int64_t first_rank = 0;
  const auto ports = Ask({{0, "{\"do\":\"port\"}"}}, 2000);
  const JsonValue* port = ports[0] ? ports[0]->Find("port") : nullptr;
  const auto where = [&](const std::string& address, int64_t gpus, int64_t first, int64_t ranks) {
    JsonWriter json;
    json.BeginObject().Key("do").String("gpus").Key("address").String(address).Key("port").Int(
        port != nullptr ? port->Int() : 0);
    return json.Key("gpus").Int(gpus).Key("first_rank").Int(first).Key("world").Int(ranks).EndObject().Take();
  };
  for (size_t host = 0; host < evidence_.hosts.size(); ++host) {
    const HostFacts& facts = evidence_.hosts[host].facts;
    const int64_t gpus = facts.Number("gpu_count", 0);
    const bool torch = !facts.Value("torch").empty() && facts.Value("cuda") != "none";
    all_have_torch &= torch && gpus > 0;
    if (gpus > 1 && (torch || !facts.Value("nccl_tests").empty())) {
      asked.push_back(host);
      local.emplace_back(host, where("127.0.0.1", gpus, 0, gpus));
    }
    across.emplace_back(host, where(evidence_.hosts[0].address, gpus, first_rank, world));
    first_rank += gpus;
  }
  const auto answers = Ask(local, 30'000);
  for (size_t i = 0; i < answers.size(); ++i) evidence_.hosts[asked[i]].gpus = read(answers[i]);
  const bool failed = std::any_of(evidence_.hosts.begin(), evidence_.hosts.end(),
                                  [](const PreflightHost& host) { return host.gpus && !host.gpus->error.empty(); });
  if (evidence_.hosts.size() < 2 || !all_have_torch || failed || !evidence_.failed.empty()) return;
  for (const auto& answer : Ask(across, 30'000)) {
    const GpuMeasurement one = read(answer);
    if (!evidence_.all_gpus || !one.error.empty()) evidence_.all_gpus = one;
  }
}

}  // namespace tacet
