// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/incident.h"

namespace tacet {

// The port of which an adapter told an error is up again, by the word of the same process.
bool IsUpAgain(const Incident& incident, const Event& error);

// What was reported and went away by itself, as clauses: "port mlx5_3:1 of h200-a3 went down and came back up".
std::vector<std::string> PassedTroubles(const Incident& incident);

// All of them in one sentence without its end; empty where there is none.
std::string PassedWords(const std::vector<std::string>& passed);

// "no line reports a fault"; beside troubles that passed "no other line reports a fault".
std::string NoFaultReported(const std::vector<std::string>& passed);

}  // namespace tacet
