// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tacet {

// The number of the step, iteration or epoch that a job's own line tells; -1 for a line that shows progress without a
// number ("loss 0.31"); nothing for any other line.
// `of_epoch`: set where it is the number of an epoch.
std::optional<int64_t> FindProgress(std::string_view text, bool* of_epoch = nullptr);

// weak: the whole line says no more than "rank 3 finished"; strong: a phrase that trainers print at the very end.
enum class FinishSign : uint8_t { none, weak, strong };
FinishSign FindFinishSign(std::string_view text);
// Kubernetes says of a pod that all its containers ended with 0: what its list of events tells below began before.
bool IsDonePod(std::string_view text);

// "Starting evaluation", "Loading the best checkpoint": behind a line that says that training is done, the program goes
// on.
bool BeginsWork(std::string_view text);

// "rank=2 pid 1552 job -": the job tells its own pid; -1 where it does not.
int64_t FindOwnPid(std::string_view text);

}  // namespace tacet
