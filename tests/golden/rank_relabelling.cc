// SPDX-License-Identifier: Apache-2.0
#include "rank_relabelling.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "recorded_variant.h"

namespace tacet {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

class Relabelling {
 public:
  Relabelling(int world, std::function<int(int rank)> relabel) : world_(world), relabel_(std::move(relabel)) {}

  // "rank 2 nranks 4", "[rank2]:", "[Rank 2]", "rank=2", "local_rank: 2", "rank      : 2", "nccl_trace_rank_2".
  void Text(std::string& text) const {
    for (size_t at = 0; at + 5 < text.size(); ++at) {
      if (Lower(text[at]) != 'r' || text[at + 1] != 'a' || text[at + 2] != 'n' || text[at + 3] != 'k') continue;
      size_t digit = at + 4;
      if (text[digit] == 's') continue;
      while (digit < text.size() && (text[digit] == ' ' || text[digit] == '=' || text[digit] == ':' ||
                                     text[digit] == '_' || text[digit] == '['))
        ++digit;
      Exchange(text, digit);
    }
    RingsAndTrees(text);
    // "opCount 1 sendbuff 0x... count 4 datatype 7 op 0 root 2 comm 0x..."
    After(text, " root ");
  }

  // "nccl:send 0->1", "nccl:recv 2<-1" in a record; ranks keep their width, so lengths stay true.
  void Record(std::string& bytes) const {
    for (const std::string_view name : {"nccl:send ", "nccl:recv "}) {
      for (size_t at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at + 1)) {
        Exchange(bytes, at + name.size());
        Exchange(bytes, at + name.size() + 3);
      }
    }
  }

 private:
  void After(std::string& text, std::string_view word) const {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      Exchange(text, at + word.size());
  }

  // "Channel 00/02 :    0   1", "Ring 00 : 1 -> 0 -> 1", "Trees [0] 1/-1/-1->0->-1", "Channel 00/0 : 0[0] -> 1[0] via".
  void RingsAndTrees(std::string& text) const {
    for (size_t from = 0, end = 0; from < text.size(); from = end + 1) {
      end = std::min(text.find('\n', from), text.size());
      const std::string_view line(text.data() + from, end - from);
      const size_t channel = line.find(" Channel "), ring = line.find(" Ring "), trees = line.find(" Trees [");
      if (channel != line.npos || ring != line.npos) {
        const size_t colon = line.find(" : ", std::min(channel, ring));
        if (colon != line.npos) Places(text, from + colon + 3, from + std::min(line.find(" via "), line.size()));
      } else if (trees != line.npos) {
        Places(text, from + trees + 7, end);
      }
    }
  }

  // Every number of a range that stands in no brackets and has no sign.
  void Places(std::string& text, size_t from, size_t to) const {
    for (size_t at = from; at < to; ++at) {
      if (text[at] == '[') {
        at = std::min(text.find(']', at), to);
      } else if (IsDigit(text[at]) && !IsDigit(text[at - 1]) && !(text[at - 1] == '-')) {
        Exchange(text, at);
      }
    }
  }

  void Exchange(std::string& text, size_t at) const {
    if (at >= text.size() || !IsDigit(text[at]) || (at + 1 < text.size() && IsDigit(text[at + 1]))) return;
    const int rank = text[at] - '0';
    if (rank < world_) text[at] = static_cast<char>('0' + relabel_(rank));
  }

  int world_;
  std::function<int(int rank)> relabel_;
};

// A record lists the members of its groups as text: "[0, 2]".
bool ListsSmallGroup(const std::string& bytes, int world) {
  for (size_t at = bytes.find('['); at != std::string::npos; at = bytes.find('[', at + 1)) {
    int members = 0;
    size_t end = at + 1;
    while (end < bytes.size() && std::isdigit(static_cast<unsigned char>(bytes[end]))) {
      while (end < bytes.size() && std::isdigit(static_cast<unsigned char>(bytes[end]))) ++end;
      ++members;
      if (bytes.compare(end, 2, ", ") == 0) end += 2;
    }
    if (members > 0 && members != world && end < bytes.size() && bytes[end] == ']') return true;
  }
  return false;
}

// Groups of a part of the ranks: their group ranks and PyTorch's "[Rank 1]" cannot be told from global ones by the eye.
bool HasSmallGroups(const std::vector<RecordedFile>& files, int world) {
  const std::string whole = "nranks " + std::to_string(world);
  for (const RecordedFile& file : files) {
    if (KindOf(file.path) == FileKind::record && ListsSmallGroup(file.bytes, world)) return true;
    if (KindOf(file.path) != FileKind::nccl_log) continue;
    for (size_t at = file.bytes.find("nranks "); at != std::string::npos; at = file.bytes.find("nranks ", at + 1))
      if (file.bytes.compare(at, whole.size(), whole) != 0) return true;
  }
  return false;
}

}  // namespace

std::optional<std::vector<RecordedFile>> RelabelRanks(const std::vector<RecordedFile>& files, IncidentTruth& truth,
                                                      const std::function<int(int rank, int world)>& relabel) {
  int world = 0;
  for (const RecordedFile& file : files) world = std::max(world, RankInName(file.path) + 1);
  if (world < 2 || world > 10 || HasSmallGroups(files, world)) return std::nullopt;
  const bool keeps_zero = std::any_of(truth.causes.begin(), truth.causes.end(),
                                      [](const auto& cause) { return cause.starts_with("init-"); });
  const auto by_place = [&](int rank) {
    if (!keeps_zero) return relabel(rank, world);
    return rank == 0 ? 0 : 1 + relabel(rank - 1, world - 1);
  };
  const Relabelling relabelling(world, by_place);
  std::vector<RecordedFile> out;
  for (const RecordedFile& file : files) {
    const FileKind kind = KindOf(file.path);
    if (kind == FileKind::ras || kind == FileKind::other) continue;
    RecordedFile& made = out.emplace_back(file);
    relabelling.Text(made.path);
    if (kind == FileKind::record) {
      relabelling.Record(made.bytes);
    } else {
      relabelling.Text(made.bytes);
    }
  }
  std::set<int> guilty;
  for (const int rank : truth.ranks) guilty.insert(rank < world ? by_place(rank) : rank);
  truth.ranks = guilty;
  return out;
}

}  // namespace tacet
