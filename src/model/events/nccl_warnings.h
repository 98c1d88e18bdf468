// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tacet {

enum class Library : uint8_t;

enum class NcclWarningRole : uint8_t {
  notice,     // the job goes on; at worst it is slower
  secondary,  // a healthy process says that another one failed
  cause,      // this process, its host or its arguments are at fault
};

// One kind of warning, whatever the release words it like. Ids are stable: rules and reports name them.
struct NcclWarning {
  std::string_view id;
  NcclWarningRole role = NcclWarningRole::cause;
  std::string_view meaning;  // what happened
  std::string_view advice;   // what to do about it
  Library library{};         // whose word it is; not told: NCCL's
};

std::span<const NcclWarning> AllNcclWarnings();
// nullptr for an unknown id.
const NcclWarning* FindNcclWarning(std::string_view id);

// Which warning a WARN message is; "other" where the text is not known.
const NcclWarning& ClassifyWarning(std::string_view message);
// The same for an INFO message; nullptr where it warns of nothing.
const NcclWarning* ClassifyInfoWarning(std::string_view message);

// Numbers inside a warning. -1: none.
struct NcclWarningNumbers {
  int64_t value = -1;  // completion status, CUDA or system error; bytes received; the first of two ranks or counts
  int64_t other = -1;  // bytes expected; the second rank or count
};
NcclWarningNumbers ParseWarningNumbers(const NcclWarning& warning, std::string_view message);

// The path, address or device that such a message names; empty where it names none.
std::string_view ParseWarningObject(const NcclWarning& warning, std::string_view message);

// The role of one such message: a flushed work request (status 5) follows another error, and an INFO line is rarely a
// cause.
NcclWarningRole RoleOf(const NcclWarning& warning, NcclWarningNumbers numbers, bool at_info_level);

// The CUDA error that ends the process, as CUDA words it ("out of memory", "an illegal memory access was encountered"),
// of a warning at WARN level; empty for those that NCCL lives with (peer access, multicast, a driver that shuts down).
std::string_view FatalCudaError(const NcclWarning& warning, std::string_view message);

bool IsConnectionLoss(const NcclWarning& warning);
// "10.0.0.7<41234>" of "Connection closed by remote peer 10.0.0.7<41234>"; empty where none is printed.
std::string_view ParsePeerAddress(std::string_view message);

}  // namespace tacet
