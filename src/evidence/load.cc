// SPDX-License-Identifier: Apache-2.0
#include "evidence/load.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <optional>

#include "base/decompress.h"
#include "base/json_reader.h"
#include "base/mapped_file.h"
#include "base/parallel.h"
#include "evidence/detect.h"
#include "evidence/find_files.h"
#include "evidence/layers/text_layers.h"
#include "evidence/load_archive.h"
#include "evidence/meaning/event_meaning.h"
#include "evidence/meaning/site_lines.h"
#include "evidence/meaning/zero_bytes.h"
#include "evidence/registry.h"
#include "evidence/told/told_bytes.h"
#include "evidence/told/told_words.h"

namespace tacet {
namespace {

Fragment UnreadableFragment(std::string_view shown, std::string message, std::string hint) {
  Fragment fragment;
  fragment.path = shown;
  fragment.format = "unreadable";
  fragment.Note(DiagnosticSeverity::error, "unreadable", std::move(message), {}, std::move(hint));
  return fragment;
}

// Line logs that share a file count each other's lines as ignored; together the file is understood where either did.
void JoinSharedReading(Fragment& whole, Fragment&& part) {
  Accounting& bytes = whole.bytes;
  bytes.understood = std::min(bytes.total, bytes.understood + part.bytes.understood);
  bytes.not_understood = std::min({bytes.not_understood, part.bytes.not_understood, bytes.total - bytes.understood});
  bytes.ignored = bytes.total - bytes.understood - bytes.not_understood;
  // Only text formats share files: they have events and calls, and ids are made to fit by appending.
  const auto speaker_base = static_cast<uint32_t>(whole.speakers.size());
  const auto group_base = static_cast<uint32_t>(whole.groups.size());
  for (auto& event : part.events) {
    if (event.speaker != kNobody) event.speaker += speaker_base;
    whole.events.push_back(std::move(event));
  }
  for (auto& stream : part.streams) {
    stream.speaker += speaker_base;
    for (auto& call : stream.calls) {
      if (call.group != GroupIndex::none)
        call.group = static_cast<GroupIndex>(static_cast<uint32_t>(call.group) + group_base);
      call.name = whole.strings.Intern(part.strings.Get(call.name));
      call.shape = whole.strings.Intern(part.strings.Get(call.shape));
    }
    whole.streams.push_back(std::move(stream));
  }
  for (auto& thread : part.threads) {
    thread.speaker += speaker_base;
    std::vector<Frame> frames = part.stacks.Get(thread.stack);
    for (Frame& frame : frames) {
      frame.function = whole.strings.Intern(part.strings.Get(frame.function));
      frame.file = whole.strings.Intern(part.strings.Get(frame.file));
    }
    thread.stack = whole.stacks.Intern(std::move(frames));
    whole.threads.push_back(std::move(thread));
  }
  std::move(part.benchmark_runs.begin(), part.benchmark_runs.end(), std::back_inserter(whole.benchmark_runs));
  std::move(part.training.begin(), part.training.end(), std::back_inserter(whole.training));
  std::move(part.outlines.begin(), part.outlines.end(), std::back_inserter(whole.outlines));
  for (SurvivedError& one : part.survived)
    if (one.speaker != kNobody) one.speaker += speaker_base;
  std::move(part.survived.begin(), part.survived.end(), std::back_inserter(whole.survived));
  std::move(part.speakers.begin(), part.speakers.end(), std::back_inserter(whole.speakers));
  std::move(part.groups.begin(), part.groups.end(), std::back_inserter(whole.groups));
  std::move(part.diagnostics.begin(), part.diagnostics.end(), std::back_inserter(whole.diagnostics));
  whole.format += "+" + part.format;
}

void NoteDecompression(const DecompressOutcome& outcome, uint64_t limit, Fragment& fragment) {
  if (outcome.cut)
    fragment.Note(DiagnosticSeverity::warning, "compressed-cut",
                  "the compressed file ends early; what came before was read");
  if (outcome.corrupt)
    fragment.Note(DiagnosticSeverity::warning, "compressed-corrupt",
                  "the compressed data is damaged; what came before was read");
  if (outcome.limited)
    fragment.Note(DiagnosticSeverity::warning, "too-large",
                  "decompresses to more than " + std::to_string(limit >> 20) + " MiB; only the beginning was read", {},
                  "raise the limit with --max-file-mb if the file is genuine");
  if (outcome.unread_bytes > 0 && !outcome.corrupt)
    fragment.Note(DiagnosticSeverity::note, "trailing-bytes",
                  std::to_string(outcome.unread_bytes) + " bytes after the compressed data were not read");
}

// A long log may turn into something else far below its beginning: stacks printed at the end of a job's output. Line
// logs are asked about later parts of the file too.
void AskAboutLaterParts(std::string_view path, std::string_view bytes, Detection& detection) {
  if (bytes.size() <= kPrefixBytes) return;
  if (detection.readers.empty()) detection = DetectLater(bytes, path);
  if (detection.readers.empty() || !detection.readers.front()->shares_lines) return;
  constexpr size_t kParts = 4;
  for (size_t part = 1; part <= kParts; ++part) {
    size_t from = part == kParts ? bytes.size() - kPrefixBytes : bytes.size() / kParts * part;
    const size_t newline = bytes.find('\n', from);
    if (newline == std::string_view::npos) continue;
    const std::string_view window = bytes.substr(newline + 1, kPrefixBytes);
    const auto reads = [&](const Format* format) {
      return std::count(detection.readers.begin(), detection.readers.end(), format) > 0;
    };
    if (reads(OwnerOfAll(window))) continue;
    for (const Format* format : AllFormats()) {
      if (!format->shares_lines || reads(format)) continue;
      if (format->recognise(window, path) != Recognition::no) detection.readers.push_back(format);
    }
  }
}

bool IsNestedTooDeep(std::string_view prefix) {
  if (prefix.empty() || (prefix[0] != '[' && prefix[0] != '{')) return false;
  JsonReader reader(prefix);
  JsonReader::Token token = reader.Next();
  while (token != JsonReader::Token::end && token != JsonReader::Token::error) token = reader.Next();
  return token == JsonReader::Token::error && reader.depth() >= JsonReader::kMaxDepth;
}

// Says why, so that the reader of the report knows whether to look further.
void NoteUnknown(std::string_view bytes, Fragment& fragment) {
  if (bytes.empty())
    fragment.Note(DiagnosticSeverity::note, "empty-file", "the file is empty");
  else if (IsAllZeros(bytes))
    fragment.Note(DiagnosticSeverity::warning, "zero-filled",
                  "contains only zero bytes: never written, or lost when its node went down", {},
                  "look for another copy of it");
  else if (IsNestedTooDeep(bytes.substr(0, kPrefixBytes)))
    fragment.Note(DiagnosticSeverity::warning, "nested-too-deep",
                  "JSON nested more than " + std::to_string(JsonReader::kMaxDepth) + " deep, which no known format is",
                  {}, "check what wrote it");
  else
    fragment.Note(DiagnosticSeverity::note, "unknown-format", "no known format; `tacet formats` lists what is read");
}

// A store may keep lines that a runtime wrapped before it; more layers than these were made to hurt.
constexpr int kMostLayers = 3;

Fragment ReadPlain(std::string_view path, std::string_view bytes, bool cut, bool mapped, int layer = 0);

// Of a file whose text has to be copied out of something else.
constexpr size_t kMostText = size_t{512} << 20;

// Nobody knew the file as it is; without its zero bytes somebody may.
std::optional<Fragment> ReadBesidesZeros(std::string_view path, std::string_view bytes, bool cut) {
  if (!HasZeros(bytes.substr(0, kPrefixBytes))) return std::nullopt;
  const std::string peek = PeekBesidesZeros(bytes, kPrefixBytes);
  if (peek.empty() || Detect(peek, path).readers.empty()) return std::nullopt;
  const TextWithZeros without = TakeOutZeros(bytes, kMostText);
  Fragment fragment = ReadPlain(path, without.text, cut || without.ends_in_zeros || without.limited, false);
  fragment.bytes.total += without.left_out;
  fragment.bytes.ignored += without.left_out;
  fragment.Note(DiagnosticSeverity::warning, "zero-bytes",
                without.left_out == 1 ? "1 zero byte in the text was ignored"
                                      : std::to_string(without.left_out) + " zero bytes in the text were ignored",
                {},
                without.ends_in_zeros ? "the node may have gone down while this was written: the last lines are lost"
                                      : "the log was truncated while its writer continued (logrotate's copytruncate): "
                                        "the older part is in another file");
  return fragment;
}

// The lines of a log without what a collector, a web page or a mail put around them.
std::optional<Fragment> ReadUnwrapped(std::string_view path, std::string_view bytes, bool cut, int layer) {
  const std::optional<TextLayer> inner = TakeOffLayer(bytes, kMostText);
  if (!inner) return std::nullopt;
  const std::string_view beginning = std::string_view(inner->text).substr(0, kPrefixBytes);
  if (Detect(beginning, path).readers.empty() && !HasLayer(beginning)) return std::nullopt;
  Fragment fragment = ReadPlain(path, inner->text, cut || inner->limited, false, layer + 1);
  CiteOuterText(bytes, fragment);
  // The file's own bytes are shared out as those of its lines are.
  const double share = static_cast<double>(bytes.size()) / static_cast<double>(std::max<size_t>(1, inner->text.size()));
  Accounting& sizes = fragment.bytes;
  sizes.understood =
      std::min<uint64_t>(bytes.size(), static_cast<uint64_t>(share * static_cast<double>(sizes.understood)));
  sizes.not_understood = std::min<uint64_t>(bytes.size() - sizes.understood,
                                            static_cast<uint64_t>(share * static_cast<double>(sizes.not_understood)));
  sizes.total = bytes.size();
  sizes.ignored = sizes.total - sizes.understood - sizes.not_understood;
  fragment.Note(DiagnosticSeverity::note, "unwrapped", inner->done);
  return fragment;
}

Fragment ReadPlain(std::string_view path, std::string_view bytes, bool cut, bool mapped, int layer) {
  Fragment fragment;
  Detection detection = Detect(bytes.substr(0, kPrefixBytes), path);
  const auto shares = [](const Format* format) { return format->shares_lines; };
  if (layer < kMostLayers && !detection.certain &&
      std::all_of(detection.readers.begin(), detection.readers.end(), shares))
    if (auto unwrapped = ReadUnwrapped(path, bytes, cut, layer)) return std::move(*unwrapped);
  AskAboutLaterParts(path, bytes, detection);
  if (detection.readers.empty()) {
    if (auto without = ReadBesidesZeros(path, bytes, cut)) return std::move(*without);
    fragment.format = bytes.empty() ? "empty" : "unknown";
    fragment.bytes = {bytes.size(), 0, 0, bytes.size()};
    NoteUnknown(bytes, fragment);
    fragment.path = path;
    return fragment;
  }
  // What only the first reader may bring (set-ups, channels, hardware) is NCCL's log: readers go in the registry's
  // order, whichever part of the file made them known.
  const auto formats = AllFormats();
  std::stable_sort(detection.readers.begin(), detection.readers.end(), [&](const Format* a, const Format* b) {
    return std::find(formats.begin(), formats.end(), a) < std::find(formats.begin(), formats.end(), b);
  });
  bool first = true;
  for (const Format* format : detection.readers) {
    Fragment part;
    part.bytes.total = bytes.size();
    part.format = format->name;
    // Pages are only given back by a reader that is alone with the file.
    format->read({path, bytes, cut, mapped && detection.readers.size() == 1}, part);
    part.path = path;
    part.format = format->name;
    if (first) {
      fragment = std::move(part);
    } else {
      JoinSharedReading(fragment, std::move(part));
    }
    first = false;
  }
  for (Event& event : fragment.events) ReadMeaning(event);
  if (!detection.tied.empty()) {
    std::string names;
    for (const Format* format : detection.tied) names += (names.empty() ? "" : ", ") + std::string(format->name);
    fragment.Note(DiagnosticSeverity::warning, "ambiguous-format",
                  "read as " + fragment.format + ", but could also be " + names);
  }
  return fragment;
}

std::vector<std::string> MissingPaths(const std::vector<std::string>& paths) {
  std::vector<std::string> missing;
  struct stat unused {};
  for (const std::string& path : paths)
    if (::stat(path.c_str(), &unused) != 0 && (errno == ENOENT || errno == ENOTDIR)) missing.push_back(path);
  return missing;
}

// No format knows the file, and its sentences still told something.
void TellFreeText(Fragment& fragment) {
  if (fragment.format != "unknown" || fragment.events.empty()) return;
  for (Diagnostic& diagnostic : fragment.diagnostics)
    if (diagnostic.code == "unknown-format")
      diagnostic.message = "not a known format; searched for error messages and for what its sentences say";
}

// `mapped`: the bytes are a read-only mapping of the file, never memory of our own.
Fragment ReadBytes(std::string_view path, std::string_view bytes, bool mapped, const LoadOptions& options,
                   bool cut = false) {
  const Compression compression = DetectCompression(bytes);
  if (compression == Compression::none) {
    Fragment plain = ReadPlain(path, bytes, cut, mapped);
    const size_t read = plain.events.size();
    AddSiteMessages(bytes, plain);
    AddToldWords(bytes, plain);
    CountToldLines(bytes, read, plain);
    TellFreeText(plain);
    return plain;
  }
  // Look before unpacking: an unknown format is not worth the memory.
  std::string text;
  Decompress(bytes, compression, kPrefixBytes, [&](std::string_view chunk) {
    text.append(chunk);
    return text.size() < kPrefixBytes;
  });
  const Detection detection = Detect(text, path);
  Fragment fragment;
  if (detection.readers.empty() && !text.empty() && (text.size() < kPrefixBytes || !MayBeText(text))) {
    fragment.format = "unknown";
    fragment.path = path;
    fragment.bytes = {bytes.size(), 0, 0, bytes.size()};
    fragment.Note(DiagnosticSeverity::note, "unknown-format", "no known format inside the compressed file");
    AddSiteMessages(text, fragment);
    AddToldWords(text, fragment);
    return fragment;
  }
  if (detection.readers.size() == 1 && detection.readers.front()->read_stream) {
    fragment.format = detection.readers.front()->name;
    detection.readers.front()->read_stream({path, bytes, false, mapped}, fragment);
    fragment.path = path;
    return fragment;
  }
  text.clear();
  const DecompressOutcome outcome = DecompressAll(bytes, compression, options.max_file_bytes, &text);
  fragment = ReadPlain(path, text, outcome.cut || outcome.corrupt || outcome.limited, false);
  AddSiteMessages(text, fragment);
  AddToldWords(text, fragment);
  for (Diagnostic& diagnostic : fragment.diagnostics)
    if (text.empty() && diagnostic.code == "empty-file") diagnostic.message = "nothing could be unpacked";
  NoteDecompression(outcome, options.max_file_bytes, fragment);
  return fragment;
}

void NoteFile(const MappedFile& file, Fragment& fragment) {
  if (file.hole_bytes() > 0)
    fragment.Note(
        DiagnosticSeverity::warning, "holes",
        std::to_string(file.hole_bytes() >> 20) + " MiB of the file were never written; they were ignored", {},
        "its writer continued at its old position after the file was truncated: the older part is in another file");
  if (file.Shrunk())
    fragment.Note(DiagnosticSeverity::warning, "file-shrank",
                  "the file became shorter while it was read; what came before was read", {},
                  "something rewrites it (logrotate's copytruncate, an editor): read a copy of it");
}

// A file, or all files of an archive.
void ReadAny(std::string_view path, std::string_view bytes, bool mapped, const LoadOptions& options,
             std::vector<Fragment>& out) {
  const ArchiveKind kind = DetectArchive(bytes);
  if (kind == ArchiveKind::none) {
    out.push_back(ReadBytes(path, bytes, mapped, options));
    return;
  }
  const MemberReader read = [](const ArchivedFile& file, const LoadOptions& limits) {
    return ReadBytes(file.path, file.bytes, false, limits, file.cut);
  };
  ReadArchive(path, bytes, kind, options, read, out);
}

}  // namespace

Result<std::string> ReadStandardInput(uint64_t limit) {
  std::string bytes;
  char buffer[1 << 16];
  while (bytes.size() < limit) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{"standard input cannot be read", ""};
    if (got == 0) break;
    bytes.append(buffer, static_cast<size_t>(got));
  }
  return bytes;
}

