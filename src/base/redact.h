// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// A text without its secrets, and which kinds were taken out ("Hugging Face token", "password"), each once.
struct RedactedText {
  std::string text;
  std::vector<std::string_view> kinds;
};

// Takes secrets out of a text that is about to leave this machine: what a name says is one (password=...,
// WANDB_API_KEY:
// ..., --hf-token ..., Authorization: Bearer ...), and what has the shape of one (hf_..., AKIA..., a private key, a URL
// with a password). What stands in its place names the kind: "[redacted: password]". Everything else stays as it is:
// hashes, ids of commits and communicators, UUIDs and bus ids are no secrets.
RedactedText RedactSecrets(std::string_view text);

}  // namespace tacet
