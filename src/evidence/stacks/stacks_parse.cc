// SPDX-License-Identifier: Apache-2.0
#include "evidence/stacks/stacks_parse.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/stacks/stacks_lines.h"

namespace tacet {
namespace {

enum class Reading : uint8_t { unknown, ignored, known, header, frame, unnamed_frame };

constexpr uint32_t kNone = 0xffffffffu;
// So many processes may share a file under different launcher prefixes; hostile labels beyond that share one lane.
constexpr size_t kMaxLanes = 100'000;

// One process's output inside the file. Ranks whose lines are interleaved each have their own lane.
struct Place {
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct Lane {
  LauncherPrefix launcher;
  uint32_t section = kNone;
  uint32_t thread = kNone;
  bool in_fatal = false;    // between "Fatal Python error" and its first thread
  bool in_py_bt = false;    // python-gdb's own traceback
  uint32_t gdb_thread = 0;  // number of the thread before; gdb counts down to 1
  uint32_t last_frame_number = 0;
  uint32_t frames_in_row = 0;  // of a stack without a head, from #0 on
  bool has_address = false;    // some of them "0x... in"
  int64_t heading_rank = -1;   // somebody's words above a stack, and where they stand
  uint32_t heading_line = 0;
  bool has_main = false;                            // the current dump shows its main thread, by py-spy's word
  std::unordered_set<std::string_view> thread_ids;  // of the current dump
  std::vector<std::pair<FrameLine, Place>> headless;  // frames of py-spy before any head of a thread
};

// "0:00:30)!", "1:05:00.500000)!"; -1 where it is none.
int64_t SecondsOfTimer(std::string_view text) {
  int64_t hours = 0, minutes = 0, seconds = 0;
  if (!TakeNumber(text, &hours) || !TakeLiteral(text, ":") || !TakeNumber(text, &minutes) || !TakeLiteral(text, ":") ||
      !TakeNumber(text, &seconds) || hours < 0 || hours > 10'000)
    return -1;
  return hours * 3600 + minutes * 60 + seconds;
}

class StackLines {
 public:
  explicit StackLines(StackDump& dump) : dump_(dump) {}

  uint32_t headless_stacks() const { return headless_stacks_; }

  Reading Feed(std::string_view text, Place place) {
    if (HasTerminalCodes(text)) text = dump_.owned.emplace_back(DropTerminalCodes(text));
    const LauncherPrefix prefix = TakeLauncherPrefix(text);
    const Reading reading = Understand(LaneOf(prefix), text, place);
    if (reading != Reading::unknown) return reading;
    if (const int64_t rank = RankInHeading(text); rank >= 0) {
      Lane& lane = LaneOf(prefix);
      lane.heading_rank = rank;
      lane.heading_line = place.line;
      return reading;
    }
    // "trainer-3 main Thread 12 (idle)": the pod, then the container.
    std::string_view rest = text, pod;
    if (!TakePodWord(rest, &pod)) return reading;
    LauncherPrefix by_pod{LauncherPrefix::Kind::pod, -1, pod};
    if (const Reading again = Understand(LaneOf(by_pod), rest, place); again != Reading::unknown) return again;
    TakeUntil(rest, ' ');
    TakeLiteral(rest, " ");
    return Understand(LaneOf(by_pod), rest, place);
  }

 private:
  Lane& LaneOf(const LauncherPrefix& prefix) {
    if (prefix.label.empty() || lanes_.size() >= kMaxLanes) return plain_;
    if (last_ && last_->launcher.label == prefix.label) return *last_;
    const auto [found, added] = lanes_.try_emplace(prefix.label);
    if (added) found->second.launcher = prefix;
    last_ = &found->second;
    return *last_;
  }

  // A new dump of the same process: its name stays, its threads start anew.
  StackSection& BeginSection(Lane& lane, Place place) {
    StackSection section;
    if (lane.section != kNone) section = dump_.sections[lane.section];
    section.launcher = lane.launcher;
    section.threads_left_out = false;
    section.timer_s = -1;
    section.line = place.line;
    section.offset = place.offset;
    lane.section = static_cast<uint32_t>(dump_.sections.size());
    lane.thread = kNone;
    lane.in_fatal = lane.in_py_bt = false;
    lane.thread_ids.clear();
    lane.has_main = false;
    dump_.sections.push_back(section);
    return dump_.sections.back();
  }
  // A new process: what was known of the one before does not hold.
  StackSection& BeginProcess(Lane& lane, Place place) {
    const bool keep = lane.section != kNone && dump_.sections[lane.section].pid < 0 && lane.thread == kNone;
    StackSection before = keep ? dump_.sections[lane.section] : StackSection{};
    lane.section = kNone;
    StackSection& section = BeginSection(lane, place);
    section.rank = before.rank;
    section.host = before.host;
    section.path = before.path;
    section.command_rank = -1;
    if (const int64_t rank = TakeHeading(lane, place); rank >= 0) section.rank = rank;
    return section;
  }

  // A heading counts for what follows at once; further down it was about something else.
  static int64_t TakeHeading(Lane& lane, Place place) {
    constexpr uint32_t kLinesBetween = 4;
    const int64_t rank = place.line <= lane.heading_line + kLinesBetween ? lane.heading_rank : -1;
    lane.heading_rank = -1;
    return rank;
  }

  // faulthandler puts a blank line between the threads of a dump and none behind the last, which is the main thread. So
  // the next head without one is of another process that writes into the same file.
  bool FollowsAWholeDump(Lane& lane, StackTool tool, Place place) {
    if (tool != StackTool::faulthandler || lane.launcher.kind != LauncherPrefix::Kind::none) return false;
    const StackThreadRecord* before = ThreadOf(lane);
    return before && before->tool == tool && !before->frames.empty() && before->frames.back().function == "<module>" &&
           before->frames.back().at_line + 1 == place.line;
  }

  Reading BeginThread(Lane& lane, StackTool tool, const ThreadLine& line, Place place) {
    // A thread takes half a kilobyte, and forty characters are enough for one. Real dumps have more to say of each; in
    // a file of nothing but beginnings the last one kept stands for the rest.
    constexpr size_t kFreeThreads = 16384, kBytesPerThread = 128;
    if (dump_.threads.size() >= kFreeThreads + place.offset / kBytesPerThread) {
      lane.thread = static_cast<uint32_t>(dump_.threads.size() - 1);
      dump_.threads.back().cut = true;
      return Reading::header;
    }
    if (lane.heading_rank >= 0)
      if (const int64_t rank = TakeHeading(lane, place); rank >= 0) {
        lane.section = kNone;
        BeginSection(lane, place).rank = rank;
      }
    // SIGUSR1 dumps have no heading: a thread that comes again begins the next one.
    if (lane.section == kNone || (!line.id.empty() && lane.thread_ids.contains(line.id)) ||
        FollowsAWholeDump(lane, tool, place))
      BeginSection(lane, place);
    if (!line.id.empty()) lane.thread_ids.insert(line.id);
    lane.in_fatal = lane.in_py_bt = false;
    lane.last_frame_number = 0;
    lane.thread = static_cast<uint32_t>(dump_.threads.size());
    StackThreadRecord thread;
    thread.tool = tool;
    thread.section = lane.section;
    thread.number = line.number;
    thread.id = line.id;
    thread.name = line.name;
    thread.state = line.state;
    thread.current = line.current;
    thread.line = place.line;
    thread.offset = place.offset;
    dump_.threads.push_back(std::move(thread));
    return Reading::header;
  }

  StackThreadRecord* ThreadOf(Lane& lane) { return lane.thread == kNone ? nullptr : &dump_.threads[lane.thread]; }
  bool Has(Lane& lane, StackTool tool) { return lane.thread != kNone && dump_.threads[lane.thread].tool == tool; }

  Reading AddFrame(Lane& lane, const FrameLine& frame, bool python, Place place) {
    StackThreadRecord& thread = dump_.threads[lane.thread];
    if (thread.frames.size() >= kMaxFramesKept)
      thread.cut = true;
    else
      thread.frames.push_back({frame.function, frame.file, frame.code_line, place.line, python});
    return Reading::frame;
  }

  // The text begins inside of a thread: where py-spy's head of the next one follows, the frames above it are of one,
  // too.
  void BeginHeadless(Lane& lane) {
    constexpr size_t kFewestFrames = 2;
    const auto frames = std::exchange(lane.headless, {});
    if (lane.thread != kNone || frames.size() < kFewestFrames) return;
    BeginThread(lane, StackTool::py_spy, {}, frames.front().second);
    for (const auto& [frame, place] : frames) AddFrame(lane, frame, IsPython(frame), place);
  }

  static bool IsPython(const FrameLine& frame) { return frame.file.ends_with(".py") || frame.code_line > 0; }

  Reading Understand(Lane& lane, std::string_view line, Place place) {
    if (line.empty() || Trim(line).empty()) return Reading::ignored;
    if (line.front() != ' ' && line.front() != 'T') lane.headless.clear();
    if (line.front() == '*' || line.starts_with("  "))
      if (const Reading row = ThreadRow(lane, line, place); row != Reading::unknown) return row;
    // 4540/? [07:57<00:00,  9.51it/s]Fatal Python error: ...: a progress bar has no line break behind it.
    if (const size_t bar = line.find("]Fatal Python error: "); bar != std::string_view::npos)
      return Fatal(lane, line.substr(bar + 1), place);
    switch (line.front()) {
      case ' ':
      case '\t': return Indented(lane, line, place);
      case '#': return NumberedFrame(lane, line, place);
      case 'f': return TorchFrame(lane, line, place);
      case '[':
        if (ThreadLine thread; ParseGdbSwitch(line, &thread)) return SwitchTo(lane, thread, place);
        return Around(lane, line);
      case 'T':
      case 'C':
      case 'S': return ThreadHeading(lane, line, place);
      case 'F': return Fatal(lane, line, place);
      case 'P': return Process(lane, line, place);
      case '=':
      case '-':
      case '*': return Section(lane, line, place);
      default: return Around(lane, line);
    }
  }

  // A thread that `info threads` has listed is now shown as a whole.
  Reading SwitchTo(Lane& lane, const ThreadLine& line, Place place) {
    constexpr size_t kMostLookedAt = 4096;
    for (size_t i = dump_.threads.size(), looked = 0; i-- > 0 && ++looked < kMostLookedAt;) {
      StackThreadRecord& thread = dump_.threads[i];
      if (thread.section != lane.section || thread.tool != StackTool::gdb || thread.id != line.id) continue;
      thread.frames.clear();
      lane.thread = static_cast<uint32_t>(i);
      lane.in_py_bt = false;
      lane.last_frame_number = 0;
      return Reading::header;
    }
    return BeginThread(lane, StackTool::gdb, line, place);
  }

  // `info threads`: each row is a thread of the same process, with its innermost frame.
  Reading ThreadRow(Lane& lane, std::string_view line, Place place) {
    ThreadLine thread;
    std::string_view text;
    FrameLine frame;
    if (!ParseGdbThreadRow(line, &thread, &text)) return Reading::unknown;
    if (!ParseGdbFrame(dump_.owned.emplace_back("#0 " + std::string(text)), &frame)) {
      // "0x00007f2273879a15 in futex_abstimed_wait_cancelable": the row is cut.
      frame.function = After(text, " in ").value_or(text);
      if (frame.function.empty() || frame.function.find(' ') != std::string_view::npos) return Reading::unknown;
    }
    BeginThread(lane, StackTool::gdb, thread, place);
    AddFrame(lane, frame, false, place);
    return Reading::header;
  }

  Reading Section(Lane& lane, std::string_view line, Place place) {
    SectionLine section;
    if (ParseSectionLine(line, &section)) {
      lane.section = kNone;
      StackSection& begun = BeginSection(lane, place);
      begun.rank = section.rank;
      begun.host = section.host;
      begun.path = section.path;
      return Reading::known;
    }
    // py-spy dump -s puts a rule between processes.
    return line.size() >= 3 && line.find_first_not_of("-=*") == std::string_view::npos ? Reading::ignored
                                                                                       : Reading::unknown;
  }

  Reading ThreadHeading(Lane& lane, std::string_view line, Place place) {
    ThreadLine thread;
    if (line.starts_with("Timeout (") && line.ends_with(")!")) {
      if (lane.thread != kNone || lane.section == kNone) BeginSection(lane, place);
      dump_.sections[lane.section].timer_s = SecondsOfTimer(line.substr(9));
      return Reading::header;
    }
    if (line.starts_with("Current thread's C stack trace")) {
      BeginThread(lane, StackTool::faulthandler, {}, place);
      dump_.threads.back().c_stack = true;
      return Reading::header;
    }
    if (ParseFaulthandlerThread(line, &thread)) return BeginThread(lane, StackTool::faulthandler, thread, place);
    if (ParsePySpyThread(line, &thread)) {
      BeginHeadless(lane);
      // A second main thread is of another process, whose own heading is not here.
      const bool main = thread.name == "MainThread";
      if (main && lane.has_main && !lane.thread_ids.contains(thread.id)) BeginProcess(lane, place);
      const Reading reading = BeginThread(lane, StackTool::py_spy, thread, place);
      lane.has_main |= main;
      return reading;
    }
    if (ParseGdbThread(line, &thread)) {
      // Dumps of several processes one after another have nothing between them but the numbers.
      if (lane.gdb_thread == 1 && !lane.thread_ids.contains(thread.id)) BeginProcess(lane, place);
      lane.gdb_thread = thread.number;
      return BeginThread(lane, StackTool::gdb, thread, place);
    }
    if (const std::string_view signal = ParseGdbSignal(line); !signal.empty()) return Signal(lane, signal, place);
    if (line == "Traceback (most recent call first):") {
      // py-bt prints its Python frames under gdb's own heading of the thread, or alone.
      if (!Has(lane, StackTool::gdb) || !ThreadOf(lane)->frames.empty()) BeginThread(lane, StackTool::gdb, {}, place);
      lane.in_py_bt = true;
      return Reading::header;
    }
    return Around(lane, line);
  }

  // Fatal Python error: Segmentation fault
  Reading Fatal(Lane& lane, std::string_view line, Place place) {
    if (!TakeLiteral(line, "Fatal Python error: ")) return Reading::unknown;
    line = Trim(line);
    if (lane.thread != kNone || lane.section == kNone) BeginSection(lane, place);
    lane.in_fatal = true;
    dump_.fatals.push_back({lane.section, line, false, place.line, place.offset});
    return Reading::header;
  }

  Reading Signal(Lane& lane, std::string_view words, Place place) {
    if (lane.thread != kNone || lane.section == kNone) BeginSection(lane, place);
    dump_.fatals.push_back({lane.section, words, true, place.line, place.offset});
    return Reading::known;
  }

  Reading Process(Lane& lane, std::string_view line, Place place) {
    ProcessLine process;
    if (const std::string_view signal = ParseGdbSignal(line); !signal.empty()) return Signal(lane, signal, place);
    if (ParsePySpyProcess(line, &process)) {
      StackSection& section = BeginProcess(lane, place);
      section.pid = process.pid;
      const CommandRank told = RankInCommand(process.command);
      section.command_rank = told.rank;
      section.command_local = told.local;
      return Reading::known;
    }
    if (TakeLiteral(line, "Parent ") && ParsePySpyProcess(line, &process)) {
      if (lane.section != kNone) dump_.sections[lane.section].parent_pid = process.pid;
      return Reading::known;
    }
    if (line.starts_with("Python v")) return lane.section != kNone ? Reading::known : Reading::unknown;
    return lane.in_fatal && line.starts_with("Python runtime state:") ? Reading::ignored : Reading::unknown;
  }

  Reading NumberedFrame(Lane& lane, std::string_view line, Place place) {
    SectionLine section;
    if (line.starts_with("##") && ParseSectionLine(line, &section)) return Section(lane, line, place);
    FrameLine frame;
    if ((lane.in_py_bt || Contains(line, " Frame 0x")) && ParsePyBtFrame(line, &frame)) {
      // py-bt prints its Python frames under gdb's own heading of the thread, or alone.
      if (!lane.in_py_bt && (!Has(lane, StackTool::gdb) || !ThreadOf(lane)->frames.empty()))
        BeginThread(lane, StackTool::gdb, {}, place);
      lane.in_py_bt = true;
      return AddFrame(lane, frame, true, place);
    }
    if (!ParseGdbFrame(line, &frame)) return Reading::unknown;
    const bool headed = Has(lane, StackTool::gdb);
    const bool again = headed && !ThreadOf(lane)->frames.empty() && frame.number <= lane.last_frame_number;
    if (!headed || again) BeginThread(lane, StackTool::gdb, {}, place);
    lane.last_frame_number = frame.number;
    AddFrame(lane, frame, false, place);
    NoteCoordinator(lane, line);
    if (StackThreadRecord& thread = *ThreadOf(lane); thread.group_rank < 0) {
      thread.group_rank = frame.group_rank;
      thread.group_ranks = frame.group_ranks;
    }
    CountInRow(lane, frame);
    return ThreadOf(lane)->id.empty() ? Reading::unnamed_frame : Reading::frame;
  }

  // The rank that a frame tells; what a heading says is surer.
  void NoteCoordinator(Lane& lane, std::string_view line) {
    if (lane.section != kNone && IsHorovodCoordinator(line)) dump_.sections[lane.section].command_rank = 0;
  }

  // "#0  0x... in f ()", "#1 ...", "#2 ...": three in a row are a stack, "#1 (see above)" is prose.
  void CountInRow(Lane& lane, const FrameLine& frame) {
    constexpr uint32_t kEnough = 3;
    if (frame.number == 0) lane.frames_in_row = 0, lane.has_address = false;
    if (frame.number != lane.frames_in_row) return;
    ++lane.frames_in_row;
    lane.has_address |= frame.address;
    if (lane.frames_in_row == kEnough && lane.has_address && ThreadOf(lane)->id.empty()) ++headless_stacks_;
  }

  Reading TorchFrame(Lane& lane, std::string_view line, Place place) {
    FrameLine frame;
    if (!ParseTorchFrame(line, &frame)) return Reading::unknown;
    const bool again =
        Has(lane, StackTool::torch_cpp) && !ThreadOf(lane)->frames.empty() && frame.number <= lane.last_frame_number;
    if (!Has(lane, StackTool::torch_cpp) || again) BeginThread(lane, StackTool::torch_cpp, {}, place);
    lane.last_frame_number = frame.number;
    AddFrame(lane, frame, false, place);
    return Reading::unnamed_frame;
  }

  Reading Indented(Lane& lane, std::string_view line, Place place) {
    FrameLine frame;
    const std::string_view text = Trim(line);
    if (StackThreadRecord* thread = ThreadOf(lane)) {
      switch (thread->tool) {
        case StackTool::faulthandler:
          if (thread->c_stack ? ParsePythonCStackFrame(line, &frame) : ParseFaulthandlerFrame(line, &frame))
            return AddFrame(lane, frame, !thread->c_stack, place);
          if (text == "...") return thread->cut = true, Reading::known;
          if (text == "Garbage-collecting") return thread->state = text, Reading::known;
          if (text.starts_with('<') && text.ends_with('>')) return Reading::known;  // <no Python frame>
          break;
        case StackTool::py_spy:
          if (ParsePySpyFrame(line, &frame)) return AddFrame(lane, frame, IsPython(frame), place);
          if (line.starts_with("        ")) return Reading::ignored;  // arguments and locals
          break;
        case StackTool::gdb:
          if (lane.in_py_bt && ParsePyBtFrame(line, &frame)) return AddFrame(lane, frame, true, place);
          if (lane.in_py_bt && text == "Waiting for the GIL") return thread->state = text, Reading::known;
          if (lane.in_py_bt && line.starts_with("    ")) return Reading::ignored;  // the source line
          if (!thread->frames.empty() && ParseGdbContinuation(line, &frame)) {
            NoteCoordinator(lane, line);
            if (!frame.file.empty())
              thread->frames.back().file = frame.file, thread->frames.back().code_line = frame.code_line;
            return Reading::known;
          }
          break;
        case StackTool::torch_cpp: break;
      }
    }
    if (text.starts_with("frame #")) return TorchFrame(lane, text, place);
    if (lane.thread == kNone && lane.headless.size() < kMaxFramesKept && ParsePySpyFrame(line, &frame))
      lane.headless.emplace_back(frame, place);
    return text.starts_with("Id ") && text.ends_with(" Frame") ? Reading::known : Reading::unknown;
  }

  // "81	in ../sysdeps/unix/syscall-template.S": gdb has no source to show.
  static bool IsSourceNote(std::string_view line) {
    uint32_t number = 0;
    if (line.empty() || !IsDigit(line.front()) || !TakeNumber(line, &number)) return false;
    line = Trim(line);
    return TakeLiteral(line, "in ") && line.find(' ') == std::string_view::npos && Contains(line, "/");
  }

  // What stands around the stacks and says nothing of them, and the few lines that tell a pid.
  Reading Around(Lane& lane, std::string_view line) {
    if (IsSourceNote(line)) return Reading::ignored;
    if (line == "..." && Has(lane, StackTool::faulthandler)) {
      dump_.sections[lane.section].threads_left_out = true;
      return Reading::known;
    }
    if (line.starts_with("Extension modules: ") || line.starts_with("<Cannot show all threads"))
      return Reading::ignored;
    if (const auto pid = line.starts_with("[Inferior ") ? IntAfter(line, "(process ") : std::nullopt) {
      if (lane.section != kNone && lane.gdb_thread > 0) {
        if (dump_.sections[lane.section].pid < 0) dump_.sections[lane.section].pid = *pid;
        lane.section = lane.thread = kNone;
        lane.gdb_thread = 0;
        lane.thread_ids.clear();
      }
      return Reading::known;
    }
    for (const std::string_view known :
         {"[New LWP ", "[New Thread ", "[Thread debugging using", "[Switching to ", "Using host libthread_db",
          "(More stack frames", "Detaching from program", "(gdb) ", "warning: ", "Reading symbols", "Loaded symbols",
          "[Current thread is", "Attaching to process ", "Unable to locate python frame"})
      if (line.starts_with(known)) return Reading::ignored;
    if (line.starts_with("0x") && Contains(line, " in ")) return Reading::ignored;  // where gdb stopped the process
    if (line.starts_with("Error: ") && lane.section != kNone)
      return Reading::ignored;  // the debug server could not ask
    return Reading::unknown;
  }

  StackDump& dump_;
  uint32_t headless_stacks_ = 0;
  Lane plain_;
  Lane* last_ = nullptr;
  std::unordered_map<std::string_view, Lane> lanes_;
};

}  // namespace

StackDump ParseStacks(std::string_view bytes) {
  StackDump dump;
  StackLines lines(dump);
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) {
    switch (lines.Feed(line, {reader.number(), reader.offset()})) {
      case Reading::unknown:
        dump.not_understood += reader.line_bytes();
        if (dump.first_unknown_line == 0) dump.first_unknown_line = reader.number();
        dump.last_unknown_line = reader.number();
        break;
      case Reading::ignored: dump.ignored += reader.line_bytes(); break;
      default: dump.understood += reader.line_bytes();
    }
  }
  return dump;
}

StackSigns CountStackSigns(std::string_view prefix) {
  // The last line may be cut anywhere.
  if (const size_t end = prefix.rfind('\n'); end != std::string_view::npos && prefix.size() > 32 * 1024)
    prefix = prefix.substr(0, end);
  StackSigns signs;
  StackDump dump;
  StackLines lines(dump);
  LineReader reader(prefix);
  std::string_view line;
  while (reader.Next(&line)) {
    if (Trim(line).empty()) continue;
    switch (lines.Feed(line, {reader.number(), reader.offset()})) {
      case Reading::header: ++signs.headers; break;
      case Reading::frame: ++signs.frames; break;
      case Reading::unnamed_frame: ++signs.unnamed_frames; break;
      case Reading::known:
      case Reading::ignored: ++signs.other_known; break;
      case Reading::unknown: ++signs.unknown; break;
    }
  }
  signs.headless_stacks = lines.headless_stacks();
  return signs;
}

}  // namespace tacet
