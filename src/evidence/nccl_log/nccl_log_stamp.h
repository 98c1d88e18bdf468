// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

inline constexpr int64_t kNoStamp = INT64_MIN;  // no time was written

// The time written in front of a line's host name, in ns since 1970 of the writer's local clock; in UTC where a zone is
// written. kNoStamp where there is no full date: NCCL_DEBUG_TIMESTAMP_FORMAT is any strftime format, and "%T" alone
// does not say which day it was. Where a launcher and NCCL both wrote a time, NCCL's, which stands last, is taken.
struct Stamp {
  int64_t wall_ns = kNoStamp;
  // So that the next line's time, which mostly differs in seconds only, costs little: where "00:15:" ends, and the time
  // without seconds. 0 where that does not work.
  size_t seconds_at = 0;
  int64_t minute_ns = 0;
};
Stamp ParseStamp(std::string_view lead);
// The same, given the stamp of an earlier `before` that had the same length.
Stamp ParseStampLike(std::string_view lead, std::string_view before, const Stamp& stamp);

// What a launcher put before a line.
struct LauncherLabel {
  enum class Kind : uint8_t {
    none,
    rank,   // "[rank3]:" says global rank 3
    task,   // srun -l "3: ", Open MPI "[1,3]<stdout>:", MPICH "[3] ": the number of a task, usually of a rank
    local,  // torchrun "[default3]:": role and local rank, no global rank
    other,  // Ray "(Worker pid=12, ip=10.0.0.1)", kubectl "[pod/job-3/main]"
  };
  Kind kind = Kind::none;
  int32_t value = -1;
  size_t length = 0;  // bytes to drop from the front, blanks behind the label included
};
LauncherLabel ParseLauncherLabel(std::string_view line);

// Bytes of terminal escapes ("\x1b[32m") and blanks at the front.
size_t EscapesLength(std::string_view text);
std::string_view CutTrailingEscape(std::string_view text);
// Without a "\x1b[0m" at the end.
inline std::string_view WithoutTrailingEscape(std::string_view text) {
  return text.empty() || (text.back() != 'm' && text.back() != 'K') ? text : CutTrailingEscape(text);
}

}  // namespace tacet
