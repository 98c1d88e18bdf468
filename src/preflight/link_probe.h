// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "preflight/message_channel.h"

namespace tacet {

// The passive end of every measurement: echoes, swallows, hands ring connections over, answers datagrams.
class LinkServer {
 public:
  static Result<std::unique_ptr<LinkServer>> Start(int first_port, int last_port);
  ~LinkServer();
  int port() const { return port_; }
  // The connection of the neighbour before us in ring `id`.
  Socket TakeRing(int64_t id, int64_t deadline_ms);

 private:
  static constexpr size_t kMostConnections = 1024;  // of them at the same time

  LinkServer(Socket tcp, Socket udp, int port);
  void Accept();
  void AnswerDatagrams();
  void Serve(Socket socket);

  Socket tcp_, udp_;
  int port_;
  std::atomic<bool> stopping_{false};
  std::atomic<size_t> serving_{0};
  std::mutex mutex_;
  std::condition_variable ring_came_;
  std::map<int64_t, Socket> rings_;
  std::thread acceptor_, answerer_;
};

struct LinkTarget {
  std::string address;
  int port = 0;
};

struct RoundTrip {
  std::string error;  // empty: it went well
  double median_us = 0;
};
RoundTrip MeasureRoundTrip(const LinkTarget& target, int count, int64_t connect_ms);

struct Throughput {
  std::string error;
  double bytes_per_s = 0;
};
// Several streams for some time, until the other side has everything.
Throughput MeasureThroughput(const LinkTarget& target, int streams, int64_t for_ms);

// Whether a datagram of the interface's full size arrives where a small one does.
struct DatagramProbe {
  bool small = false, large = false;
};
DatagramProbe ProbeDatagrams(const LinkTarget& target, int64_t mtu);

// The data movement of a ring all-reduce of `bytes` among `hosts`: 2 (hosts - 1) steps, each waits for the one before.
struct RingRun {
  std::string error;
  std::vector<double> seconds;  // of each repetition
};
RingRun RunRing(LinkServer& server, int64_t id, const LinkTarget& next, int hosts, int64_t bytes, int repeat);

}  // namespace tacet
