// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// A line that a program writes about itself as JSON, with the rank that writes it:
//   {"ts": "2026-11-15T00:20:00.123", "rank": 3, "event": "step", "step": 21, "loss": 0.67, "data_s": 0.55}
//   {"ts": "...", "rank": 1, "event": "fatal", "error": "...", "traceback": "Traceback (most recent call last):\n ..."}
// Becomes the line that a program without JSON would have printed:
//   [rank3]: step, rank: 3, step: 21, loss: 0.67, data_time: 0.55
//   [rank1]: SampleError: could not decode sample 40123        with the frames before it, behind '\r'
// False for any other line, and for one that tells nothing beside its rank.
bool ReadProgramRecord(std::string_view json, std::string* text);

}  // namespace tacet
