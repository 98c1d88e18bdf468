// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace tacet {

// A library or a framework refuses to go on for a well-known reason: how the job was started, built or configured. All
// ranks are alike in it, so no rank is to blame, and the cure is known.
struct Refusal {
  std::string_view id;
  std::string_view sentence;  // what is wrong, without a full stop
  std::string_view steps[3];  // what to do, most useful first; empty: no more
  bool of_one_file = false;   // it is about one file, and other ranks may read files of their own
  bool of_program = false;    // a mistake in the program, at the line that raises it
  bool says_all = false;      // the message tells nothing that the sentence does not
  bool not_started = false;   // a launcher or scheduler refuses it: no process of the job has run
};

std::span<const Refusal> AllRefusals();
// nullptr for an unknown id.
const Refusal* FindRefusal(std::string_view id);
// Which one an error's message is; nullptr: none of these.
const Refusal* ClassifyRefusal(std::string_view message);

}  // namespace tacet
