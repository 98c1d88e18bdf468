// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_parse.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/advice.h"
#include "base/line_reader.h"
#include "base/test_result.h"
#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launch_failure.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"
#include "evidence/torch_log/ends/torch_log_pod.h"
#include "evidence/torch_log/ends/torch_log_sacct.h"
#include "evidence/torch_log/ends/torch_log_worker_end.h"
#include "evidence/torch_log/errors/torch_log_failures.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"
#include "evidence/torch_log/figures/torch_log_health.h"
#include "evidence/torch_log/figures/torch_log_own_lines.h"
#include "evidence/torch_log/figures/torch_log_progress.h"
#include "evidence/torch_log/libraries/torch_log_known_line.h"
#include "evidence/torch_log/libraries/torch_log_library.h"
#include "evidence/torch_log/libraries/torch_log_mpi.h"
#include "evidence/torch_log/libraries/torch_log_mpi_error.h"
#include "evidence/torch_log/libraries/torch_log_mpi_help.h"
#include "evidence/torch_log/libraries/torch_log_nvshmem.h"
#include "evidence/torch_log/libraries/torch_log_ray.h"
#include "evidence/torch_log/libraries/torch_log_tensorflow.h"
#include "evidence/torch_log/torch_log_prefix.h"
#include "evidence/torch_log/waits/torch_log_desync.h"
#include "evidence/torch_log/waits/torch_log_pending.h"
#include "evidence/torch_log/waits/torch_log_watchdog.h"

namespace tacet {
namespace {

constexpr uint32_t kNoVoice = UINT32_MAX;
constexpr size_t kMaxVoices = 40'000;  // more processes than that do not share a file

// What one voice is in the middle of saying.
struct VoiceState {
  TracebackReader traceback;
  WatchdogState watchdog;
  FailureState failure;
  DesyncReader desync;
  StallReader stall;
  OwnLineReader own;
};

// Lines of one label: a process, a node, or a whole file.
struct LabelState {
  uint32_t last_logger = kNoVoice;  // who wrote the last C++ log line: lines without prefix may go on with it
  LogMoment last_time;              // and when
  uint32_t headed = kNoVoice;       // who wrote the last line, where its head names the process
  SummaryReader summary;
  MpiNoticeReader mpi;
  MpiErrorReader mpi_error;
  MpiHelpReader mpi_help;
  SacctReader sacct;
  PodDescriptionReader pod;
  RayActorReader actor;
};

class LogReader {
 public:
  explicit LogReader(std::string_view bytes) : bytes_(bytes), style_(FindLabelStyle(bytes)), out_(log_) {
    VoiceOf(LabelOf({}), -1);
  }

  TorchLog Read() {
    LineReader reader(bytes_);
    std::string_view line;
    while (reader.Next(&line)) {
      const SourceRef source{FileId{}, reader.number(), reader.offset()};
      log_.lines = reader.number();
      LineUse use = LineUse::not_understood;
      if (line.find('\r') == std::string_view::npos) {
        use = ReadLine(line, source);
      } else {
        // A progress bar rewrites its line; the whole of it, however long.
        std::string_view parts = bytes_.substr(reader.offset(), reader.line_bytes());
        while (parts.ends_with('\n') || parts.ends_with('\r')) parts.remove_suffix(1);
        while (!parts.empty()) {
          const std::string_view part = TakeUntil(parts, '\r');
          if (!parts.empty()) parts.remove_prefix(1);
          use = std::max(use, ReadLine(part.substr(0, LineReader::kMaxLine), source));
        }
      }
      (use == LineUse::understood ? log_.understood
       : use == LineUse::ignored  ? log_.ignored
                                  : log_.not_understood) += reader.line_bytes();
    }
    for (auto& label : labels_) {
      label->summary.Finish(out_);
      label->mpi.Finish(out_);
      label->sacct.Finish(out_);
    }
    for (auto& voice : voices_) {
      voice->traceback.Finish(out_);
      voice->own.Finish(out_);
      voice->own.training().Finish(log_);
    }
    TellBareTimeout();
    std::erase_if(log_.records, [](const TorchLogRecord& record) { return record.handled; });
    DropFewRetries(log_);
    DropToldSpawns(log_);
    DropPassedLaunches(log_);
    DropTasksNotStarted(log_);
    DropHearsay(log_);
    DropSettledWaits(log_);
    DropUsualEndsOfData(log_);
    DropPassedTransports(log_, last_rate_line_);
    DropTrapsOfWaits(log_);
    DropPassedLimits(log_, last_served_line_);
    DropCleanUpErrors(log_);
    JoinRaysMemoryKills(log_);
    DropUntoldScores(log_);
    JoinMemoryWithKills(log_, out_.host_memory());
    work_bar_.Finish(log_);
    return std::move(log_);
  }

