// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacet {

// What a container runtime, a journal or a log store puts around every line of somebody's output. The lines are taken
// out before any format is asked, so that each format reads its own lines only.
enum class Envelope {
  none,
  docker_json,      // {"log":"text\n","stream":"stderr","time":"2026-11-15T00:20:00.123456789Z"}
  cri,              // 2026-11-15T00:20:00.123456789Z stdout F text
  json_lines,       // {"__REALTIME_TIMESTAMP":"17...","_HOSTNAME":"node7","MESSAGE":"text",...}, {"line":"text",...}
  json_document,    // [{"line":"text","timestamp":"17..."}, ...], {"data":{"result":[{"values":[["17...","text"]]}]}}
  journal_export,   // __REALTIME_TIMESTAMP=17...\nMESSAGE=text\n\n
  syslog,           // Nov 15 00:20:00 node7 train[77]: text
  program_records,  // {"rank": 3, "event": "step", "step": 21, "loss": 0.67}, among other lines
};

std::string_view Name(Envelope envelope);

// From the first bytes of a file.
Envelope FindEnvelope(std::string_view prefix);

struct Unwrapped {
  std::string text;
  bool limited = false;  // there was more than `most`
};

// The lines without their envelope. A line keeps its number where the envelope has one line for each; what has no
// number of its own (JSON in one piece) is numbered by its entries. Lines of the kernel keep host and time in front of
// them, as a syslog has them; others lose the time of their collector, since a message may go on over several lines.
// Entries that stand newest first are turned round.
Unwrapped TakeOutOfEnvelope(std::string_view bytes, Envelope envelope, size_t most);

}  // namespace tacet
