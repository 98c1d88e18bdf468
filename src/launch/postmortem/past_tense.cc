// SPDX-License-Identifier: Apache-2.0
#include "launch/postmortem/past_tense.h"

#include <algorithm>
#include <array>

namespace tacet {
namespace {

struct Verb {
  std::string_view present, past, next;  // next: the word that must follow; empty for any
};
constexpr std::array kVerbs = {
    Verb{"is", "was", ""},         Verb{"are", "were", ""},        Verb{"has", "had", ""},
    Verb{"have", "had", ""},       Verb{"waits", "waited", "for"}, Verb{"waits", "waited", "in"},
    Verb{"wait", "waited", "for"}, Verb{"wait", "waited", "in"},   Verb{"does", "did", "not"},
    Verb{"do", "did", "not"},      Verb{"raises", "raised", "an"}, Verb{"expects", "expected", ""},
    Verb{"hangs", "hung", ""},     Verb{"makes", "made", "no"},
};

// What the files show is as true today as it was then.
bool IsOfEvidence(std::string_view clause) {
  for (const std::string_view word : {"evidence", "the log ", "these files", "the text ", "the traceback "})
    if (clause.find(word) != std::string_view::npos) return true;
  return false;
}

std::string_view PastOf(std::string_view word, std::string_view next) {
  const auto verb = std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& one) {
    return one.present == word && (one.next.empty() || one.next == next) && !next.starts_with('(');
  });
  return verb == kVerbs.end() ? std::string_view() : verb->past;
}

void AddClause(std::string_view clause, std::string& out) {
  if (IsOfEvidence(clause)) {
    out += clause;
    return;
  }
  int depth = 0;
  bool quoted = false;
  while (!clause.empty()) {
    const size_t end = std::min(clause.find(' '), clause.size());
    const std::string_view word = clause.substr(0, end);
    const std::string_view rest = clause.substr(std::min(end + 1, clause.size()));
    const bool opens = word.starts_with('\'') || word.starts_with('`');
    quoted |= opens;
    std::string_view past = depth == 0 && !quoted ? PastOf(word, rest.substr(0, rest.find(' '))) : "";
    if (rest.empty() && word == "wait" && out.ends_with("and the others ")) past = "waited";
    out += past.empty() ? word : past;
    for (const char c : word) depth += (c == '(') - (c == ')');
    if (quoted && word.size() > (opens ? 1U : 0U) && word.find_last_of("'`") != std::string_view::npos &&
        word.find_last_of("'`") + 3 > word.size() && (!opens || word.find_last_of("'`") > 0))
      quoted = false;
    if (end < clause.size()) out += ' ';
    clause = rest;
  }
}

}  // namespace

std::string InPastTense(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t at = std::min(text.find("; "), text.find(". "));
    const size_t end = at == std::string_view::npos ? text.size() : at + 2;
    AddClause(text.substr(0, end), out);
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace tacet
