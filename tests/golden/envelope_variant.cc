// SPDX-License-Identifier: Apache-2.0
#include "envelope_variant.h"

#include "base/json_writer.h"

namespace tacet {
namespace {

using Files = std::vector<RecordedFile>;
constexpr std::string_view kStamp = "2026-11-15T00:20:00.123456789Z";
constexpr std::string_view kMicros = "1794700800123456";

// Text as a JSON string.
std::string Quoted(std::string_view text) {
  std::string out;
  JsonWriter::AppendQuoted(out, text);
  return out;
}

std::string InDocker(std::string_view line, bool) {
  return "{\"log\":" + Quoted(std::string(line) + "\n") + ",\"stream\":\"stderr\",\"time\":\"" + std::string(kStamp) +
         "\"}\n";
}

std::string InCri(std::string_view line, bool) {
  const std::string head = std::string(kStamp) + " stdout ";
  if (line.size() < 100) return head + "F " + std::string(line) + "\n";
  return head + "P " + std::string(line.substr(0, 60)) + "\n" + head + "F " + std::string(line.substr(60)) + "\n";
}

std::string InJournal(std::string_view line, bool kernel) {
  return std::string("{\"_HOSTNAME\":\"vm\",\"_TRANSPORT\":\"") + (kernel ? "kernel" : "stdout") +
         "\",\"__REALTIME_TIMESTAMP\":\"" + std::string(kMicros) + "\",\"MESSAGE\":" + Quoted(line) + "}\n";
}

std::string InExport(std::string_view line, bool kernel) {
  std::string entry = "__CURSOR=s=1;i=1\n__REALTIME_TIMESTAMP=" + std::string(kMicros) + "\n_HOSTNAME=vm\n_TRANSPORT=";
  entry += kernel ? "kernel\n" : "stdout\n";
  const bool binary = line.find_first_not_of("\t\n") != std::string_view::npos && line.find('\x1b') != line.npos;
  if (!binary) return entry + "MESSAGE=" + std::string(line) + "\n\n";
  const uint64_t size = line.size();
  entry += "MESSAGE\n";
  entry.append(reinterpret_cast<const char*>(&size), 8);
  return entry + std::string(line) + "\n\n";
}

// A journal strips the kernel's own stamp.
std::string_view WithoutStamp(std::string_view line) {
  if (!line.starts_with('[')) return line;
  const size_t end = line.find("] ");
  return end == std::string_view::npos || end > 40 ? line : line.substr(end + 2);
}

Variant Wrapped(std::string name, bool kernel_too, std::string (*wrap)(std::string_view, bool)) {
  const auto make = [kernel_too, wrap](const Files& files, IncidentTruth&) -> std::optional<Files> {
    Files out = files;
    for (RecordedFile& file : out) {
      const FileKind kind = KindOf(file.path);
      const bool kernel = kind == FileKind::kernel_log;
      if (kind != FileKind::nccl_log && kind != FileKind::output && !(kernel && kernel_too)) continue;
      std::string text;
      std::string_view rest = file.bytes;
      while (!rest.empty()) {
        const size_t end = rest.find('\n');
        const std::string_view line = rest.substr(0, end);
        text += wrap(kernel ? WithoutStamp(line) : line, kernel);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      }
      file.bytes = std::move(text);
    }
    return out;
  };
  return {std::move(name), true, make, {}};
}

}  // namespace

std::vector<Variant> EnvelopeVariants() {
  return {Wrapped("Docker's JSON log", false, InDocker), Wrapped("CRI log, long lines in two parts", false, InCri),
          Wrapped("journalctl -o json", true, InJournal), Wrapped("journalctl -o export", true, InExport)};
}

}  // namespace tacet
