// SPDX-License-Identifier: Apache-2.0
#include "lint/assignment_scan.h"

#include <algorithm>
#include <string>

#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr std::string_view kOurPrefixes[] = {"NCCL_",     "TORCH_",          "UCX_",           "FI_",
                                             "OFI_NCCL_", "GLOO_",           "TP_SOCKET_",     "OMP_NUM_THREADS",
                                             "CUDA_",     "COMPUTE_PROFILE", "OPENCL_PROFILE", "NSIGHT_CUDA_DEBUGGER"};
// Often written wrongly.
constexpr std::string_view kWrongPrefixes[] = {"NCLL_", "NNCL_", "NCL_", "NCC_", "NCCLL_", "CNCL_"};

bool IsUpperName(char c) { return c == '_' || (c >= 'A' && c <= 'Z') || IsDigit(c); }
bool IsWordLetter(char c) { return IsUpperName(c) || (c >= 'a' && c <= 'z'); }
bool IsQuote(char c) { return c == '"' || c == '\''; }

bool HasOurPrefix(std::string_view text) {
  const auto begins = [&](std::string_view prefix) { return text.starts_with(prefix); };
  return std::any_of(std::begin(kOurPrefixes), std::end(kOurPrefixes), begins) ||
         std::any_of(std::begin(kWrongPrefixes), std::end(kWrongPrefixes), begins);
}

struct ScannedValue {
  std::string text;
  bool known = true;
};

// 'it is', "a $B", plain up to a blank or one of ;&|)`,
ScannedValue ScanValue(std::string_view rest, bool comma_ends) {
  ScannedValue value;
  if (!rest.empty() && IsQuote(rest.front())) {
    const char quote = rest.front();
    const size_t end = rest.find(quote, 1);
    value.text = rest.substr(1, end == std::string_view::npos ? end : end - 1);
    value.known = quote == '\'' || value.text.find_first_of("$`") == std::string::npos;
    return value;
  }
  size_t n = 0;
  while (n < rest.size() && !IsSpace(rest[n]) && !Contains(";&|)`\"'", rest.substr(n, 1)) &&
         !(comma_ends && rest[n] == ',') && rest[n] != '\\')
    ++n;
  value.text = rest.substr(0, n);
  value.known = value.text.find_first_of("$({") == std::string::npos && !(n < rest.size() && rest[n] == '`');
  return value;
}

class LineScan {
 public:
  LineScan(std::vector<GivenVariable>& out, size_t most) : out_(out), most_(most) {}

  void Read(std::string_view line, uint32_t number) {
    number_ = number;
    std::string_view body = line;
    SkipBlanks(body);
    indented_ = body.size() != line.size();
    if (FinishYamlPair(body)) return;
    if (body.starts_with("#") && !body.starts_with("#SBATCH") && !body.starts_with("#PBS") &&
        !body.starts_with("#BSUB"))
      return;
    if (body.starts_with("//") || body.starts_with("--") || body.starts_with("*")) return;
    if (TakeLiteral(body, "unset ")) return Unset(body);
    any_ |= LooksLikeAssignment(body);
    for (size_t at = 0; at < body.size(); ++at) {
      if (at > 0 && IsWordLetter(body[at - 1])) continue;
      if (body[at] == '#' && at > 0 && IsSpace(body[at - 1])) break;  // a comment behind
      if (!HasOurPrefix(body.substr(at))) continue;
      size_t end = at;
      while (end < body.size() && IsUpperName(body[end])) ++end;
      if (end < body.size() && IsWordLetter(body[end])) continue;  // Mixed_Case is no variable
      ReadName(body, at, end);
      at = end;
    }
  }

  bool any() const { return any_; }

 private:
  static bool LooksLikeAssignment(std::string_view body) {
    if (TakeLiteral(body, "export ") || TakeLiteral(body, "declare -x ") || TakeLiteral(body, "ENV ")) return true;
    size_t n = 0;
    while (n < body.size() && IsWordLetter(body[n])) ++n;
    return n > 0 && n < body.size() && body[n] == '=' && body.substr(n, 2) != "==";
  }

