// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

struct Event;

// Why a connection failed, by the system's own error. Each has another remedy: a host that refuses is up, and one that
// does not answer may be behind a firewall; a name that does not resolve leads to none. "No route to host" is also what
// a host that is down and a firewall that rejects look like; "Network is unreachable" is a matter of routes alone. An
// attempt that the own host aborts, or has no address for, never left it; and two processes may have no transport in
// common.
enum class ConnectProblem : uint8_t {
  not_told,
  refused,
  no_answer,
  host_unreachable,
  no_route,
  no_name,
  aborted,
  no_own_address,
  no_transport,
};

ConnectProblem ReadConnectProblem(std::string_view message);

// "Waiting to connect to the master 10.9.1.20:8477": nothing has failed yet, and nobody has given up.
bool IsStillConnecting(const Event& event);

}  // namespace tacet
