// SPDX-License-Identifier: Apache-2.0
#include "model/events/connect_problem.h"

#include <gtest/gtest.h>

#include "model/events/event.h"

namespace tacet {
namespace {

TEST(ConnectProblem, GoesByTheSystemsError) {
  EXPECT_EQ(ReadConnectProblem("failed to connect to [node0]:29500 (errno: 111 - Connection refused)."),
            ConnectProblem::refused);
  EXPECT_EQ(ReadConnectProblem("failed to connect to [node0]:29500 (errno: 110 - Connection timed out)."),
            ConnectProblem::no_answer);
  EXPECT_EQ(ReadConnectProblem("failed to connect to [node0]:29500 (errno: 113 - No route to host)."),
            ConnectProblem::host_unreachable);
  EXPECT_EQ(ReadConnectProblem("failed to connect to [node0]:29500 (errno: 101 - Network is unreachable)."),
            ConnectProblem::no_route);
  EXPECT_EQ(
      ReadConnectProblem("The IPv4 network addresses of (node0, 29500) cannot be retrieved (gai error: -2 - Name or "
                         "service not known)."),
      ConnectProblem::no_name);
  EXPECT_EQ(ReadConnectProblem("Connect to 10.0.0.2<45763> failed : Software caused connection abort"),
            ConnectProblem::aborted);
  EXPECT_EQ(ReadConnectProblem("Connect to 10.0.0.2<45763> failed : Cannot assign requested address"),
            ConnectProblem::no_own_address);
}

TEST(ConnectProblem, TakesTheClientsOwnLimitForNoneOfThem) {
  EXPECT_EQ(ReadConnectProblem("The client socket has timed out after 60s while trying to connect to (h, 29400)."),
            ConnectProblem::not_told);
  EXPECT_EQ(ReadConnectProblem("The connection to the C10d store has failed. See inner exception for details."),
            ConnectProblem::not_told);
}

TEST(ConnectProblem, WhoOnlyWaitsHasNotGivenUp) {
  Event event;
  event.kind = EventKind::connect_failed;
  event.library = Library::other;
  event.Make<ConnectFailure>().address = "192.0.2.41:8477";
  EXPECT_TRUE(IsStillConnecting(event));
  event.Make<ConnectFailure>().words = "Connection refused";
  EXPECT_FALSE(IsStillConnecting(event));
}

}  // namespace
}  // namespace tacet
