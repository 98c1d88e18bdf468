// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/events/event_detail.h"

namespace tacet {

// What a process was doing, by one frame of a traceback; not_told where the frame says nothing of it.
Activity ActivityOfFrame(std::string_view file, std::string_view function);

// Of all frames, outermost first: what the program set out to do counts, not what that called in turn. A pass through
// the model is a last resort, since any of the others may run inside or around it.
Activity JoinActivities(Activity outer, Activity inner);

// Frames of programs that serve models (vLLM, SGLang): their memory is a matter of settings, not of a batch.
bool IsServersFile(std::string_view file);
// "(VllmWorker rank=7 pid=311)", "(EngineCore_DP0 pid=88)"
bool IsServersLabel(std::string_view label);

}  // namespace tacet
