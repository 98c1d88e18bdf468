// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacet {

// A trainer's figures of one step as an object: a line of logging.jsonl, of trainer_log.jsonl or of a history, an entry
// of "log_history" in trainer_state.json, a Python dict that a terminal prints over many lines.
//   {"loss": 1.43, "grad_norm": NaN, "global_step/max_steps": "8280/11043", "elapsed_time": "5h 38m 5s"}
// Becomes the line that a trainer prints on its terminal, where its object begins:
//   {'loss': 1.43, 'grad_norm': nan, 'step': 8280}
// A dict that is on one line already stays as it is.

// Whether a text holds such objects that are not on a terminal's one line.
bool HasMetricRecords(std::string_view prefix);

// Lines keep their numbers. Of a document that is JSON from its beginning nothing else is kept.
std::string WriteMetricRecords(std::string_view bytes);

}  // namespace tacet