  void ReadName(std::string_view body, size_t at, size_t end) {
    const std::string_view name = body.substr(at, end - at), before = body.substr(0, at);
    std::string_view rest = body.substr(end);
    // NAME=value, with or without export, -x, -e, env; ${NAME=...} and comparisons are none.
    if (rest.starts_with("=") && !rest.starts_with("==") && !rest.starts_with("=~") && !before.ends_with("$") &&
        !before.ends_with("{") && !before.ends_with(".")) {
      rest.remove_prefix(1);
      return Add(name, ScanValue(rest, Contains(before, "--export")));
    }
    const bool quoted = !before.empty() && IsQuote(before.back()) && rest.starts_with(before.substr(before.size() - 1));
    if (quoted) {
      rest.remove_prefix(1);
      const bool call = before.substr(0, before.size() - 1).ends_with("(");
      const bool index = before.substr(0, before.size() - 1).ends_with("[") && rest.starts_with("]");
      if (index) rest.remove_prefix(1);
      SkipBlanks(rest);
      // os.environ["NAME"] = "value", "NAME": "value", setdefault("NAME", "value")
      const bool sets = index ? TakeLiteral(rest, "=") && !rest.starts_with("=")
                              : TakeLiteral(rest, ":") || (call && SetsByCall(before) && TakeLiteral(rest, ","));
      if (!sets) return;
      SkipBlanks(rest);
      if (rest.starts_with("str(")) rest.remove_prefix(4);
      if (!rest.empty() && (IsQuote(rest.front()) || IsDigit(rest.front()) || rest.front() == '-'))
        Add(name, ScanValue(rest, true));
      return;
    }
    // YAML: "NAME: value", "- name: NAME" with "value:" in the next line; csh and Docker: "setenv NAME value".
    if (rest.starts_with(": ") && (before.empty() || before == "- ")) {
      rest.remove_prefix(2);
      SkipBlanks(rest);
      return Add(name, ScanValue(rest, false));
    }
    if (Trim(rest).empty() && (before == "- name: " || before == "name: ")) {
      yaml_name_ = name;
      yaml_left_ = 1;
    } else if (rest.starts_with(" ") && (before == "setenv " || before == "ENV ")) {
      SkipBlanks(rest);
      Add(name, ScanValue(rest, false));
    }
  }

  static bool SetsByCall(std::string_view before) {
    return before.size() > 1 && (Contains(before, "setdefault(") || Contains(before, "setenv(") ||
                                 Contains(before, "putenv(") || Contains(before, "monkeypatch."));
  }

  // value: "1"
  bool FinishYamlPair(std::string_view body) {
    if (yaml_left_ == 0) return false;
    yaml_left_ = 0;
    if (!TakeLiteral(body, "value:")) return false;
    SkipBlanks(body);
    Add(yaml_name_, ScanValue(body, false));
    return true;
  }

  void Unset(std::string_view body) {
    while (!body.empty()) {
      const std::string_view name = TakeWord(body);
      std::erase_if(out_, [&](const GivenVariable& variable) { return variable.name == name; });
      if (name.empty()) return;
    }
  }

  void Add(std::string_view name, ScannedValue value) {
    any_ = true;
    if (out_.size() >= most_) return;
    out_.push_back({std::string(name), std::move(value.text), number_, value.known, indented_});
  }

  std::vector<GivenVariable>& out_;
  size_t most_;
  uint32_t number_ = 0;
  bool indented_ = false, any_ = false;
  std::string yaml_name_;
  int yaml_left_ = 0;
};

}  // namespace

std::vector<GivenVariable> ScanAssignments(std::string_view text, size_t most, bool* any) {
  std::vector<GivenVariable> variables;
  LineScan scan(variables, most);
  LineReader lines(text);
  for (std::string_view line; lines.Next(&line);) scan.Read(line, lines.number());
  *any = scan.any();
  return variables;
}

}  // namespace tacet
