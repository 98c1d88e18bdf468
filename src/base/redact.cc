// SPDX-License-Identifier: Apache-2.0
#include "base/redact.h"

#include <algorithm>
#include <optional>

#include "base/redact_span.h"

namespace tacet {
namespace {

// Everything that can begin or introduce a secret begins with one of these; the rest of a long log is passed over.
bool MayBegin(std::string_view text, size_t at) {
  const char c = text[at];
  if (c == '=' || c == ':' || c == ' ' || c == '-') return true;
  return IsTokenCharacter(c) && (at == 0 || !IsTokenCharacter(text[at - 1]));
}

}  // namespace

RedactedText RedactSecrets(std::string_view text) {
  RedactedText out;
  size_t copied = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!MayBegin(text, at)) continue;
    std::optional<SecretSpan> found = FindNamedSecret(text, at);
    if (!found) found = FindSecretShape(text, at);
    if (!found || found->begin < copied || found->end <= found->begin) continue;
    out.text.append(text.substr(copied, found->begin - copied));
    out.text.append("[redacted: ").append(found->kind).append("]");
    copied = found->end;
    at = copied - 1;
    if (std::find(out.kinds.begin(), out.kinds.end(), found->kind) == out.kinds.end()) out.kinds.push_back(found->kind);
  }
  out.text.append(text.substr(copied));
  return out;
}

}  // namespace tacet
