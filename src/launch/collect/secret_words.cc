// SPDX-License-Identifier: Apache-2.0
#include "launch/collect/secret_words.h"

#include "base/redact.h"

namespace tacet {

std::string HideSecret(std::string_view name, std::string_view value) {
  const std::string head = std::string(name) + "=";
  const std::string text = RedactSecrets(head + std::string(value)).text;
  return text.starts_with(head) ? text.substr(head.size()) : text;
}

std::vector<std::string> HideSecretsInCommand(const std::vector<std::string>& command) {
  std::vector<std::string> hidden;
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    const bool has_value = word.starts_with("-") && word.find('=') == std::string::npos && i + 1 < command.size() &&
                           !command[i + 1].starts_with("-");
    if (has_value) {
      const std::string head = word + " ";
      const std::string both = RedactSecrets(head + command[i + 1]).text;
      if (both.starts_with(head) && both != head + command[i + 1]) {
        hidden.push_back(word);
        hidden.push_back(both.substr(head.size()));
        ++i;
        continue;
      }
    }
    hidden.push_back(RedactSecrets(word).text);
  }
  return hidden;
}

}  // namespace tacet