 private:
  uint32_t LabelOf(const LauncherPrefix& prefix) {
    if (!log_.labels.empty() && last_label_text_ == prefix.label) return last_label_;
    last_label_text_ = std::string(prefix.label);
    const std::string name = LabelName(prefix.label);
    const auto known = label_ids_.find(name);
    if (known != label_ids_.end()) return last_label_ = known->second;
    if (log_.labels.size() >= kMaxVoices) return last_label_ = 0;
    last_label_ = static_cast<uint32_t>(log_.labels.size());
    TorchLogLabel& label = log_.labels.emplace_back();
    label.text = name;
    label.kind = prefix.kind;
    label.number = prefix.number;
    // "0: [default3]:", a node and a rank on it: neither is the rank.
    if (prefix.kind == LauncherPrefix::Kind::task && name.find(": [") != std::string::npos)
      label.kind = LauncherPrefix::Kind::none;
    // "(trainer pid=1234, ip=10.0.0.7) ", "[pod/trainer-3/main] "
    if (const auto ip = After(prefix.label, "ip=")) label.host = std::string(ip->substr(0, ip->find_first_of(",)")));
    if (prefix.kind == LauncherPrefix::Kind::pod) {
      std::string_view pod = prefix.label;
      if (TakeLiteral(pod, "[pod/")) pod = pod.substr(0, pod.find_first_of("/]"));
      label.host = std::string(Trim(pod));
    }
    label_ids_.emplace(name, last_label_);
    labels_.push_back(std::make_unique<LabelState>());
    return last_label_;
  }

  // What one process prints on stdout and on stderr, with a blank behind the label or without, is one label's.
  static std::string LabelName(std::string_view label) {
    std::string name(Trim(label));
    if (const size_t at = name.find("<stderr>"); at != std::string::npos) name.replace(at, 8, "<stdout>");
    return name;
  }

  uint32_t VoiceOf(uint32_t label, int32_t rank) {
    const uint64_t key = uint64_t{label} << 32 | static_cast<uint32_t>(rank);
    if (!voices_.empty() && key == last_key_) return last_voice_;
    const auto known = voice_ids_.find(key);
    if (known == voice_ids_.end() && voices_.size() >= kMaxVoices) return 0;
    last_key_ = key;
    if (known != voice_ids_.end()) return last_voice_ = known->second;
    last_voice_ = static_cast<uint32_t>(voices_.size());
    voice_ids_.emplace(key, last_voice_);
    log_.voices.push_back({label, rank, -1, -1, 0});
    voices_.push_back(std::make_unique<VoiceState>());
    return last_voice_;
  }

  LineUse ReadPieces(std::string_view raw, const SourceRef& source) {
    LineUse use = LineUse::not_understood;
    in_pieces_ = true;
    for (const std::string& line : SplitAtInnerTags(raw)) use = std::max(use, ReadLine(line, source));
    in_pieces_ = false;
    return use;
  }

