// SPDX-License-Identifier: Apache-2.0
#include "evidence/ras/ras_parse.h"

#include <algorithm>

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/ras/ras_json.h"
#include "evidence/ras/ras_text.h"

namespace tacet {
namespace {

// A colour that a launcher set before a line.
void SkipTerminalCodes(std::string_view& line) {
  while (line.starts_with("\x1b[")) {
    const size_t end = line.find('m');
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

// Days since 1970-01-01 of a Gregorian date: years are counted from March, so that the leap day ends one.
int64_t DaysSinceEpoch(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  const int64_t era = year / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

}  // namespace

int64_t ParseRasTime(std::string_view text) {
  int parts[6] = {};
  constexpr std::string_view kBetween = "-- ::";
  for (int i = 0; i < 6; ++i) {
    if (text.empty() || !IsDigit(text.front()) || !TakeNumber(text, &parts[i])) return INT64_MIN;
    if (i < 5 && !TakeLiteral(text, kBetween.substr(i, 1))) return INT64_MIN;
  }
  const auto [year, month, day, hour, minute, second] = parts;
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 ||
      second > 60)
    return INT64_MIN;
  return (DaysSinceEpoch(year, month, day) * 86400 + hour * 3600 + minute * 60 + second) * 1'000'000'000;
}

std::string_view StripRasLinePrefix(std::string_view line) {
  std::string_view pod;
  SkipTerminalCodes(line);
  TakeLauncherPrefix(line);
  SkipTerminalCodes(line);
  TakePodWord(line, &pod);  // no line of RAS begins with a word that has a dash
  SkipTerminalCodes(line);
  return line;
}

namespace {

// Walks the file: JSON documents are handed to one reader, all other lines to the other.
class FileWalk {
 public:
  explicit FileWalk(std::string_view text) : text_(text), reader_(out_.records) {}

  RasParse Walk() {
    while (at_ < text_.size()) {
      const size_t newline = text_.find('\n', at_);
      const size_t next = newline == std::string_view::npos ? text_.size() : newline + 1;
      std::string_view line = text_.substr(at_, next - at_);
      if (Trim(line).starts_with('{')) {
        ReadDocument(next);
      } else {
        ReadLine(line.substr(0, LineReader::kMaxLine), next);
      }
    }
    return std::move(out_);
  }

 private:
  void ReadLine(std::string_view line, size_t next) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    const RasLine read = reader_.Read(line, {FileId{}, line_, at_});
    Count(read == RasLine::understood ? out_.understood
          : read == RasLine::ignored  ? out_.ignored
                                      : out_.not_understood,
          next);
  }

  void ReadDocument(size_t end_of_line) {
    const size_t begin = text_.find('{', at_);
    const RasDocument document = ParseRasDocument(text_, begin, line_, reader_.answers(), out_.records);
    if (!document.is_ras) {
      Count(out_.not_understood, std::max(end_of_line, document.end));
      return;
    }
    if (document.is_answer) reader_.CountAnswer();
    out_.truncated |= document.truncated;
    Count(out_.understood, std::max(document.understood, begin + 1));
    if (document.understood < document.end) Count(out_.not_understood, document.end);
    // The rest of the line belongs to the document when there is nothing on it.
    size_t rest = text_.find_first_not_of(" \t\r", at_);
    if (rest == std::string_view::npos) rest = text_.size();
    if (rest < text_.size() && text_[rest] == '\n') ++rest;
    Count(out_.understood, rest);
  }

  void Count(uint64_t& kind, size_t until) {
    if (until <= at_) return;
    if (&kind == &out_.not_understood) out_.first_unknown = std::min<uint64_t>(out_.first_unknown, at_);
    kind += until - at_;
    line_ += static_cast<uint32_t>(std::count(text_.begin() + at_, text_.begin() + until, '\n'));
    at_ = until;
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  RasParse out_;
  RasTextReader reader_;
};

}  // namespace

RasParse ParseRas(std::string_view text) { return FileWalk(text).Walk(); }

}  // namespace tacet
