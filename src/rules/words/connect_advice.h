// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"
#include "rules/unexplained/told_finding.h"

namespace tacet {

// "process 9912 on cn31 cannot connect to rank 17 at 10.44.2.9:51120 over TCP", and what to check: the adapters of
// InfiniBand have no part in it.
std::string TcpConnectWords(const Event& failure, const ToldEvents& told);
// What to do about a connection that UCX, or Hydra and MPICH, cannot make; empty for all others.
std::vector<std::string> LibraryConnectSteps(const Event& failure, const std::string& address);
// "0.78.33.91" for "5120347:40217": what the resolver takes a host name of digits alone for. Empty for all others.
std::string AddressOfDigits(const std::string& address);
std::vector<std::string> NumericNameSteps();
// The same of NCCL itself, which neither the store nor the rendezvous has a part in.
std::vector<std::string> NcclConnectSteps(const std::string& address);
// Nothing that is sent over EFA gets through: a security group or a firewall is in the way.
std::string BlockedWords(const ToldEvents& told);
std::vector<std::string> BlockedSteps();
std::vector<std::string> TcpConnectSteps(const Event& failure, const ToldEvents& told);

// NCCL_IB_GID_INDEX is set in the process whose adapter cannot be connected: says and cites it, and what to set.
void TellGidSetting(const Case& facts, const Event& failure, Finding& finding);
// No port of an adapter that is listed beside the error is active: that comes first.
void TellInactivePorts(const Case& facts, Finding& finding);

}  // namespace tacet
