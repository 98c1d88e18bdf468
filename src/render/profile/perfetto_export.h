// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "model/incident.h"

namespace tacet {

// Takes the next bytes; false ends the export.
using ByteSink = std::function<bool(std::string_view)>;

// Writes one Chrome-JSON trace of all ranks on one clock, for ui.perfetto.dev: a process a rank; tracks for steps, for
// each GPU stream with compute and copies, and for each group, where every operation is split into waiting (until its
// last member has started) and transfer; flows join the transfers of one operation. Written in pieces, so that the
// size of the trace does not matter. With `redact` names of kernels, groups and jobs are written without secrets.
bool ExportPerfetto(std::span<const Incident> jobs, const ByteSink& sink, bool redact = true);

}  // namespace tacet