  LineUse ReadLine(std::string_view raw, const SourceRef& source) {
    if (raw.empty()) return LineUse::ignored;
    if (IsNcclLine(raw)) return LineUse::ignored;
    if (!in_pieces_ && HasInnerTags(raw)) return ReadPieces(raw, source);
    const bool unfinished = raw.data() + raw.size() == bytes_.data() + bytes_.size();
    if (HasTerminalCodes(raw)) {
      plain_ = DropTerminalCodes(raw);
      raw = plain_;
    }
    // pytest repeats an error of its test behind "E       ".
    if (raw.starts_with("E   ")) raw.remove_prefix(raw.starts_with("E       ") ? 8 : 4);
    const LinePrefix prefix = SplitPrefix(raw, style_);
    if (Trim(prefix.text).empty()) return LineUse::ignored;
    if (log_.dated_wall_ns == LogMoment::kNone) log_.dated_wall_ns = prefix.time.wall_ns;
    const uint32_t label = LabelOf(prefix.launcher);
    LogLine line;
    line.text = WithoutGluedWords(prefix.text);
    line.label = prefix.launcher.label;
    line.bar = prefix.bar;
    line.unfinished = unfinished;
    line.source = source;
    line.time = prefix.time;
    line.dated = prefix.time.wall_ns != LogMoment::kNone;
    line.severity = prefix.severity;
    line.code_file = prefix.code_file;
    line.tagged = prefix.rank >= 0;
    // C++ frames are many and long, and their names are full of words.
    if (!prefix.text.starts_with("frame #")) line.keywords = FindKeywords(line.text);
    if (line.has(Keyword::nodes)) ReadNodeCount(line, out_);
    if (!prefix.bar.empty()) ReadBar(prefix, line);
    // [rank 6] Dispatch + combine bandwidth: 99.20 GB/s, avg_t=222.27 us, min_t=215.90 us
    if (!log_.records.empty() && Contains(line.text, " GB/s, avg_t=")) last_rate_line_ = source.line;
    // "[... TP0] Decode batch. #running-req: 96, ...": a server that answers
    if (!log_.records.empty() && ContainsAny(line.text, {"Decode batch", "HTTP/1.1\" 200"}))
      last_served_line_ = source.line;
    int32_t rank = prefix.rank >= 0 ? prefix.rank : QuotedRank(prefix.text);
    if (rank < 0) rank = prefix.head_rank >= 0 ? prefix.head_rank : RankInHead(prefix.text);
    if (rank < 0 && prefix.launcher.kind == LauncherPrefix::Kind::process) rank = RankInLabel(prefix.launcher.label);
    // Before the default group is up there is no "[rank3]:", but its own lines tell the rank in it; so does what the
    // process says as it ends: "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog thread ...".
    if (rank < 0 && (prefix.severity != 0 ? prefix.text.starts_with("[PG ") : IsLastWord(prefix.text, "[PG ")))
      if (const GroupPrefix group = FindGroupPrefix(prefix.text); group.is_default) rank = group.group_rank;
    // Before 2.2 there is no "[rank3]:" at all, and later somebody may have cut it off. "[Rank 3]" is a static string
    // of the first group that timed out or failed: mostly the default one's, but it may be another's.
    if (rank < 0 && prefix.severity != 0) line.work_rank = IntAfter<int32_t>(prefix.text, "[Rank ").value_or(-1);
    // RuntimeError: NCCL communicator was aborted on rank 3.  Original reason for failure was: [Rank 3] Watchdog caught
    //   what():  [Rank 4] NCCL watchdog thread terminated with exception: CUDA error: ...
    if (rank < 0 && prefix.severity == 0 &&
        (line.has(Keyword::work) || line.has(Keyword::nccl_error) || IsLastWord(prefix.text, "[Rank ")))
      for (const std::string_view mark : {"communicator was aborted on rank ", "[Rank "})
        if (line.work_rank < 0) line.work_rank = IntAfter<int32_t>(prefix.text, mark).value_or(-1);
    line.voice = VoiceOf(label, rank);
    if (line.has(Keyword::other_library) && Contains(line.text, "(stopped sending heartbeats)"))
      voices_[VoiceOf(label, -1)]->stall.NoteUnhealthy(line);
    if (line.dated) NoteHead(*labels_[label], prefix.head_rank >= 0 ? line.voice : kNoVoice);
    if (IsErrorLine(prefix)) log_.voices[line.voice].error_line = source.line;
    return prefix.severity != 0 ? ReadLogLine(line, *labels_[label]) : ReadPlainLine(line, label);
  }

  // The next message begins: what the voice before it said is complete.
  void NoteHead(LabelState& label, uint32_t voice) {
    if (label.headed != kNoVoice && label.headed != voice) voices_[label.headed]->traceback.End(out_);
    label.headed = voice;
  }

