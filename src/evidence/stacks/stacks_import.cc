// SPDX-License-Identifier: Apache-2.0
#include "evidence/stacks/stacks_import.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/text_scan.h"
#include "model/assembly/file_rank.h"

namespace tacet {
namespace {

using Kind = LauncherPrefix::Kind;

// The first process of a py-spy -s dump is the one that was asked for; the others are its children, and the rank in the
// file's name is not theirs. Where several unrelated processes share a file, its name tells none of their ranks.
struct PathRank {
  std::optional<Rank> rank;
  int64_t only_for_pid = -1;  // -1: for every process of the file
};

// "pyspy_5.txt", "gdb-5.txt", "bt.5": read as "stack_5.txt". Larger numbers are process ids, of whatever namespace.
std::optional<Rank> RankBesideTool(std::string_view path) {
  constexpr int32_t kLargest = 999;
  const size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (const std::string_view tool : {"py-spy", "py_spy", "pyspy", "gdb", "bt"}) {
    if (!name.starts_with(tool)) continue;
    const auto rank = RankFromPath("stack" + std::string(name.substr(tool.size())));
    return rank && rank->value <= kLargest ? rank : std::nullopt;
  }
  return std::nullopt;
}

PathRank RankOfFile(const StackDump& dump, std::string_view path) {
  PathRank answer{RankFromPath(path), -1};
  std::set<int64_t> pids, roots;
  for (const StackSection& section : dump.sections)
    if (section.pid >= 0) pids.insert(section.pid);
  for (const StackSection& section : dump.sections)
    if (section.pid >= 0 && !pids.contains(section.parent_pid)) roots.insert(section.pid);
  // The process itself tells its pid: then the number in "pyspy_5.txt" is not that.
  if (!answer.rank && !pids.empty()) answer.rank = RankBesideTool(path);
  // gdb_4242.txt is named after the process, not after a rank.
  if (answer.rank && pids.contains(answer.rank->value)) answer.rank.reset();
  if (pids.size() > 1) {
    if (roots.size() == 1)
      answer.only_for_pid = *roots.begin();
    else
      answer.rank.reset();
  }
  return answer;
}

class StackImport {
 public:
  StackImport(const StackDump& dump, std::string_view path, Fragment& out)
      : dump_(dump), path_rank_(RankOfFile(dump, path)), out_(out), main_of_(dump.sections.size(), kNobody) {}

  void Run() {
    for (uint32_t begin = 0; begin < dump_.threads.size();) {
      // Threads of one section stand together unless launcher prefixes interleave processes.
      by_section_[dump_.threads[begin].section].push_back(begin);
      ++begin;
    }
    for (const auto& [section, threads] : by_section_) main_of_[section] = FindMain(section, threads);
    for (uint32_t i = 0; i < dump_.threads.size(); ++i) TakeThread(i);
    for (const StackFatalRecord& fatal : dump_.fatals) TakeFatal(fatal);
    // "Timeout (0:00:28)!" and no more: the process ran, wherever it was.
    if (out_.speakers.empty() && !dump_.sections.empty()) SpeakerOf(0);
  }

 private:
  // Two nodes both have a local rank 0.
  static bool CommandsClash(const StackDump& dump) {
    std::map<int64_t, int64_t> pid_of;
    return std::any_of(dump.sections.begin(), dump.sections.end(), [&](const StackSection& section) {
      return section.command_rank >= 0 &&
             pid_of.try_emplace(section.command_rank, section.pid).first->second != section.pid;
    });
  }

