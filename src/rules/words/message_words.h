// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/log_outline.h"
#include "model/events/event.h"

namespace tacet {

// What a message says, for a headline: its first line, and the second where the first only announces it ("Error(s) in
// loading state_dict for Net:"). Cut at a word, without the marks at its end, so that a sentence can go on behind it.
std::string MessageWords(std::string_view text, size_t limit = 160);

// A line of the program's own in a sentence: the same in quotation marks.
std::string QuotedLine(const OwnLine& line);

// A data loader's worker that somebody killed: rank-dead tells of it.
bool IsKilledLoaderWorker(const Event& event);

// "a data loader worker of rank 3 (pid 4161) was killed (SIGKILL)"; `who` is the process whose child it is.
std::string LoaderWorkerWords(const Event& exception, const std::string& who);

// "group <ProcessGroup object at 0x7fcdd845eef0>": where an object lies in memory differs between processes.
bool IsSameBesideAddresses(std::string_view a, std::string_view b);

}  // namespace tacet
