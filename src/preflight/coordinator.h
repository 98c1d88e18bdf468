// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "preflight/job_place.h"
#include "preflight/message_channel.h"
#include "preflight/preflight_evidence.h"

namespace tacet {

struct CoordinatorOptions {
  JobPlace place;
  int64_t wait_ms = 20'000;  // for all ranks to come
  bool measure = true;
  std::function<void(const std::string&)> progress;
};

// Rank 0's part: takes everybody in, has them measure, gathers what they say.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options) : options_(std::move(options)) {}
  // Opens the port that the others come to.
  bool Open();
  void Gather();
  void Measure();
  PreflightEvidence& evidence() { return evidence_; }
  void End(int code);

 private:
  struct Arrived {
    int rank = -1;
    std::unique_ptr<MessageChannel> channel;
    HostFacts facts;
    std::string address, our_address, port_problem;
    int port = 0;
    size_t host = 0;
  };

  void Admit(Socket socket);
  void FormHosts();
  void ChooseAddress(const Arrived& first, PreflightHost& host) const;
  MessageChannel& ChannelOf(size_t host) { return *arrived_[measuring_[host]].channel; }
  std::string CommandTo(size_t to, const char* what, const std::string& more) const;
  // All of these at the same time; nothing where a host does not answer.
  std::vector<std::optional<JsonValue>> Ask(const std::vector<std::pair<size_t, std::string>>& commands,
                                            int64_t limit_ms);

  void ReadClocks();
  void TryConnections();
  void MeasureLoopback();
  void MeasurePairs();
  void MeasureAlone();
  void MeasureDirection(const std::vector<std::pair<size_t, size_t>>& pairs, bool alone);
  void MeasureRings();
  void MeasureGpus();

  CoordinatorOptions options_;
  Socket listener_;
  std::vector<Arrived> arrived_;
  std::vector<size_t> measuring_;  // per host, index into arrived_
  PreflightEvidence evidence_;
};

// Rounds of disjoint pairs in which everybody meets everybody once; at most `most` rounds.
std::vector<std::vector<std::pair<size_t, size_t>>> PairRounds(size_t hosts, size_t most);

// Whether NCCL_SOCKET_IFNAME selects this interface: prefixes, "=" for exact names, "^" to exclude.
bool SelectsInterface(std::string_view list, std::string_view name);
// What keeps NCCL from finding the interface that it is told to use; empty where nothing does.
std::string InterfaceProblem(const HostFacts& facts);

}  // namespace tacet
