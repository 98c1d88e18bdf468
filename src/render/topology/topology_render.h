// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "render/report/text_render.h"
#include "report/report.h"

namespace tacet {

// A report that holds a topology: the verdict and the findings, then nodes, communicators, rings, transports.
std::string RenderTopologyText(const Report& report, const TextOptions& options);
std::string RenderTopologyHtml(const Report& report);
// For Graphviz: nodes with their GPUs and NICs, and the hops of all rings with their transports. Nodes that are alike
// are drawn once where there are many.
std::string RenderTopologyDot(const Report& report);

}  // namespace tacet
