// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/ids.h"

namespace tacet {

// The rank a file name tells: "nccl_trace_rank_3", "stdout_rank3.log", "rank-3/stderr.log", "_dump_12.json",
// "attempt_0/3/stdout.log", "worker3.out", "3.log". Nothing when the name has no such number. Looks at the file name
// first, then at its nearest folders; a number right after "rank" wins over any other.
std::optional<Rank> RankFromPath(std::string_view path);

// The name without its number, where nothing but that number tells the rank: "train_#.log" of "train_3.log", "#.log" of
// "3.log". One such file alone may just as well be the third attempt, or a ticket.
std::optional<std::string> DoubtfulStem(std::string_view path);

// Where a file lies in the tree that torchrun's --log-dir makes: RUN/attempt_0/LOCAL_RANK/stdout.log.
struct TorchrunPlace {
  std::string_view run;      // the path above the attempts: one for all restarts on one node
  std::string_view attempt;  // the path down to the attempt; its folders are local ranks of one node
};
std::optional<TorchrunPlace> TorchrunPlaceOf(std::string_view path);

// "a/b/c.log" -> "a/b"; empty where the path has no folder.
std::string_view FolderOf(std::string_view path);

}  // namespace tacet
