// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

// What a log shipper writes before every line, one line for each.
enum class ShipperHead : uint8_t {
  none,
  rfc5424,  // <3>1 2026-11-15T00:20:00.123456+00:00 node7 kernel - - - text
  fluentd,  // 2026-11-15T00:20:00+00:00<tab>kube.var.log<tab>{"log":"text","stream":"stderr"}
  loki,     // 2026-11-15T00:20:00+01:00 {app="trainer", pod="trainer-0"} text
  stream,   // 2026-11-15T00:20:00.123Z training/algo-1-1739502001 text
  compose,  // trainer-1  | text
  pdsh,     // worker-3: text, 10.0.0.12: text
  hydra,    // [3] text, as mpiexec -l of MPICH and Intel MPI writes it
  logfmt,   // time="2026-11-15T00:20:00Z" level=info msg="text"
  clock,    // Nov 15 00:20:00 text, as ts writes it
  bars,     // 5b7e90d1-11aa || text, a job's name before every line
  splunk,   // 11/15/2026 00:20:00.000 -0800 host=node7 sourcetype=torch _raw="text"
};

std::string_view Name(ShipperHead head);

// From the first bytes of a file.
ShipperHead FindShipperHead(std::string_view prefix);

struct ShippedLine {
  std::string text;
  std::string source;  // pod or service, where told
};

// False where the line has no such head.
bool TakeShippedLine(std::string_view line, ShipperHead head, ShippedLine* out);

}  // namespace tacet
