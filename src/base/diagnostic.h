// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/source_ref.h"

namespace tacet {

enum class DiagnosticSeverity { note, warning, error };

// One piece of evidence that could not be used, or only in part. Never fatal: counted, shown, and the reading goes on.
struct Diagnostic {
  DiagnosticSeverity severity = DiagnosticSeverity::warning;
  std::string code;     // stable, kebab-case: "truncated", "stub-dump", "line-too-long"
  std::string message;  // one sentence
  SourceRef source;
  std::string hint;  // what to do, may be empty
};

}  // namespace tacet
