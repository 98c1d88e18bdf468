// SPDX-License-Identifier: Apache-2.0
#include "launch/collect/bundle_entry.h"

#include <algorithm>
#include <optional>

#include "base/decompress.h"
#include "base/redact.h"
#include "base/redact_span.h"
#include "base/text_scan.h"
#include "base/utf8.h"

namespace tacet {
namespace {

void CountKinds(std::string_view text, std::map<std::string, uint64_t>& counts) {
  constexpr std::string_view kMark = "[redacted: ";
  for (size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at + 1)) {
    const std::string_view rest = text.substr(at + kMark.size(), 80);
    if (rest.find(']') != std::string_view::npos) ++counts[std::string(rest.substr(0, rest.find(']')))];
  }
}

// Of the same length, so that lengths and offsets in the file stay true.
void Overwrite(BundleEntry& entry) {
  const std::string text = entry.bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool begins = IsTokenCharacter(c) && (at == 0 || !IsTokenCharacter(text[at - 1]));
    // In records a name and its value may stand side by side without a blank: "X\x04\x00hf_...".
    const bool introduces = c == '=' || c == ':' || c == ' ' || c == '-';
    if (!begins && !introduces) continue;
    std::optional<SecretSpan> found = FindNamedSecret(text, at);
    if (!found) found = FindSecretShape(text, at);
    if (!found || found->end <= found->begin || found->end > text.size()) continue;
    std::fill(entry.bytes.begin() + static_cast<long>(found->begin),
              entry.bytes.begin() + static_cast<long>(found->end), '*');
    ++entry.redacted[std::string(found->kind)];
    at = std::max(at, found->end - 1);
  }
}

// One part of a path.
void AppendSafely(std::string_view part, bool keep_percent, std::string& safe) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (size_t i = 0; i < part.size();) {
    const auto first = static_cast<unsigned char>(part[i]);
    const size_t length = Utf8SequenceLength(part, i);
    // A folder that begins with a dot is passed over by readers, and a dash begins an option.
    const bool leading = i == 0 && (first == '-' || first == '.');
    const bool special = std::string_view("\\\"'`$%*?<>|:;&").find(part[i]) != std::string_view::npos;
    const bool plain = first >= 0x20 && first != 0x7f && !leading && (!special || (first == '%' && keep_percent)) &&
                       length > 0 && InvisibleCharacter(part, i, length) == 0;
    for (const char c : part.substr(i, std::max<size_t>(length, 1))) {
      if (plain) {
        safe += c;
        continue;
      }
      safe += '%';
      safe += kDigits[static_cast<unsigned char>(c) >> 4];
      safe += kDigits[static_cast<unsigned char>(c) & 15];
    }
    i += std::max<size_t>(length, 1);
  }
}

std::string WithoutSuffix(const std::string& name) {
  for (const std::string_view suffix : {".gz", ".zst", ".zstd"})
    if (name.ends_with(suffix) && name.size() > suffix.size()) return name.substr(0, name.size() - suffix.size());
  return name + ".unpacked";
}

}  // namespace

std::string SafeName(std::string_view path, bool keep_percent) {
  std::string safe;
  while (!path.empty()) {
    const std::string_view part = TakeUntil(path, '/');
    if (!path.empty()) path.remove_prefix(1);
    if (part.empty() || part == ".") continue;
    if (!safe.empty()) safe += '/';
    if (part == "..")
      safe += "%2E%2E";
    else
      AppendSafely(part, keep_percent, safe);
  }
  return safe.empty() ? "unnamed" : safe;
}

bool IsBinaryText(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, 1 << 16);
  return head.find('\0') != std::string_view::npos || (head.size() > 1 && static_cast<unsigned char>(head[0]) == 0x80);
}

void CutText(BundleEntry& entry, uint64_t most_bytes) {
  if (entry.bytes.size() <= most_bytes) return;
  if (IsBinaryText(entry.bytes)) {
    entry.bytes.resize(static_cast<size_t>(most_bytes));
    entry.changed = "cut: only the first " + std::to_string(most_bytes) + " bytes";
    return;
  }
  // How a run began fits into little; how it ended is why it is read.
  const auto front = static_cast<size_t>(most_bytes / 4), back = static_cast<size_t>(most_bytes - most_bytes / 4);
  const size_t left_out = entry.bytes.size() - front - back;
  entry.bytes = entry.bytes.substr(0, front) + "\n[" + std::to_string(left_out) +
                " bytes left out by tacet collect]\n" + entry.bytes.substr(entry.bytes.size() - back);
  entry.changed = "cut: " + std::to_string(left_out) + " bytes in the middle left out";
}

void CleanEntry(BundleEntry& entry, uint64_t most_bytes) {
  if (const Compression kind = DetectCompression(entry.bytes); kind != Compression::none) {
    std::string plain;
    const DecompressOutcome outcome = DecompressAll(entry.bytes, kind, most_bytes, &plain);
    entry.bytes = std::move(plain);
    entry.name = WithoutSuffix(entry.name);
    entry.changed = outcome.limited ? "unpacked, and cut at " + std::to_string(most_bytes) + " bytes" : "unpacked";
  }
  if (IsBinaryText(entry.bytes)) return Overwrite(entry);
  std::map<std::string, uint64_t> before;
  CountKinds(entry.bytes, before);
  RedactedText redacted = RedactSecrets(entry.bytes);
  if (redacted.kinds.empty()) return;
  entry.bytes = std::move(redacted.text);
  std::map<std::string, uint64_t> after;
  CountKinds(entry.bytes, after);
  for (auto& [kind, count] : after)
    if (count > before[kind]) entry.redacted[kind] += count - before[kind];
}

}  // namespace tacet
