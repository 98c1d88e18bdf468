// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/open_box.h"
#include "plugin/settings.h"

// The plugin's one thread: low priority, all signals blocked. It beats the heart of the box, renews its clock pair,
// gives up operations whose end nobody will tell, looks after siblings that fell silent, and writes the outputs that
// were asked for. NCCL's threads never wait for it.
namespace tacet::plugin {

void StartKeeper(OpenBox& box, const Settings& settings, const char* box_path);  // the path is empty without a file
// Lets it write out what is finished; waits at most `limit_ms`. Nothing happens when there is no output to write.
void FlushKeeper(uint32_t limit_ms);
// Why an output cannot be written, nullptr where it can. The keeper tries the folders, since a dead file server would
// hold whoever does; it is waited for at most `limit_ms`.
const char* OutputTrouble(uint32_t limit_ms);
void RemovePromFile();  // at exit
void ForgetKeeper();    // in a forked child: the thread stayed with the parent

void BeatHeart(OpenBox& box);

}  // namespace tacet::plugin
