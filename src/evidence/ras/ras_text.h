// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/ras/ras_parse.h"

namespace tacet {

enum class RasLine : uint8_t { unknown, ignored, understood };

// Reads the text form line by line. What a line means depends on the paragraph it stands in.
class RasTextReader {
 public:
  explicit RasTextReader(std::vector<RasRecord>& records) : records_(records) {}
  RasLine Read(std::string_view line, SourceRef source);
  uint32_t answers() const { return answers_; }
  void CountAnswer() { ++answers_; }  // one that came as JSON

 private:
  enum class Paragraph : uint8_t { none, summary, table, silent, dead, incomplete, mismatch, error };
  enum class Topic : uint8_t { none, counts, status, errors };

  RasLine Keep(RasRecord&& record, SourceRef source);
  RasRecord& Add(RasKind kind, SourceRef source);
  void BeginAnswer(std::string_view version, SourceRef source);
  RasLine ReadHeading(std::string_view line, SourceRef source);
  RasLine ReadSummaryLine(std::string_view line, SourceRef source);
  RasLine ReadGroupRow(std::string_view line, SourceRef source);
  RasLine ReadCommunicatorHeading(std::string_view line);
  RasLine ReadRank(std::string_view line, SourceRef source);
  RasLine ReadRanks(std::string_view line, SourceRef source);
  RasLine ReadRankList(std::string_view list, SourceRef source);
  RasLine ReadProcess(std::string_view line, SourceRef source);
  RasLine ReadPeerEvent(std::string_view line, SourceRef source);
  RasLine ReadSentence(std::string_view line, SourceRef source);

  std::vector<RasRecord>& records_;
  uint32_t answers_ = 0;
  Paragraph paragraph_ = Paragraph::none;
  Topic topic_ = Topic::none;
  bool totals_ = false;  // the numbers below count the whole job, not each node
  std::string_view op_;
  uint64_t comm_ = 0;
  int32_t group_ = -1;
  // What the members listed below a line such as "6 ranks have launched up to operation 6649" share.
  int64_t shared_value_ = -1;
  std::string_view shared_text_;
};

}  // namespace tacet
