// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "evidence/torch_log/torch_log_parse.h"
#include "model/fragment.h"

namespace tacet {

// Who the voices of a file are. A rank stated by a line is certain; one told by a launcher's label or by the file's
// name is assumed; lines of nobody in particular in a mixed file stay nobody's.
class SpeakerTable {
 public:
  SpeakerTable(const TorchLog& log, std::string_view path, std::vector<Speaker>& speakers);

  uint32_t Of(uint32_t voice) const { return of_voice_[voice]; }
  // For a rank that a launcher or an old log line names.
  uint32_t OfRank(int32_t rank, Certainty certainty, RankClue clue = RankClue::not_told);
  // For a process of which a launcher tells no more than the host.
  uint32_t OfHost(const std::string& host);
  // For one that a line names by itself: "[gpu17:4121:0] sock.c:323 UCX ERROR ...".
  uint32_t OfProcess(const std::string& host, int64_t pid);
  Speaker* Get(uint32_t speaker) { return speaker == kNobody ? nullptr : &speakers_[speaker]; }

 private:
  uint32_t Add(Speaker speaker);
  void SettleUnstated(const TorchLog& log, std::string_view path);
  uint32_t OfLabel(const TorchLogLabel& label, const std::vector<int32_t>& stated, bool labels_are_ranks);
  uint32_t OfLabelOfRank(const TorchLogLabel& label, int32_t rank);
  uint32_t OfWholeFile(const TorchLog& log, std::string_view path, const std::vector<int32_t>& stated, bool labelled);

  std::vector<Speaker>& speakers_;
  std::vector<uint32_t> of_voice_;
  std::map<int32_t, uint32_t> by_rank_;
  std::map<std::pair<std::string, int64_t>, uint32_t> by_process_;
};

}  // namespace tacet