  // The bar before a text is a line of its own: of whoever is named before it, else nobody's in particular.
  void ReadBar(const LinePrefix& prefix, const LogLine& line) {
    LogLine own = line;
    own.text = prefix.bar;
    own.severity = 0;
    own.tagged = prefix.bar_rank >= 0;
    own.keywords = FindKeywords(prefix.bar);
    own.label = prefix.bar_launcher.label;
    own.voice = VoiceOf(LabelOf(prefix.bar_launcher), prefix.bar_rank);
    work_bar_.Read(own);
    voices_[own.voice]->own.Read(own, log_.voices[own.voice], out_);
  }

  static bool IsLastWord(std::string_view text, std::string_view begin) {
    text = Trim(text);
    if (!TakeLiteral(text, "what():")) return false;
    return Trim(text).starts_with(begin);
  }

  // ----------Begin global rank 9 STDERR----------
  // MosaicML's launcher prints what a rank wrote between two such lines.
  int32_t QuotedRank(std::string_view text) {
    while (TakeLiteral(text, "> ")) {  // a mark of a quote that only the first line has
    }
    if (text.starts_with("----------Begin global rank "))
      quoted_rank_ = IntAfter<int32_t>(text, "global rank ").value_or(-1);
    else if (text.starts_with("----------End global rank "))
      quoted_rank_ = -1;
    // torch.multiprocessing.spawn: "-- Process 8 terminated with the following error:", then its traceback.
    if (text.starts_with("-- Process ") && Contains(text, "terminated with the following error"))
      quoted_rank_ = IntAfter<int32_t>(text, "-- Process ").value_or(-1);
    return quoted_rank_;
  }

  // A line of PyTorch's own logger, C++ or Python.
  LineUse ReadLogLine(const LogLine& line, LabelState& label) {
    VoiceState& state = *voices_[line.voice];
    label.last_logger = line.voice;
    label.last_time = line.time;
    state.traceback.End(out_);
    if (!line.tagged) voices_[VoiceOf(log_.voices[line.voice].label, -1)]->traceback.End(out_);
    state.desync.End();
    LineUse use = ReadWatchdogLine(line, state.watchdog, out_);
    use = std::max(use, ReadErrorText(line, state.failure, out_));
    // A collective that failed with an error: the status line behind it tells its group, as for a timeout.
    if (TorchLogRecord* error = state.failure.nccl_error;
        error != nullptr && error->seq >= 0 && error->group_name.empty())
      if (state.watchdog.without_group.size() < 64) state.watchdog.without_group.push_back(error);
    use = std::max(use, ReadOutside(line));
    if (line.has(Keyword::desync)) use = std::max(use, state.desync.Read(line, out_));
    if (line.has(Keyword::init_options)) NoteWorld(line);
    if (line.has(Keyword::may_finish) && FindFinishSign(line.text) == FinishSign::strong)
      state.own.NoteFinish(line, true);
    return std::max(use, LineUse::ignored);
  }

  //   timed out connecting: SO_ERROR: Connection refused, remote=[10.0.0.4]:42111
  //   (rank=8, size=16, local=[10.0.0.3])
  // Gloo tells at the end of its message who it was that could not connect.
  void NameConnecting(const LogLine& line, uint32_t label) {
    constexpr uint32_t kNear = 3;
    const auto rank = IntAfter<int32_t>(line.text, "(rank="), size = IntAfter<int32_t>(line.text, ", size=");
    if (!rank || !size || *rank < 0 || *rank >= *size) return;
    const uint32_t voice = VoiceOf(label, *rank);
    log_.voices[voice].world_size = std::max<int64_t>(log_.voices[voice].world_size, *size);
    for (auto record = log_.records.rbegin(); record != log_.records.rend(); ++record) {
      if (line.source.line - record->source.line > kNear) return;
      if (record->kind == TorchLogKind::connect_failed && log_.voices[record->voice].rank < 0) record->voice = voice;
    }
  }

  void NoteWorld(const LogLine& line) {
    if (!FindGroupPrefix(line.text).is_default) return;
    log_.voices[line.voice].world_size = IntAfter(line.text, "options: size: ").value_or(-1);
  }

