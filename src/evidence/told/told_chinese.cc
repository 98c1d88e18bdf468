// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_chinese.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kLongestSentence = 2000;
constexpr size_t kCharacterBytes = 3;  // bytes of such a character in UTF-8

// U+4E00 to U+9FFF begin with these bytes.
bool BeginsCharacter(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte >= 0xE4 && byte <= 0xE9 && at + kCharacterBytes <= text.size();
}

// Supposed, asked, denied or over: "if", "whether", "will not", "avoid", "is solved".
bool IsDoubtedInChinese(std::string_view part) {
  return ContainsAny(part, {"如果", "是否", "会不会", "是不是", "不会", "不再", "避免", "防止", "解决了", "已解决",
                            "可能", "吗", "没有卡", "没卡", "不卡", "没有hang", "没有变慢", "不慢"});
}

// The character for a card is the one for being stuck: "显卡在训练" is a GPU that trains.
bool SaysStuckSomewhere(std::string_view part) {
  return ContainsAny(part, {"卡在了", "卡在这", "卡在那", "一直卡", "都卡在", "会卡在", "就卡在", "总卡在", "总是卡",
                            "训练卡在", "程序卡在", "进程卡在", "日志卡在", "卡在初始化", "卡到"});
}

bool StatesAHangInChinese(std::string_view part) {
  const bool says =
      SaysStuckSomewhere(part) || (Contains(part, "卡死") && !Contains(part, "显卡死")) ||
      ContainsAny(part, {"卡住",     "挂起",   "挂住",    "挂死",     "死锁",     "假死",         "夯住",
                         "阻塞住",   "hang住", "hang 住", "hang在",   "hang 在",  "无响应",       "没有响应",
                         "没有反应", "没反应", "不动了",  "一动不动", "一直停在", "没有任何输出", "没有后续输出"});
  return says && !IsDoubtedInChinese(part);
}

// "比单机慢10倍", "慢了近5倍": slow, and by how much.
bool SaysHowManyTimesSlower(std::string_view part) {
  const auto behind = After(part, "慢");
  if (!behind) return false;
  const size_t times = behind->find("倍");
  return times != std::string_view::npos && times < 16 &&
         ContainsAny(behind->substr(0, times), {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "几", "两", "三",
                                                "五", "十", "百", "数", "好"});
}

bool StatesSlownessInChinese(std::string_view part) {
  if (SaysHowManyTimesSlower(part) && !IsDoubtedInChinese(part)) return true;
  return ContainsAny(part, {"很慢", "非常慢", "太慢", "特别慢", "十分慢", "这么慢", "超级慢", "比较慢", "极慢", "巨慢",
                            "过慢", "更慢", "变慢", "越来越慢", "速度慢", "慢了", "慢很多", "慢得多", "慢的多"}) &&
         !IsDoubtedInChinese(part);
}

bool StatesNotFiniteInChinese(std::string_view part) {
  const std::string low = LowerCase(part);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  bool nan = false;
  for (size_t at = low.find("nan"); at != std::string::npos && !nan; at = low.find("nan", at + 3))
    nan = (at == 0 || !is_letter(low[at - 1])) && (at + 3 == low.size() || !is_letter(low[at + 3]));
  return nan && ContainsAny(low, {"loss", "grad", "损失", "梯度"}) &&
         ContainsAny(low,
                     {"出现", "变成", "变为", "成了", "都是", "就是", "一直", "全是", "为nan", "为 nan", "是nan"}) &&
         !IsDoubtedInChinese(part);
}

// Commas and full stops of both scripts end a part.
bool AnyChinesePart(std::string_view line, bool (*states)(std::string_view part)) {
  constexpr std::array<std::string_view, 10> kEnds = {"，", "。", "；", "！", "？", "：", ",", ";", "!", "?"};
  for (std::string_view rest = line.substr(0, kLongestSentence); !rest.empty();) {
    size_t end = rest.size(), width = 0;
    for (const std::string_view mark : kEnds)
      if (const size_t at = rest.find(mark); at < end) end = at, width = mark.size();
    if (states(rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + std::max<size_t>(width, 1), rest.size()));
  }
  return false;
}

}  // namespace

bool IsChineseSentence(std::string_view line) {
  line = Trim(line.substr(0, kLongestSentence));
  if (std::none_of(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0x80u) != 0; }))
    return false;
  if (line.empty() || ContainsAny(line, {"INFO", "WARN", "ERROR", "DEBUG", "File \""})) return false;
  if (line[0] == '[' || line[0] == '{' || line[0] == '(') return false;
  size_t characters = 0;
  for (size_t at = 0; at < line.size(); ++at)
    if (BeginsCharacter(line, at)) ++characters, at += kCharacterBytes - 1;
  return characters >= 6 && characters * kCharacterBytes * 10 >= line.size() * 4;
}

bool ChineseSaysItHangs(std::string_view line) {
  return IsChineseSentence(line) && AnyChinesePart(line, StatesAHangInChinese);
}

std::string ChineseSlowCondition(std::string_view line) {
  if (!IsChineseSentence(line)) return "";
  const bool nodes = ContainsAny(
      line, {"多机", "多节点", "多个节点", "两机", "双机", "两个节点", "2个节点", "两台", "跨机", "跨节点"});
  if (nodes && ContainsAny(line, {"单机", "单节点", "单个节点", "一台", "一个节点", "多机训练", "跨机", "跨节点"}))
    return "the number of nodes";
  return Contains(line, "单卡") && ContainsAny(line, {"多卡", "双卡", "两卡"}) ? "the number of GPUs" : "";
}

bool ChineseSaysItIsNotFinite(std::string_view line) {
  return IsChineseSentence(line) && AnyChinesePart(line, StatesNotFiniteInChinese);
}

bool ChineseSaysItIsSlow(std::string_view line) {
  return IsChineseSentence(line) && AnyChinesePart(line, StatesSlownessInChinese);
}

}  // namespace tacet
