// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "model/call.h"
#include "model/events/event.h"

namespace tacet {

// What the cells of the table of ranks say.

inline constexpr std::string_view kEndedByLauncher = "ended by the launcher";

// "flight record": what a row goes by.
std::string_view RecordWords(CallSource source);
// "ended by SIGKILL", "exited with code 1".
std::string EndWords(const Event& event);
// "an HCCL error": a table needs no article.
std::string BareWords(const std::string& words);
// What a rank reports; null: an error that no reader knows.
std::string ErrorWords(const Event* error);

}  // namespace tacet