  // Launchers, schedulers, shells: they speak of processes, not as one.
  LineUse ReadOutside(const LogLine& line) {
    if (line.has(Keyword::pending))
      if (const LineUse use = ReadPending(line, out_); use != LineUse::not_understood) return use;
    const LineUse slurm = ReadSlurmLine(line, out_);
    if (slurm != LineUse::not_understood) {
      log_.has_launcher = true;
      return slurm;
    }
    const LineUse use = ReadLauncherLine(line, out_);
    if (use == LineUse::understood && !line.has(Keyword::killed) && !line.has(Keyword::core_dumped))
      log_.has_launcher = true;
    return use;
  }

  // The C++ logger puts its prefix before the first line of a message only.
  uint32_t VoiceOfContinuation(const LogLine& line, const LabelState& label) {
    const uint32_t logger = label.last_logger;
    if (!line.tagged && !line.dated && label.headed != kNoVoice && voices_[label.headed]->traceback.is_open())
      return label.headed;
    if (line.tagged || line.dated || logger == kNoVoice || logger == line.voice ||
        voices_[line.voice]->traceback.in_message())
      return line.voice;
    const std::string_view text = line.text;
    if (voices_[logger]->failure.last_error_next) return logger;
    switch (text[0]) {
      case 'f': return text.starts_with("frame #") ? logger : line.voice;
      case '#': return logger;
      case '\t': return logger;
      case 'n': return text.starts_with("nccl") ? logger : line.voice;
      case 'L': return text.starts_with("Last error:") ? logger : line.voice;
      case 'E': return text.starts_with("Exception raised from ") ? logger : line.voice;
      case 't': return text.starts_with("terminate called ") ? logger : line.voice;
      case ' ': return Trim(text).starts_with("what():") && !IsLastWord(text, "[PG ") ? logger : line.voice;
      default: return line.voice;
    }
  }

  // What a launcher says of the processes it watches and ends: never a part of what one of them says.
  static bool IsLaunchersAct(const LogLine& line) {
    return line.has(Keyword::closing_signal) || line.has(Keyword::exit_code) || line.has(Keyword::death_signal) ||
           line.has(Keyword::unable_to_shutdown) || line.has(Keyword::killing_subprocess) ||
           line.has(Keyword::return_code);
  }

  bool EndsLooseMessage(const LogLine& line) const {
    return line.time.known() || line.has(Keyword::srun) || line.has(Keyword::slurmstepd) || IsLaunchersAct(line) ||
           (line.has(Keyword::may_progress) && FindProgress(line.text).has_value());
  }

  LineUse ReadPlainLine(LogLine& line, uint32_t label) {
    LabelState& label_state = *labels_[label];
    if (const uint32_t voice = VoiceOfContinuation(line, label_state); voice != line.voice) {
      line.voice = voice;
      line.time = label_state.last_time;
    }
    // "message": "RendezvousConnectionError: The connection to the C10d store has failed. ...",
    // torchrun prints what a worker's error file holds.
    if (line.has(Keyword::error_record) && Trim(line.text).starts_with("\"message\": \"")) {
      line.text = Trim(line.text).substr(12);
      for (const char end : {',', '"'})
        if (line.text.ends_with(end)) line.text.remove_suffix(1);
      if (line.text.empty()) return LineUse::ignored;
    }
    if (IsPassedTest(line.text)) return LineUse::ignored;
    const bool work_bar = work_bar_.Read(line);
    if (line.text.starts_with("Exception raised from ")) NoteBareTimeout(line);
    VoiceState& state = *voices_[line.voice];
    if (IsObjectDump(line.text)) {
      state.traceback.End(out_);
      return LineUse::ignored;
    }
    // What stands below an error may begin so as well, and belongs to it.
    if (!line.tagged && !state.traceback.in_message() && IsAdvice(line.text)) return LineUse::ignored;
    if (!line.tagged) {
      const auto voice_of = [&](int32_t rank) { return VoiceOf(label, rank); };
      LineUse use = label_state.mpi.Read(line, out_);
      if (use == LineUse::not_understood) use = label_state.mpi_error.Read(line, out_);
      if (use == LineUse::not_understood) use = label_state.mpi_help.Read(line, out_);
      if (use == LineUse::not_understood) use = label_state.summary.Read(line, voice_of, out_);
      if (use == LineUse::not_understood && line.has(Keyword::sacct)) use = label_state.sacct.Read(line);
      if (use == LineUse::not_understood) use = label_state.pod.Read(line, out_);
      if (use == LineUse::understood) log_.has_launcher = true;
      // torchrun's summary quotes what the rank raised.
      if (use != LineUse::not_understood && line.has(Keyword::mismatch)) ReadErrorText(line, state.failure, out_);
      // MPICH's stack and Open MPI's block name what failed in words of their own.
      if (use != LineUse::not_understood && line.has(Keyword::library_line)) ReadLibraryLine(line, out_);
      if (use != LineUse::not_understood) return use;
      if (state.traceback.in_message() && EndsLooseMessage(line)) state.traceback.End(out_);
    }
    // A progress bar that is still open stands before it on the same line.
    if (line.has(Keyword::traceback) && line.has(Keyword::may_progress))
      if (const auto step = FindProgress(line.text.substr(0, line.text.find("Traceback")))) out_.NoteStep(*step);
    LineUse use = state.traceback.Read(line, out_);
    const size_t told = log_.records.size();
    use = std::max(use, ReadErrorText(line, state.failure, out_));
    NameOrigin(state.traceback.origin(), told);
    if (line.has(Keyword::work)) use = std::max(use, ReadWatchdogLine(line, state.watchdog, out_));
    if (line.has(Keyword::refused)) NameConnecting(line, label);
    use = std::max(use, ReadOutside(line));
    use = std::max(use, state.desync.Read(line, out_));
    use = std::max(use, state.stall.Read(line, out_));
    label_state.actor.Read(line, out_);
    if (line.text[0] == '#') use = std::max(use, ReadFailedStack(line, state.watchdog));
    if (use != LineUse::not_understood) return use;
    use = state.own.Read(line, log_.voices[line.voice], out_);
    return work_bar ? std::max(use, LineUse::understood) : use;
  }

  // Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:618
  // Of the watchdog's report nothing but its C++ stack was pasted: that a collective's time was up is told all the
  // same.
  void NoteBareTimeout(const LogLine& line) {
    if (bare_timeout_.source.line > 0 || !line.text.starts_with("Exception raised from checkTimeout at ") ||
        !Contains(line.text, "ProcessGroup"))
      return;
    bare_timeout_ = line;
    bare_timeout_words_ = Capped(line.text, 300);
  }

  void TellBareTimeout() {
    const auto tells = [](const TorchLogRecord& record) {
      return record.kind == TorchLogKind::watchdog_timeout || record.kind == TorchLogKind::watchdog_status ||
             record.kind == TorchLogKind::heartbeat_stuck;
    };
    if (bare_timeout_.source.line == 0 || std::any_of(log_.records.begin(), log_.records.end(), tells)) return;
    bare_timeout_.text = bare_timeout_words_;
    out_.Add(TorchLogKind::watchdog_timeout, bare_timeout_).text = bare_timeout_words_;
  }

  // What an error says that one rank passes on is said of the rank that raised it.
  void NameOrigin(int32_t origin, size_t first) {
    for (size_t i = first; origin >= 0 && i < log_.records.size(); ++i)
      if (log_.records[i].rank < 0) log_.records[i].rank = origin;
  }

  std::string_view bytes_;
  LabelStyle style_;
  TorchLog log_;
  RecordList out_;
  std::vector<std::unique_ptr<LabelState>> labels_;
  std::vector<std::unique_ptr<VoiceState>> voices_;
  std::unordered_map<std::string, uint32_t> label_ids_;
  std::unordered_map<uint64_t, uint32_t> voice_ids_;
  uint32_t last_label_ = 0, last_voice_ = 0;
  uint64_t last_key_ = 0;
  int32_t quoted_rank_ = -1;
  uint32_t last_rate_line_ = 0;    // where a rank last told a rate that it measured
  uint32_t last_served_line_ = 0;  // the last line that shows a server at work
  WorkBarReader work_bar_;
  bool in_pieces_ = false;  // a line that mpirun tagged several times
  std::string plain_, last_label_text_;
  LogLine bare_timeout_;  // its line is 0 where there is none
  std::string bare_timeout_words_;
};

}  // namespace

TorchLog ParseTorchLog(std::string_view bytes) { return LogReader(bytes).Read(); }

}  // namespace tacet