Fragment ReadFragment(std::string_view path, std::string_view bytes, const LoadOptions& options) {
  return ReadBytes(path, bytes, false, options);
}

Result<Loaded> LoadEvidence(const std::vector<std::string>& paths, const LoadOptions& options) {
  Loaded loaded;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    if (path != "-") {
      names.push_back(path);
      continue;
    }
    auto input = ReadStandardInput(options.max_file_bytes);
    if (!input) return input.error();
    ReadAny("<stdin>", *input, false, options, loaded.fragments);
  }
  loaded.missing = MissingPaths(names);
  if (!loaded.missing.empty() && loaded.missing.size() == paths.size())
    return Error{"'" + loaded.missing.front() + "': " + std::string(kNoSuchPath),
                 "name a file or a folder of logs and dumps, or '-' for standard input"};
  const std::vector<FoundFile> files = FindFiles(names);
  std::vector<std::vector<Fragment>> read(files.size());
  std::atomic<size_t> done{0}, unreadable{0};
  // Either the files share the cores, or those of the one archive do.
  LoadOptions for_each = options;
  if (files.size() > 1) for_each.threads = 1;
  ParallelFor(files.size(), options.threads, [&](size_t i) {
    if (!files[i].problem.empty()) {
      read[i].push_back(UnreadableFragment(files[i].shown, files[i].problem, files[i].hint));
      ++unreadable;
    } else if (auto file = MappedFile::Open(files[i].path); !file) {
      read[i].push_back(UnreadableFragment(files[i].shown, file.error().message, file.error().hint));
      ++unreadable;
    } else {
      ReadAny(files[i].shown, file->bytes(), file->mapped(), for_each, read[i]);
      for (Fragment& fragment : read[i])
        if (fragment.modified_wall_ns == kNoTime) fragment.modified_wall_ns = file->modified_wall_ns();
      if (!read[i].empty()) NoteFile(*file, read[i].back());
    }
    const size_t now = ++done;
    if (options.progress) options.progress(now, files.size());
  });
  const auto from = static_cast<std::ptrdiff_t>(loaded.fragments.size());
  for (std::vector<Fragment>& part : read) std::move(part.begin(), part.end(), std::back_inserter(loaded.fragments));
  // Archives have orders of their own.
  const auto by_path = [](const Fragment& a, const Fragment& b) { return a.path < b.path; };
  if (!std::is_sorted(loaded.fragments.begin() + from, loaded.fragments.end(), by_path))
    std::stable_sort(loaded.fragments.begin() + from, loaded.fragments.end(), by_path);
  loaded.unreadable = unreadable;
  return loaded;
}

}  // namespace tacet
