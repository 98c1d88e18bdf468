// SPDX-License-Identifier: Apache-2.0
#include "model/events/connect_problem.h"

#include "base/text_scan.h"
#include "model/events/event.h"

namespace tacet {

// The client socket has failed to connect to [node0]:29500 (errno: 111 - Connection refused).
// "The client socket has timed out after 60s" only tells the client's own limit: what stopped each try it does not say.
ConnectProblem ReadConnectProblem(std::string_view message) {
  if (ContainsAny(message, {"errno: 111", "onnection refused", "system error: 10061"})) return ConnectProblem::refused;
  if (ContainsAny(message, {"errno: 113", "o route to host"})) return ConnectProblem::host_unreachable;
  if (ContainsAny(message, {"errno: 101 ", "etwork is unreachable"})) return ConnectProblem::no_route;
  if (ContainsAny(message, {"errno: 110", "onnection timed out", "system error: 10060"}))
    return ConnectProblem::no_answer;
  if (ContainsAny(message, {"gai error: -2", "gai error: -3", "gai error: -5", "ame or service not known",
                            "ailure in name resolution"}))
    return ConnectProblem::no_name;
  if (Contains(message, "oftware caused connection abort")) return ConnectProblem::aborted;
  if (Contains(message, "annot assign requested address")) return ConnectProblem::no_own_address;
  // Open MPI: "At least one pair of MPI processes are unable to reach each other for MPI communications."
  if (Contains(message, "unable to reach each other")) return ConnectProblem::no_transport;
  return ConnectProblem::not_told;
}

bool IsStillConnecting(const Event& event) {
  return event.kind == EventKind::connect_failed && event.library == Library::other &&
         event.As<ConnectFailure>().words.empty() && !event.As<ConnectFailure>().address.empty();
}

}  // namespace tacet
