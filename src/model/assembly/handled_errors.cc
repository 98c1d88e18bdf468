// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/handled_errors.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace tacet {
namespace {

bool TellsOfABadEnd(const Event& event) {
  switch (event.kind) {
    case EventKind::process_exited: return event.As<ProcessEnd>().code != 0;
    case EventKind::process_killed:
    case EventKind::abort_signal:
    case EventKind::watchdog_timeout:
    case EventKind::connection_lost: return true;
    default: return false;
  }
}

// What each process prints of its own: lines with its mark, and those without one in files that it alone writes.
class OwnOutput {
 public:
  explicit OwnOutput(const Incident& incident) {
    std::map<FileId, const Process*> writers;  // null: several
    for (const Process& process : incident.processes)
      for (const FileId file : process.files)
        if (const auto [known, is_new] = writers.emplace(file, &process); !is_new && known->second != &process)
          known->second = nullptr;
    for (const LogOutline& outline : incident.outlines)
      for (const OwnLine& line : outline.own_lines) {
        if (line.rank >= 0)
          of_rank_[line.rank].push_back(&line);
        else if (writers[line.source.file] != nullptr)
          of_file_[line.source.file].push_back(&line);
      }
  }

  // Behind the event in the same file, or in another output of its process.
  size_t LinesBeside(const Event& event, const Process& process) const {
    size_t count = 0;
    const auto add = [&](const auto& lines, const auto& key) {
      const auto found = lines.find(key);
      if (found == lines.end()) return;
      for (const OwnLine* line : found->second)
        count += line->source.file != event.source.file || line->source.line > event.source.line;
    };
    if (event.rank.known()) add(of_rank_, event.rank.value);
    for (const FileId file : process.files) add(of_file_, file);
    return count;
  }

  // Of each rank that prints in the file of an event that no line ascribes to anybody, the fewest behind it.
  size_t LinesOfAllBehind(const Event& event) const {
    size_t fewest = SIZE_MAX;
    for (const auto& [rank, lines] : of_rank_)
      fewest = std::min(fewest, static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [&](const OwnLine* line) {
                          return line->source.file == event.source.file && line->source.line > event.source.line;
                        })));
    return of_rank_.empty() ? 0 : fewest;
  }

 private:
  std::map<int32_t, std::vector<const OwnLine*>> of_rank_;
  std::map<FileId, std::vector<const OwnLine*>> of_file_;
};

bool IsCaughtThere(const Event& event) { return event.kind == EventKind::exception && event.As<Raised>().caught_there; }

// The function that raised it printed it as well, and the process went on.
void ForgivePrintedErrors(Incident& incident) {
  constexpr size_t kFewestLines = 2;
  const OwnOutput output(incident);
  std::vector<Raised> caught;
  for (const Event& event : incident.events)
    if (IsCaughtThere(event) && event.speaker < incident.processes.size() &&
        output.LinesBeside(event, incident.processes[event.speaker]) >= kFewestLines)
      caught.push_back(event.As<Raised>());
  std::erase_if(incident.events, [&](const Event& event) {
    if (!IsCaughtThere(event)) return false;
    // What one process catches there, another one with the same program does, too.
    const bool by_all = event.speaker >= incident.processes.size() && !event.rank.known() &&
                        output.LinesOfAllBehind(event) >= kFewestLines;
    if (!by_all && std::none_of(caught.begin(), caught.end(), [&](const Raised& one) {
          return one.type == event.As<Raised>().type && one.place == event.As<Raised>().place;
        }))
      return false;
    incident.diagnostics.push_back(
        {DiagnosticSeverity::note, "exception-survived",
         event.As<Raised>().type + " was printed where it was raised, and the process continued", event.source, ""});
    return true;
  });
}

// The main thread of a process is in the program's own code again, in a stack that stands behind the error in the same
// file: an exception that nobody caught would have ended it. Not one that a timer wrote: those are often kept in files
// of their own, and put behind the output when files are joined.
bool RunsOnBehind(const Incident& incident, const Event& event) {
  return std::any_of(incident.threads.begin(), incident.threads.end(), [&](const ThreadStack& thread) {
    if (thread.speaker != event.speaker || !thread.is_main || thread.timer_s >= 0 ||
        thread.source.file != event.source.file || thread.source.line <= event.source.line)
      return false;
    const std::vector<Frame>& frames = incident.stacks.Get(thread.stack);
    if (frames.size() < 2 || incident.strings.Get(frames.back().function) != "<module>") return false;
    // Python calls these at its end, from wherever it is.
    return std::none_of(frames.begin(), frames.end(), [&](const Frame& frame) {
      const std::string_view function = incident.strings.Get(frame.function);
      return function == "_shutdown" || function == "_run_exitfuncs" || function.ends_with("excepthook");
    });
  });
}

void SurviveErrorsBeforeStacks(Incident& incident) {
  constexpr size_t kMostOfWords = 200;
  if (incident.threads.empty()) return;
  const size_t before = incident.survived.size();
  for (const Event& event : incident.events)
    if (event.kind == EventKind::exception && event.speaker < incident.processes.size() &&
        RunsOnBehind(incident, event)) {
      const auto& raised = event.As<Raised>();
      incident.survived.push_back({raised,
                                   event.text.substr(0, std::min(event.text.find_first_of("\n;"), kMostOfWords)),
                                   event.source, event.speaker});
      incident.diagnostics.push_back({DiagnosticSeverity::note, "exception-survived",
                                      raised.type + " was printed, and a later stack shows the process at work",
                                      event.source, ""});
    }
  // Another file may hold a copy of the same output, without the stacks.
  std::erase_if(incident.events, [&](const Event& event) {
    return event.kind == EventKind::exception &&
           std::any_of(incident.survived.begin() + static_cast<std::ptrdiff_t>(before), incident.survived.end(),
                       [&](const SurvivedError& one) {
                         return one.speaker == event.speaker && one.raised.type == event.As<Raised>().type &&
                                one.raised.place == event.As<Raised>().place;
                       });
  });
}

}  // namespace

void ForgiveHandledErrors(Incident& incident) {
  SurviveErrorsBeforeStacks(incident);
  if (std::any_of(incident.events.begin(), incident.events.end(), TellsOfABadEnd)) return;
  if (std::any_of(incident.events.begin(), incident.events.end(), IsCaughtThere)) ForgivePrintedErrors(incident);
  if (incident.survived.empty()) return;
  std::erase_if(incident.events, [&](const Event& event) {
    if (event.kind != EventKind::exception) return false;
    const auto& raised = event.As<Raised>();
    const bool survived =
        std::any_of(incident.survived.begin(), incident.survived.end(), [&](const SurvivedError& one) {
          const Raised& other = one.raised;
          return other.type == raised.type && other.place == raised.place && !raised.place.file.empty();
        });
    if (survived)
      incident.diagnostics.push_back({DiagnosticSeverity::note, "exception-survived",
                                      raised.type + " was printed, and another rank continued after the same one",
                                      event.source, ""});
    return survived;
  });
}

}  // namespace tacet