  // Who a section speaks of: by rank, else by pid, else by the launcher's label.
  uint32_t SpeakerOf(uint32_t index) {
    const StackSection& section = dump_.sections[index];
    Speaker speaker;
    speaker.host = section.host;
    speaker.pid = section.pid >= 0 ? section.pid : PidOfGdb(index);
    const LauncherPrefix& launcher = section.launcher;
    if (speaker.pid < 0 && launcher.kind == Kind::process) speaker.pid = launcher.number;
    const auto set = [&](int64_t rank, Certainty certainty) {
      speaker.rank = Rank{static_cast<int32_t>(std::min<int64_t>(rank, 10'000'000))};
      speaker.rank_certainty = certainty;
    };
    if (section.rank >= 0) {
      set(section.rank, Certainty::stated);
    } else if (section.command_rank >= 0 && !commands_clash_ && launcher.kind == Kind::none) {
      set(section.command_rank, Certainty::assumed);
      if (section.command_local) speaker.rank_clue = RankClue::local_rank;
    } else if (launcher.kind == Kind::rank) {
      set(launcher.number, Certainty::stated);
    } else if (launcher.kind == Kind::task || launcher.kind == Kind::local) {
      set(launcher.number, Certainty::assumed);
    } else if (!section.path.empty()) {
      if (const auto rank = RankFromPath(section.path)) set(rank->value, Certainty::assumed);
    } else if (launcher.kind == Kind::none && path_rank_.rank &&
               (path_rank_.only_for_pid < 0 || path_rank_.only_for_pid == speaker.pid)) {
      set(path_rank_.rank->value, Certainty::assumed);
    }
    std::string key = speaker.rank.known() ? "rank " + std::to_string(speaker.rank.value)
                      : speaker.pid >= 0   ? "pid " + std::to_string(speaker.pid)
                                           : "label " + std::string(launcher.label) + " " + std::string(section.path);
    const auto [found, added] = speakers_.try_emplace(std::move(key), static_cast<uint32_t>(out_.speakers.size()));
    if (added) {
      out_.speakers.push_back(std::move(speaker));
      dumps_.push_back(0);
    } else {
      Speaker& known = out_.speakers[found->second];
      if (known.pid < 0) known.pid = speaker.pid;
      ++dumps_[found->second];
    }
    return found->second;
  }

  // gdb numbers the thread it attached to 1; that is the main thread, and its LWP is the pid.
  int64_t PidOfGdb(uint32_t section) const {
    const auto found = by_section_.find(section);
    if (found == by_section_.end()) return -1;
    for (const uint32_t i : found->second) {
      const StackThreadRecord& thread = dump_.threads[i];
      int64_t pid = -1;
      std::string_view id = thread.id;
      if (thread.tool == StackTool::gdb && thread.number == 1 && !id.starts_with("0x") && TakeNumber(id, &pid) &&
          id.empty())
        return pid;
    }
    return -1;
  }

  static bool BeginsProgram(const StackThreadRecord& thread) {
    if (thread.cut || thread.frames.empty()) return false;
    // py-spy --native shows the C library's frames further out.
    const auto python = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                     [](const StackFrameRecord& frame) { return frame.python; });
    const bool native = thread.tool == StackTool::py_spy && python != thread.frames.rend();
    const StackFrameRecord& begin = native ? *python : thread.frames.back();
    const std::string_view outermost = begin.function, file = begin.file;
    // A thread that imports has such frames too; where the file ends behind one, it looks like the beginning.
    const bool imported = Contains(file, "site-packages/") || Contains(file, "dist-packages/");
    return (outermost == "<module>" && !imported) || outermost == "_run_module_as_main";
  }
  static bool BeginsThread(const StackThreadRecord& thread) {
    if (thread.cut || thread.frames.empty()) return false;
    const std::string_view outermost = thread.frames.back().function;
    return outermost == "_bootstrap" || outermost == "_bootstrap_inner" || outermost == "run";
  }

  // The file ends inside the thread: neither a first frame nor the mark that some were left out ("...").
  bool LostItsBeginning(uint32_t section, const StackThreadRecord& thread) const {
    return section + 1 == dump_.sections.size() && !thread.cut && !thread.frames.empty();
  }

  uint32_t FindMain(uint32_t section, const std::vector<uint32_t>& threads) const {
    const std::string pid = std::to_string(dump_.sections[section].pid);
    uint32_t main = kNobody, last = kNobody, listed = 0;
    for (const uint32_t i : threads) {
      const StackThreadRecord& thread = dump_.threads[i];
      if (thread.c_stack || thread.tool == StackTool::torch_cpp) continue;
      ++listed;
      last = i;
      if (thread.name == "MainThread" || (thread.tool == StackTool::gdb && thread.number == 1)) return i;
      if (thread.tool != StackTool::faulthandler && !thread.id.empty() && thread.id == pid) return i;
      if (BeginsProgram(thread)) main = i;
    }
    if (main != kNobody || last == kNobody) return main;
    // The interpreter lists its threads youngest first, so the main thread is the last, unless the list was cut, or the
    // file: then the last one has lost its outermost frames. A thread that dumped only itself may be any.
    const StackThreadRecord& thread = dump_.threads[last];
    if (thread.tool != StackTool::faulthandler || dump_.sections[section].threads_left_out || BeginsThread(thread) ||
        LostItsBeginning(section, thread))
      return kNobody;
    return listed == 1 && (thread.current || thread.id.empty()) ? kNobody : last;
  }

