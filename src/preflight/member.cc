// SPDX-License-Identifier: Apache-2.0
#include "preflight/member.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "preflight/gpu_exchange.h"
#include "preflight/link_probe.h"

namespace tacet {
namespace {

constexpr int64_t kPatienceMs = 120'000;  // between two commands: rank 0 waits for others meanwhile
constexpr int64_t kConnectMs = 3000;

LinkTarget TargetOf(const JsonValue& message) {
  LinkTarget target;
  if (const JsonValue* address = message.Find("address")) target.address = address->text;
  if (const JsonValue* port = message.Find("port"))
    target.port = static_cast<int>(std::clamp<int64_t>(port->Int(), 0, 65535));
  return target;
}

int64_t NumberIn(const JsonValue& message, std::string_view key, int64_t low, int64_t high) {
  const JsonValue* value = message.Find(key);
  return std::clamp(value != nullptr ? value->Int(low) : low, low, high);
}

// All of them at the same time, so that silent drops cost one time limit and not one each.
std::string ConnectAll(const JsonValue& message) {
  const JsonValue* peers = message.Find("peers");
  const size_t count = peers != nullptr ? std::min<size_t>(peers->items.size(), 512) : 0;
  std::vector<RoundTrip> trips(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] { trips[i] = MeasureRoundTrip(TargetOf(peers->items[i]), 1, kConnectMs); });
  for (std::thread& thread : threads) thread.join();
  JsonWriter json;
  json.BeginObject().Key("links").BeginArray();
  for (const RoundTrip& trip : trips) json.String(trip.error);
  return json.EndArray().EndObject().Take();
}

std::string Send(const JsonValue& message) {
  const LinkTarget target = TargetOf(message);
  const RoundTrip trip = MeasureRoundTrip(target, 100, kConnectMs);
  Throughput rate;
  if (trip.error.empty())
    rate = MeasureThroughput(target, static_cast<int>(NumberIn(message, "streams", 1, 16)),
                             NumberIn(message, "for_ms", 50, 5000));
  DatagramProbe datagrams;
  if (const int64_t mtu = NumberIn(message, "mtu", 0, 65535); mtu > 0 && trip.error.empty())
    datagrams = ProbeDatagrams(target, mtu);
  JsonWriter json;
  json.BeginObject().Key("error").String(trip.error.empty() ? rate.error : trip.error);
  json.Key("rtt_us").Double(trip.median_us).Key("bytes_per_s").Double(rate.bytes_per_s);
  return json.Key("small").Bool(datagrams.small).Key("large").Bool(datagrams.large).EndObject().Take();
}

std::string Ring(LinkServer& server, const JsonValue& message) {
  const RingRun run =
      RunRing(server, NumberIn(message, "id", 0, INT32_MAX), TargetOf(message),
              static_cast<int>(NumberIn(message, "hosts", 2, 65536)), NumberIn(message, "bytes", 1, int64_t{1} << 30),
              static_cast<int>(NumberIn(message, "repeat", 1, 1000)));
  JsonWriter json;
  json.BeginObject().Key("error").String(run.error).Key("seconds").BeginArray();
  for (const double seconds : run.seconds) json.Double(seconds);
  return json.EndArray().EndObject().Take();
}

// An all-reduce of GPUs, with this host's share of the ranks.
std::string Gpus(const MemberOptions& options, const HostFacts& facts, const JsonValue& message) {
  GpuExchangePlan plan;
  if (!facts.Value("torch").empty()) plan.python = options.facts.python;
  plan.gpus = static_cast<int>(NumberIn(message, "gpus", 0, 64));
  plan.first_rank = static_cast<int>(NumberIn(message, "first_rank", 0, INT32_MAX));
  plan.world = static_cast<int>(NumberIn(message, "world", 0, INT32_MAX));
  const LinkTarget target = TargetOf(message);
  plan.address = target.address;
  plan.port = target.port;
  const GpuExchange exchange = RunGpuExchange(plan);
  JsonWriter json;
  json.BeginObject().Key("error").String(exchange.error).Key("small_us").Double(exchange.small_us);
  return json.Key("bus_bytes_per_s").Double(exchange.bus_bytes_per_s).EndObject().Take();
}

std::string FreePort() {
  int port = 0;
  const auto socket = Listen(0, 0, &port);
  return "{\"port\":" + std::to_string(socket ? port : 0) + "}";
}

std::string Hello(const MemberOptions& options, const HostFacts& facts, const LinkServer* server,
                  const std::string& problem, int fd) {
  JsonWriter json;
  json.BeginObject().Key("tacet").String("preflight").Key("token").String(options.place.token);
  json.Key("rank").Int(options.place.rank).Key("size").Int(options.place.size);
  json.Key("port").Int(server != nullptr ? server->port() : 0).Key("port_problem").String(problem);
  json.Key("address").String(LocalAddress(fd)).Key("facts");
  WriteFacts(json, facts);
  return json.EndObject().Take();
}

// Rank 0 may start later than we do.
Result<Socket> Meet(const MemberOptions& options) {
  const int64_t deadline = MonotonicMs() + options.meet_ms;
  for (;;) {
    const int64_t left = deadline - MonotonicMs();
    auto socket = ConnectTo(options.place.meet_host, options.place.meet_port, std::max<int64_t>(left, 1));
    if (socket || left <= 0)
      return socket ? std::move(socket)
                    : Result<Socket>(Error{"rank " + std::to_string(options.place.rank) + " cannot reach rank 0 at " +
                                               options.place.meet_host + ":" + std::to_string(options.place.meet_port) +
                                               ": " + socket.error().message,
                                           "is the port blocked, the name right, and rank 0 started?"});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

Result<int> TakePart(const MemberOptions& options) {
  auto server = LinkServer::Start(options.first_port, options.last_port);
  const HostFacts facts = CollectHostFacts(options.facts);
  auto socket = Meet(options);
  if (!socket) return socket.error();
  MessageChannel rank0(std::move(*socket));
  const std::string hello =
      Hello(options, facts, server ? server->get() : nullptr, server ? "" : server.error().message, rank0.fd());
  bool good = rank0.Send(hello, MonotonicMs() + 10'000);
  while (good) {
    const auto message = rank0.Receive(MonotonicMs() + kPatienceMs);
    const JsonValue* what = message ? message->Find("do") : nullptr;
    if (what == nullptr) break;
    std::string answer = "{}";
    if (what->text == "end") return static_cast<int>(NumberIn(*message, "code", 0, 3));
    if (what->text == "connect") answer = ConnectAll(*message);
    if (what->text == "send") answer = Send(*message);
    if (what->text == "ring" && server) answer = Ring(**server, *message);
    if (what->text == "gpus") answer = Gpus(options, facts, *message);
    if (what->text == "port") answer = FreePort();
    if (what->text == "time") answer = "{\"wall_ns\":" + std::to_string(WallNs()) + "}";
    good = rank0.Send(answer, MonotonicMs() + 10'000);
  }
  return Error{"rank 0 exited before the verdict", "its own output says why"};
}

}  // namespace tacet
