// SPDX-License-Identifier: Apache-2.0
#include "render/html_render.h"

#include "render/joined_pages.h"
#include "render/json_render.h"
#include "render/page_fill.h"
#include "render/text_render.h"

namespace tacet {
namespace {

std::string RenderPage(const Report& report, std::string_view live) {
  std::string json = RenderJson(report);
  if (!live.empty()) json = "{\"live\":" + std::string(live) + "," + json.substr(1);
  return FillPage(ReportPage(), {.title = "Tacet: " + std::string(Name(report.verdict.status)),
                                 .plain = RenderText(report, TextOptions()),
                                 .json = json,
                                 .asks_server = !live.empty()});
}

}  // namespace

std::string RenderHtml(const Report& report) { return RenderPage(report, ""); }
std::string RenderLiveHtml(const Report& report, std::string_view live) { return RenderPage(report, live); }

}  // namespace tacet
