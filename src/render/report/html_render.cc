// SPDX-License-Identifier: Apache-2.0
#include "render/report/html_render.h"

#include "render/joined_pages.h"
#include "render/page_fill.h"
#include "render/report/json_render.h"
#include "render/report/text_render.h"

namespace tacet {
namespace {

std::string FillReportPage(std::string_view status, std::string_view text, std::string json, std::string_view live) {
  if (!live.empty()) json = "{\"live\":" + std::string(live) + "," + json.substr(1);
  const std::string title = "Tacet: " + std::string(status);
  return FillPage(ReportPage(), {.title = title, .plain = text, .json = json, .asks_server = !live.empty()});
}

std::string RenderPage(const Report& report, std::string_view live) {
  return FillReportPage(Name(report.verdict.status), RenderText(report, TextOptions()), RenderJson(report), live);
}

}  // namespace

std::string RenderHtml(const Report& report) { return RenderPage(report, ""); }
std::string RenderLiveHtml(const Report& report, std::string_view live) { return RenderPage(report, live); }
std::string RenderLiveHtml(std::string_view status, std::string_view text, std::string_view json,
                           std::string_view live) {
  return FillReportPage(status, text, std::string(json), live);
}

}  // namespace tacet
