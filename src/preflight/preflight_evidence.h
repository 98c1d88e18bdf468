// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lint/environment_lint.h"
#include "preflight/host_facts.h"

namespace tacet {

// An all-reduce of GPUs with NCCL.
struct GpuMeasurement {
  std::string error;
  double small_us = 0, bus_bytes_per_s = 0;
};

// One machine, however many ranks it has. The process with its lowest rank measures.
struct PreflightHost {
  std::string name;  // with its address behind it where two hosts have the same name
  std::vector<int> ranks;
  HostFacts facts;
  std::string address, interface;  // that others reach it by
  int port = 0;
  std::string port_problem;            // why it has none
  std::optional<double> clock_ms;      // ahead of rank 0's
  double clock_error_ms = 0;           // half the round trip of the question
  double loopback_bytes_per_s = 0;     // what TCP gives inside this host
  std::string interface_problem;       // NCCL_SOCKET_IFNAME matches nothing
  std::optional<GpuMeasurement> gpus;  // all-reduce of its own GPUs
};

struct FailedConnection {
  size_t from = 0, to = 0;  // hosts
  std::string error;
};

struct LinkMeasurement {
  size_t from = 0, to = 0;
  std::string error;
  double rtt_us = 0, bytes_per_s = 0;
  bool small = false, large = false;  // datagrams of 64 bytes and of the interface's MTU that arrived
  bool tried_datagrams = false;
  bool alone = false;  // no other link was busy
};

struct RingMeasurement {
  std::string kind;  // "barrier", "small all-reduce", "large all-reduce"
  int64_t bytes = 0;
  std::string error;
  double seconds = 0, predicted_s = 0;
};

// All that rank 0 knows when it judges.
struct PreflightEvidence {
  std::string launcher;
  int size = 1;
  std::vector<int> missing_ranks, doubled_ranks, other_size_ranks;
  std::vector<PreflightHost> hosts;  // by lowest rank
  std::vector<GivenEnvironment> environments;
  std::vector<FailedConnection> failed;
  std::vector<LinkMeasurement> links;
  std::vector<RingMeasurement> rings;
  std::optional<GpuMeasurement> all_gpus;  // of all hosts together
  bool tried_connections = false;
  std::string meet_problem;  // the port of rank 0 cannot be opened
  double seconds = 0;
};

enum class CheckLevel { ok, warn, fail, skipped };
std::string_view Name(CheckLevel level);

struct PreflightCheck {
  std::string id;  // "mtu"
  CheckLevel level = CheckLevel::ok;
  std::vector<std::string> hosts;  // the odd ones
  std::string says;                // one sentence
  std::string advice;
};

enum class PreflightVerdict { go, no_go, undetermined };
std::string_view Name(PreflightVerdict verdict);

struct PreflightReport {
  PreflightVerdict verdict = PreflightVerdict::undetermined;
  std::vector<PreflightCheck> checks;  // failures first
  std::vector<LintFinding> lint;
  PreflightEvidence evidence;
};

// Pure. Hosts are held against each other first, against what their own links promise second, and against fixed numbers
// only where a protocol or a default of containers fixes them.
PreflightReport JudgePreflight(PreflightEvidence evidence);

// Hosts whose best link in one direction is far below that of the others: they are measured again, alone.
struct SlowHost {
  size_t host = 0;
  bool sends = false;  // slow when it sends, else when it receives
  double best_bytes_per_s = 0, usual_bytes_per_s = 0;
};
std::vector<SlowHost> FindSlowHosts(const PreflightEvidence& evidence);

// What the interfaces of both ends and the hosts' own TCP allow; 0: nobody tells.
double ExpectedBytesPerS(const PreflightHost& from, const PreflightHost& to);

std::string RenderPreflightText(const PreflightReport& report, bool colour, int width);
std::string RenderPreflightJson(const PreflightReport& report);  // tacet.preflight.v1

}  // namespace tacet
