// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "evidence/format.h"

namespace tacet {

struct Detection {
  std::vector<const Format*> readers;  // who reads the file; more than one only for line logs that share a file
  std::vector<const Format*> tied;     // others that were just as sure: told to the user
  bool certain = false;                // nobody else was asked: every line is the reader's own
};

// Asks every format about the first bytes of a file. The surest wins. Line logs (Format::shares_lines) may share one
// file: a job's stdout often holds NCCL's lines and PyTorch's.
Detection Detect(std::string_view prefix, std::string_view filename);

// The format whose own every line of `text` is, or nullptr (Format::owns_all).
const Format* OwnerOfAll(std::string_view text);

// Text, as far as its beginning tells: no zero bytes, and no JSON or other file whose first bytes would have said so.
bool MayBeText(std::string_view prefix);

// For a text whose first bytes nobody knows: asks line logs about later parts of it, all of the first few MiB and
// samples of the rest, its end among them.
Detection DetectLater(std::string_view bytes, std::string_view filename);

}  // namespace tacet
