// SPDX-License-Identifier: Apache-2.0
#include "recorded_variant.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "base/compressed_text.h"
#include "base/decompress.h"
#include "rank_relabelling.h"

namespace tacet {
namespace {

using Files = std::vector<RecordedFile>;
using MadeFiles = std::optional<Files>;

std::string_view NameInPath(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsText(const RecordedFile& file) { return KindOf(file.path) != FileKind::record; }

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

MadeFiles Rename(const Files& files, IncidentTruth&) {
  Files out;
  for (const RecordedFile& file : files) {
    const int rank = RankInName(file.path);
    const std::string number = std::to_string(rank);
    std::string path = file.path;
    if (rank >= 0) {
      switch (KindOf(file.path)) {
        case FileKind::record: path = "dumps/comm_lib_trace_rank_" + number; break;
        case FileKind::nccl_log: path = "nccl/rank" + number + ".nccl.txt"; break;
        case FileKind::output: path = "attempt_0/" + number + "/stdout.log"; break;
        case FileKind::stacks: path = "stacks/rank-" + number + "-faulthandler.txt"; break;
        default: break;
      }
    }
    out.push_back({path, file.bytes});
  }
  return out;
}

MadeFiles UseCrlf(const Files& files, IncidentTruth&) {
  Files out = files;
  for (RecordedFile& file : out) {
    if (!IsText(file)) continue;
    std::string text;
    for (const char c : file.bytes) {
      if (c == '\n') text += '\r';
      text += c;
    }
    file.bytes = std::move(text);
  }
  return out;
}

MadeFiles Compress(const Files& files, IncidentTruth&) {
  Files out;
  for (const RecordedFile& file : files) out.push_back({file.path + ".gz", Gzip(file.bytes)});
  return out;
}

// The writers' clocks show local time, the records' do not: two hours are added to every "05:01:59" before 22 o'clock.
MadeFiles ShiftZone(const Files& files, IncidentTruth&) {
  Files out = files;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (RecordedFile& file : out) {
    if (!IsText(file)) continue;
    std::string& text = file.bytes;
    for (size_t i = 1; i + 8 < text.size(); ++i) {
      if (text[i + 2] != ':' || text[i + 5] != ':' || digit(text[i - 1])) continue;
      if (!digit(text[i]) || !digit(text[i + 1]) || !digit(text[i + 3]) || !digit(text[i + 6])) continue;
      const int hour = (text[i] - '0') * 10 + (text[i + 1] - '0') + 2;
      if (hour >= 24) continue;
      text[i] = static_cast<char>('0' + hour / 10);
      text[i + 1] = static_cast<char>('0' + hour % 10);
    }
  }
  return out;
}

// A full disk ends what is written last and in large pieces: records and NCCL's logs.
MadeFiles CutTail(const Files& files, IncidentTruth&) {
  Files out = files;
  for (RecordedFile& file : out) {
    const FileKind kind = KindOf(file.path);
    if (kind == FileKind::record || kind == FileKind::nccl_log) file.bytes.resize(file.bytes.size() * 4 / 5);
  }
  return out;
}

// All that ranks print in one file, line by line in turns, each line under its launcher's label.
MadeFiles JoinOutputs(const Files& files, const std::function<std::string(int rank)>& label) {
  Files out;
  std::map<int, std::string> texts;  // NCCL's lines, the job's own and the stacks of a rank
  for (const FileKind kind : {FileKind::nccl_log, FileKind::output, FileKind::stacks})
    for (const RecordedFile& file : files)
      if (KindOf(file.path) == kind && RankInName(file.path) >= 0) {
        std::string& text = texts[RankInName(file.path)];
        if (!text.empty() && text.back() != '\n') text += '\n';
        text += file.bytes;
      }
  if (texts.size() < 2) return std::nullopt;
  for (const RecordedFile& file : files) {
    const FileKind kind = KindOf(file.path);
    const bool joined = kind == FileKind::nccl_log || kind == FileKind::output || kind == FileKind::stacks;
    if (joined && RankInName(file.path) < 0) return std::nullopt;  // joined already
    if (!joined) out.push_back(file);
  }
  std::map<int, std::vector<std::string_view>> lines;
  size_t most = 0;
  for (const auto& [rank, text] : texts) {
    lines[rank] = LinesOf(text);
    most = std::max(most, lines[rank].size());
  }
  std::string whole;
  constexpr size_t kTurn = 3;
  for (size_t from = 0; from < most; from += kTurn)
    for (const auto& [rank, own] : lines)
      for (size_t i = from; i < std::min(from + kTurn, own.size()); ++i)
        whole.append(label(rank)).append(own[i]).append("\n");
  out.push_back({"job.out", std::move(whole)});
  return out;
}

Variant Joined(std::string name, std::function<std::string(int rank)> label) {
  return {std::move(name),
          false,
          [label = std::move(label)](const Files& files, IncidentTruth&) { return JoinOutputs(files, label); },
          {}};
}

MadeFiles KeepKinds(const Files& files, const std::set<FileKind>& kinds) {
  Files out;
  std::set<FileKind> kept;
  for (const RecordedFile& file : files) {
    if (!kinds.contains(KindOf(file.path))) continue;
    out.push_back(file);
    kept.insert(KindOf(file.path));
  }
  return kept == kinds ? MadeFiles(std::move(out)) : std::nullopt;
}

Variant KindsAlone(const std::set<FileKind>& kinds) {
  std::string name;
  for (const FileKind kind : kinds) name += (name.empty() ? "only " : " and ") + std::string(Name(kind));
  return {name, false, [kinds](const Files& files, IncidentTruth&) { return KeepKinds(files, kinds); }, {}};
}

MadeFiles PutBeside(const Files& files, const Files& other) {
  Files out;
  for (const RecordedFile& file : files) out.push_back({"run_2/" + file.path, file.bytes});
  for (const RecordedFile& file : other) out.push_back({"run_1/" + file.path, file.bytes});
  return out;
}

// Ranks that wrote no record this time still have that of an earlier run.
MadeFiles AddStaleRecords(const Files& files, const Files& older) {
  std::set<std::string> present;
  int world = 0;
  for (const RecordedFile& file : files) {
    if (KindOf(file.path) == FileKind::record) present.insert(std::string(NameInPath(file.path)));
    world = std::max(world, RankInName(file.path) + 1);
  }
  Files out = files;
  for (const RecordedFile& file : older)
    if (KindOf(file.path) == FileKind::record && !present.contains(std::string(NameInPath(file.path))) &&
        RankInName(file.path) < world)
      out.push_back(file);
  return present.empty() || out.size() == files.size() ? std::nullopt : MadeFiles(std::move(out));
}

}  // namespace

FileKind KindOf(std::string_view path) {
  const std::string_view name = NameInPath(path);
  if (name.starts_with("nccl_trace_rank")) return FileKind::record;
  if (name.starts_with("nccl_")) return FileKind::nccl_log;
  if (name.starts_with("stdout") || name.starts_with("output") || name == "job.out") return FileKind::output;
  if (name.starts_with("stack")) return FileKind::stacks;
  if (name.starts_with("dmesg")) return FileKind::kernel_log;
  return name.starts_with("ras.") ? FileKind::ras : FileKind::other;
}

std::string_view Name(FileKind kind) {
  static constexpr std::string_view kNames[] = {"records", "NCCL logs", "output", "stacks", "dmesg", "RAS", "other"};
  return kNames[static_cast<size_t>(kind)];
}

int RankInName(std::string_view path) {
  const std::string_view name = NameInPath(path);
  size_t at = name.find("rank");
  if (at == std::string_view::npos) return -1;
  at += 4;
  if (at < name.size() && name[at] == '_') ++at;
  int rank = -1;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at)
    rank = (rank < 0 ? 0 : rank * 10) + (name[at] - '0');
  return rank;
}

std::vector<Variant> AllVariants(const Files& healthy, const Files& older) {
  std::vector<Variant> variants = {
      {"renamed", true, Rename},
      {"CRLF", true, UseCrlf},
      {"gzip", true, Compress},
      {"other zone", false, ShiftZone},
      {"tails cut", false, CutTail},
      {"beside a healthy job", true,
       [&healthy](const Files& files, IncidentTruth&) { return PutBeside(files, healthy); }},
      {"stale records", false, [&older](const Files& files, IncidentTruth&) { return AddStaleRecords(files, older); }},
      {"ranks reversed", true,
       [](const Files& files, IncidentTruth& truth) {
         return RelabelRanks(files, truth, [](int rank, int world) { return world - 1 - rank; });
       }},
      {"ranks rotated", true,
       [](const Files& files, IncidentTruth& truth) {
         return RelabelRanks(files, truth, [](int rank, int world) { return (rank + 1) % world; });
       }},
      Joined("srun -l", [](int rank) { return std::to_string(rank) + ": "; }),
      Joined("torchrun", [](int rank) { return "[default" + std::to_string(rank) + "]:"; }),
      Joined("[rankN]:", [](int rank) { return "[rank" + std::to_string(rank) + "]: "; }),
      Joined("Open MPI", [](int rank) { return "[1," + std::to_string(rank) + "]<stdout>:"; }),
      // The recordings are of one host, which a pod's containers share. A pod's name is its host's.
      Joined("kubectl", [](int rank) { return "[pod/vm/worker-" + std::to_string(rank) + "] "; }),
  };
  constexpr FileKind kKinds[] = {FileKind::record, FileKind::nccl_log,   FileKind::output,
                                 FileKind::stacks, FileKind::kernel_log, FileKind::ras};
  for (const FileKind one : kKinds) {
    variants.push_back(KindsAlone({one}));
    for (const FileKind other : kKinds)
      if (one < other) variants.push_back(KindsAlone({one, other}));
  }
  return variants;
}

Files ReadUnpacked(const std::filesystem::path& folder) {
  Files files = ReadRecording(folder, [](std::string_view path) {
    return !NameInPath(path).starts_with("trace_rank") && path.find("inspector") == std::string_view::npos;
  });
  for (RecordedFile& file : files) {
    const Compression compression = DetectCompression(file.bytes);
    if (compression == Compression::none) continue;
    std::string text;
    DecompressAll(file.bytes, compression, uint64_t{1} << 28, &text);
    file.bytes = std::move(text);
    file.path = file.path.substr(0, file.path.rfind('.'));
  }
  return files;
}

}  // namespace tacet
