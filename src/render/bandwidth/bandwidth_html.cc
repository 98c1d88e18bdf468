// SPDX-License-Identifier: Apache-2.0
#include "render/bandwidth/bandwidth_render.h"
#include "render/joined_pages.h"
#include "render/page_fill.h"

namespace tacet {

std::string RenderBandwidthHtml(const BandwidthAnswer& answer) {
  const std::string plain = RenderBandwidthText(answer, {.width = 110, .verbose = true});
  return FillPage(BandwidthPage(), {.title = "Tacet: bandwidth", .plain = plain, .json = RenderBandwidthJson(answer)});
}

}  // namespace tacet
