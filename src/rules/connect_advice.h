// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"
#include "rules/told_finding.h"

namespace tacet {

// "process 9912 on cn31 cannot connect to rank 17 at 10.44.2.9:51120 over TCP", and what to check: the adapters of
// InfiniBand have no part in it.
std::string TcpConnectWords(const Event& failure, const ToldEvents& told);
std::vector<std::string> TcpConnectSteps(const Event& failure, const ToldEvents& told);

// NCCL_IB_GID_INDEX is set in the process whose adapter cannot be connected: says and cites it, and what to set.
void TellGidSetting(const Case& facts, const Event& failure, Finding& finding);
// No port of an adapter that is listed beside the error is active: that comes first.
void TellInactivePorts(const Case& facts, Finding& finding);

}  // namespace tacet