  void TakeThread(uint32_t index) {
    const StackThreadRecord& record = dump_.threads[index];
    if (section_speaker_.size() <= record.section) section_speaker_.resize(dump_.sections.size(), {kNobody, 0});
    auto& [speaker, number] = section_speaker_[record.section];
    if (speaker == kNobody) {
      speaker = SpeakerOf(record.section);
      number = dumps_[speaker];
    }
    ThreadStack thread;
    thread.speaker = speaker;
    thread.dump = number;
    thread.source = {FileId{0}, record.line, record.offset};
    thread.thread_name = record.c_stack ? "C stack" : std::string(record.name);
    thread.thread_id = record.id;
    thread.state = record.state.empty() && record.current ? "current" : std::string(record.state);
    thread.is_main = main_of_[record.section] == index;
    thread.looked_at = record.tool == StackTool::py_spy || record.tool == StackTool::gdb;
    thread.timer_s = dump_.sections[record.section].timer_s;
    thread.last_words = dump_.last_unknown_line < dump_.sections[record.section].line;
    thread.group_rank = record.group_rank;
    thread.group_ranks = record.group_ranks;
    std::vector<Frame> frames;
    frames.reserve(record.frames.size());
    for (const StackFrameRecord& frame : record.frames) {
      frames.push_back({out_.strings.Intern(frame.function), out_.strings.Intern(frame.file), frame.code_line});
      thread.has_python = thread.has_python || frame.python;
    }
    thread.first_line = record.frames.empty() ? record.line : record.frames.front().at_line;
    thread.stack = out_.stacks.Intern(std::move(frames));
    out_.threads.push_back(std::move(thread));
  }

  void TakeFatal(const StackFatalRecord& fatal) {
    Event event;
    const std::string_view reason = fatal.reason;
    const bool fault = reason.starts_with("Segmentation fault") || reason.starts_with("Bus error") ||
                       reason.starts_with("Illegal instruction") || reason.starts_with("Floating");
    event.kind = fault ? EventKind::segfault : EventKind::abort_signal;
    event.speaker = SpeakerOfFatal(fatal.section);
    event.source = {FileId{0}, fatal.line, fatal.offset};
    event.text = (fatal.by_gdb ? "" : "Fatal Python error: ") + std::string(reason.substr(0, Event::kMaxText - 20));
    event.pid = event.speaker == kNobody ? -1 : out_.speakers[event.speaker].pid;
    CodePlace place;
    const auto found = by_section_.find(fatal.section);
    if (found != by_section_.end()) {
      for (const uint32_t i : found->second) {
        const StackThreadRecord& thread = dump_.threads[i];
        if (!thread.current || thread.frames.empty()) continue;
        // The program's own line, or the call of a library in which it happened.
        const auto own = std::find_if(thread.frames.begin(), thread.frames.end(), [](const StackFrameRecord& frame) {
          return ClassifyFrame(frame.function, frame.file) == FrameKind::user;
        });
        const StackFrameRecord& frame = own == thread.frames.end() ? thread.frames.front() : *own;
        place = {std::string(frame.function), std::string(frame.file), frame.code_line};
      }
    }
    if (fault)
      event.Make<Segfault>() = {"python", std::move(place)};
    else
      event.Make<Abort>() = {"python", "", std::move(place)};
    out_.events.push_back(std::move(event));
  }

  uint32_t SpeakerOfFatal(uint32_t section) {
    if (section < section_speaker_.size() && section_speaker_[section].first != kNobody)
      return section_speaker_[section].first;
    return SpeakerOf(section);
  }

  const StackDump& dump_;
  PathRank path_rank_;
  bool commands_clash_ = CommandsClash(dump_);
  Fragment& out_;
  std::map<uint32_t, std::vector<uint32_t>> by_section_;
  std::vector<uint32_t> main_of_;
  std::vector<std::pair<uint32_t, uint32_t>> section_speaker_;  // speaker, number of its dump
  std::map<std::string, uint32_t> speakers_;
  std::vector<uint32_t> dumps_;
};

}  // namespace

void ImportStacks(const StackDump& dump, std::string_view path, Fragment& out) {
  StackImport(dump, path, out).Run();
  if (dump.truncated)
    out.Note(DiagnosticSeverity::warning, "truncated", "the JSON ends early; the threads before that were read");
  for (const StackSection& section : dump.sections) {
    if (!section.threads_left_out) continue;
    out.Note(DiagnosticSeverity::note, "threads-left-out",
             "faulthandler stops after 100 threads; the main thread may be missing",
             {FileId{0}, section.line, section.offset}, "capture with py-spy dump instead");
    break;
  }
}

}  // namespace tacet
