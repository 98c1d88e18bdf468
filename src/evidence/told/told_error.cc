// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_error.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/meaning/event_meaning.h"
#include "evidence/told/pasted_sentence.h"
#include "evidence/told/told_lines.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"

namespace tacet {
namespace {

struct ToldError {
  std::string type, message;  // either may be empty
  SourceRef source;
};

bool IsNamePart(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

// "... fails with a `RuntimeError` indicating missing keys"
std::string_view NameInSentence(std::string_view line) {
  if (!ContainsAny(line, {"fail", "raise", "throw", "crash", "get ", "getting ", "got ", "error"})) return {};
  for (const std::string_view end : {"Error", "Exception"})
    for (size_t at = line.find(end); at != std::string_view::npos; at = line.find(end, at + 1)) {
      size_t begin = at, close = at + end.size();
      while (begin > 0 && IsNamePart(line[begin - 1])) --begin;
      if (begin > 0 && line[begin - 1] == '/') continue;  // a part of a path or of a call: "/x.Service/PollForError:"
      if (begin == at || (close < line.size() && IsNamePart(line[close]) && line[close] != '.')) continue;
      const std::string_view name = line.substr(begin, close - begin);
      if (name[0] >= 'A' && name[0] <= 'Z' && IsErrorName(name)) return name;
    }
  return {};
}

// "... I encounter the following error:", "it crashes with this message:"
bool AnnouncesError(std::string_view line) {
  line = Trim(line);
  // Links and names of code make it no less of a sentence: four words are enough.
  return line.ends_with(':') && std::count(line.begin(), line.end(), ' ') >= 3 &&
         ContainsAny(line, {"error", "Error", "exception", "fails with", "crashes with"}) &&
         !ContainsAny(line, {"warning", "fixed", "solved", " no error", "without", "GRPC error information"});
}

// A line of a message, and not of a traceback or a logger.
bool MayBeMessage(std::string_view line) {
  line = Trim(line);
  return line.size() > 12 && !line.starts_with('[') && !line.starts_with("File \"") && !line.starts_with("```") &&
         !ContainsAny(line, {"Traceback (most recent", "INFO", "WARNING"}) && !line.starts_with("$ ");
}

ToldError FindToldError(std::string_view bytes, AroundTheLog around, const std::set<uint32_t>& read) {
  ToldError named, announced;
  bool next = false;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) {
    const SourceRef source{FileId{}, reader.number(), reader.offset()};
    const bool outside = around.Holds(line, source.line);
    if (Trim(line).empty() || Trim(line).starts_with("```")) continue;
    if (std::exchange(next, false) && announced.message.empty() && !read.contains(source.line) && MayBeMessage(line))
      announced = {"", std::string(Trim(line).substr(0, 400)), source};
    if (!outside || read.contains(source.line)) continue;
    next = AnnouncesError(line);
    // _**### RuntimeError: the file is cut short**_
    std::string_view part = LineInSentence(line);
    const size_t mark = part.find_first_not_of("_*#> `");
    if (part.data() == line.data() && mark > 0 && mark != std::string_view::npos)
      part = part.substr(mark, part.find_last_not_of("_*` \r") + 1 - mark);
    const std::string_view type = part.substr(0, part.find(':'));
    if (part.data() != line.data() && IsErrorName(type) && part.size() > type.size() + 2) {
      const std::string_view words = part.substr(type.size() + 1);
      return {std::string(type), std::string(Trim(words.substr(0, words.find('`'))).substr(0, 400)), source};
    }
    if (named.type.empty()) named = {std::string(NameInSentence(line)), "", source};
  }
  if (!announced.message.empty()) announced.type = named.type;
  return announced.message.empty() ? named : announced;
}

bool TellsAnEnd(const Event& event) {
  if (EndsOrFails(event)) return true;
  switch (event.kind) {
    case EventKind::nccl_error:
    case EventKind::watchdog_timeout:
    case EventKind::oom_kill:
    case EventKind::scheduler_kill:
    case EventKind::told_hang:
    case EventKind::progress: return true;
    default: return false;
  }
}

}  // namespace

bool EndsOrFails(const Event& event) {
  switch (event.kind) {
    case EventKind::process_exited:
    case EventKind::process_killed:
    case EventKind::abort_signal:
    case EventKind::segfault:
    case EventKind::exception:
    case EventKind::cuda_error: return true;
    default: return false;
  }
}

void AddToldError(std::string_view bytes, const AroundTheLog& around, Fragment& fragment) {
  const auto cut = std::find_if(fragment.events.begin(), fragment.events.end(), [](const Event& event) {
    return event.kind == EventKind::exception && (event.As<Raised>().type == kCutException || event.text == kCutWords);
  });
  const bool has_cut = cut != fragment.events.end();
  if (!has_cut && std::any_of(fragment.events.begin(), fragment.events.end(), TellsAnEnd)) return;
  std::set<uint32_t> read;
  for (const Event& event : fragment.events)
    if (event.kind != EventKind::unread_error) read.insert(event.source.line);
  ToldError told = FindToldError(bytes, around, read);
  if (told.type.empty() && told.message.empty()) return;
  if (!has_cut && (told.type.empty() || told.message.empty())) return;
  if (has_cut) {
    // No type has a blank in it: the words stand in the text, and their name nowhere.
    const bool named = cut->As<Raised>().type != kCutException;  // by the statement that raises it
    if (!told.type.empty() || !named) cut->Make<Raised>().type = told.type.empty() ? "an error" : told.type;
    cut->Make<Raised>().told_line = told.source.line;
    if (!told.message.empty() || !named) cut->text = told.message;
    cut->meanings = 0;
    ReadMeaning(*cut);
    return;
  }
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::exception;
  event.speaker = kNobody;
  event.source = told.source;
  event.Make<Raised>().type = std::move(told.type);
  event.text = std::move(told.message);
  event.Set(Meaning::in_prose);
  ReadMeaning(event);
}

}  // namespace tacet
