// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// " while saving a checkpoint"; empty where the frames do not tell, or tell only that the model ran.
std::string DuringWords(Activity during);

// "check_grads (buffer.py:171)", without the folders of the file.
std::string CodePlaceWords(const CodePlace& place);
// The same of the innermost frame of the program's own code; empty where none is known.
std::string RaisedPlaceWords(const Event& raised);

// The exception in whose message, or at whose line, the same process tells of `error`; nullptr: there is none.
const Event* ExceptionAround(const Incident& incident, const Event& error);

// The job serves a model (vLLM, SGLang) and trains none.
bool IsServer(const Incident& incident);

}  // namespace tacet
