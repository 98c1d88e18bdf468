// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tacet {

// How a value is read.
enum class ValueKind {
  integer,        // NCCL's numbers: strtoll with base 0 and without a look at the rest, so "true" is 0
  text,           // taken as it is
  choice,         // one of a few words
  level,          // LOC, NVL, PIX, PXB, PHB, SYS in capitals, or a small number
  algorithms,     // a list of algorithms
  protocols,      // a list of protocols
  list,           // of device names, with ^ and =
  torch_flag,     // PyTorch's: 1, y, yes, t, true or 0, n, no, f, false; anything else raises
  torch_integer,  // PyTorch's: a number; anything else raises
};

// Whether ranks may differ in it.
enum class Agreement { must, should, may };

// 22809 is 2.28.9; 0 is not known. As an end, 2.12 includes all of its patches: 21299.
using ReleaseNumber = int;
ReleaseNumber ParseReleaseNumber(std::string_view text);  // "2.28.9+cuda13.0", "2.24", "2.27.3-1"; 0 where it is none
std::string ReleaseWords(ReleaseNumber release);          // "2.28.9", "2.12"

struct Variable {
  std::string_view name;
  ValueKind kind = ValueKind::text;
  std::string_view standard;           // the newest default; empty where it is none or depends
  ReleaseNumber since = 0, until = 0;  // of NCCL or PyTorch; 0: before all that are known, and still
  Agreement agreement = Agreement::should;
  std::string_view instead;  // the name that took its place
  std::string_view effect;
};

std::span<const Variable> AllVariables();
const Variable* FindKnownVariable(std::string_view name);

// A default of former releases. Who still sets it keeps the new one away.
struct PastDefault {
  std::string_view name, value;
  ReleaseNumber changed = 0;  // the release with the new default
  std::string_view reason;
};
const PastDefault* FindPastDefault(std::string_view name, std::string_view value, ReleaseNumber release);
std::string_view DefaultOf(const Variable& variable, ReleaseNumber release);  // 0: the newest
std::string EarlierDefaults(std::string_view name);  // "18 before 2.23, 14 before 2.14"; empty: none is known

// Names that stand in scripts and that nothing has ever read.
struct NeverRead {
  std::string_view name, advice;
};
const NeverRead* FindNeverRead(std::string_view name);

// "NCCL", "PyTorch", "UCX", ... by prefix; empty: none of ours.
std::string_view ProductOf(std::string_view name);
// Whether every name with this prefix is known, so that an unknown one has no effect.
bool IsListClosed(std::string_view name);
// The known name that was meant: one or two letters away, or the same words in another order; empty: none.
std::string_view NearestVariable(std::string_view name);

}  // namespace tacet
