// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_named_numbers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostNumbers = 256;  // of one line

bool IsAlphabetic(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsWordChar(char c) { return IsAlphabetic(c) || IsDigit(c) || c == '_'; }
char Small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameSmall(std::string_view text, std::string_view small) {
  return text.size() == small.size() &&
         std::equal(text.begin(), text.end(), small.begin(), [](char a, char b) { return Small(a) == b; });
}
bool IsNamed(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view one) { return SameSmall(word, one); });
}

bool IsUnitOfTime(std::string_view word) {
  return IsNamed(word, {"s", "ms", "us", "ns", "sec", "secs", "second", "seconds", "msec", "min", "mins", "minutes"});
}

// "nan", "inf", "Infinity": 0 where it is none.
size_t LengthOfNonFinite(std::string_view text, double* value) {
  size_t length = 0;
  while (length < text.size() && IsWordChar(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  if (SameSmall(word, "nan"))
    *value = std::numeric_limits<double>::quiet_NaN();
  else if (SameSmall(word, "inf") || SameSmall(word, "infinity"))
    *value = std::numeric_limits<double>::infinity();
  else
    return 0;
  return length;
}

// "9f3a77c2", "0x9f3a77c2ab": hexadecimal, with letters and digits.
size_t LengthOfDigest(std::string_view text) {
  constexpr size_t kShortest = 6;
  const size_t begin = text.starts_with("0x") ? 2 : 0;
  size_t end = begin, letters = 0;
  while (end < text.size() && IsWordChar(text[end])) {
    const char c = Small(text[end++]);
    if (!IsDigit(c) && (c < 'a' || c > 'f')) return 0;
    letters += !IsDigit(c);
  }
  const bool goes_on = end < text.size() && (text[end] == '.' || text[end] == '-' || text[end] == ':');
  const bool is_whole = !goes_on || end + 1 == text.size() || !IsWordChar(text[end + 1]);
  return is_whole && end - begin >= kShortest && letters > 0 && letters < end - begin ? end : 0;
}

// Reads one line from its beginning to its end. A name is the run of words before a number, back to the last mark that
// separates fields.
class LineScan {
 public:
  LineScan(std::string_view line, std::vector<NamedNumber>& out) : line_(line), out_(out) {}

  void Run() {
    while (at_ < line_.size() && out_.size() < kMostNumbers) Step();
  }

 private:
  char Next(size_t ahead = 1) const { return at_ + ahead < line_.size() ? line_[at_ + ahead] : ' '; }
  bool HasName() const { return name_end_ > name_begin_; }
  std::string_view Name() const { return line_.substr(name_begin_, name_end_ - name_begin_); }
  void Clear() {
    name_begin_ = name_end_ = 0;
    marked_ = gap_ = false;
  }

  bool BeginsNumber() const {
    const char c = line_[at_];
    if (at_ > 0 && IsWordChar(line_[at_ - 1])) return false;
    if (IsDigit(c)) return true;
    if (c == '.') return IsDigit(Next());
    if (c != '-' && c != '+') return false;
    double value = 0;
    return IsDigit(Next()) || (Next() == '.' && IsDigit(Next(2))) ||
           LengthOfNonFinite(line_.substr(at_ + 1), &value) > 0;
  }

  void Step() {
    const char c = line_[at_];
    if (c == ' ') {
      gap_ = gap_ || Next() == ' ';
      ++at_;
    } else if (BeginsNumber()) {
      TakeValue();
    } else if (IsAlphabetic(c) || c == '_') {
      TakeName();
    } else {
      TakeMark(c);
    }
  }

  void TakeMark(char c) {
    ++at_;
    switch (c) {
      case '\'':
      case '"': break;
      case ':':
      case '=': marked_ = marked_ || HasName(); break;
      case '\t': gap_ = true; break;
      case '[':
        if (HasName() && TakeList()) break;
        [[fallthrough]];
      case '(':
        // "time (ms): 12", "Epoch(train) [1][ 50/90]"
        if (HasName() && TakeNote(c == '(' ? ')' : ']')) break;
        gap_ = true;
        break;
      case ']':
      case ')':
      default: Clear();
    }
  }

  // A word in parentheses belongs to the name before it.
  bool TakeNote(char close) {
    size_t end = at_;
    while (end < line_.size() && (IsAlphabetic(line_[end]) || line_[end] == '/')) ++end;
    if (end == at_ || end == line_.size() || line_[end] != close) return false;
    const bool glued = at_ >= 2 && line_[at_ - 2] != ' ';
    if (!glued && !IsUnitOfTime(line_.substr(at_, end - at_))) return false;
    at_ = end + 1;
    name_end_ = at_;
    return true;
  }

  // "compute_ms per rank: [31.2, 30.8, 92.1]"
  bool TakeList() {
    std::string_view rest = line_.substr(at_);
    std::vector<NamedNumber> list;
    while (list.size() < kMostNumbers) {
      NamedNumber one;
      SkipBlanks(rest);
      const std::string_view cell = rest.substr(0, rest.find_first_of(",]"));
      if (cell.size() == rest.size() || !ReadValue(cell, one)) return false;
      one.name = Name();
      one.marked = marked_;
      one.index = static_cast<int32_t>(list.size());
      list.push_back(one);
      rest.remove_prefix(cell.size());
      if (TakeLiteral(rest, "]")) break;
      TakeLiteral(rest, ",");
    }
    if (list.size() < 2) return false;
    out_.insert(out_.end(), list.begin(), list.end());
    at_ = line_.size() - rest.size();
    Clear();
    return true;
  }

  void TakeName() {
    size_t end = at_;
    const auto joins = [&](char c) { return c == '.' || c == '-' || c == '/' || c == '@' || c == '|'; };
    while (end < line_.size() &&
           (IsWordChar(line_[end]) || (joins(line_[end]) && end + 1 < line_.size() && IsWordChar(line_[end + 1]))))
      ++end;
    const std::string_view word = line_.substr(at_, end - at_);
    double value = 0;
    const size_t begin = at_;
    if (HasName() && LengthOfNonFinite(word, &value) == word.size()) {
      Emit({.word = word, .value = value}, end);
      return;
    }
    if (HasName() && LengthOfDigest(word) == word.size()) {
      Emit({.word = word, .digest = true}, end);
      return;
    }
    at_ = end;
    // tensor(nan, device='cuda:0'), np.float64(0.31)
    if (HasName() && marked_ && at_ < line_.size() && line_[at_] == '(' && (word == "tensor" || Contains(word, "float"))) {
      ++at_;
      return;
    }
    if (TakeRankWord(word)) return;
    // "tag=train/loss value=1.2": the name is a field of its own.
    if (marked_ && HasName() && IsNamed(Name(), {"tag", "metric", "key"})) {
      tag_ = word;
      return Clear();
    }
    if (!HasName() || marked_ || gap_) name_begin_ = begin;
    marked_ = gap_ = false;
    name_end_ = end;
  }

  // "rank2", "[R2]"
  bool TakeRankWord(std::string_view word) {
    const size_t digits = std::min(word.find_first_of("0123456789"), word.size());
    const std::string_view letters = word.substr(0, digits), number = word.substr(digits);
    const bool bracketed = at_ - word.size() > 0 && line_[at_ - word.size() - 1] == '[' && at_ < line_.size() &&
                           line_[at_] == ']';
    if (number.empty() || number.size() > 6 || number.find_first_not_of("0123456789") != std::string_view::npos ||
        !(SameSmall(letters, "rank") || (bracketed && SameSmall(letters, "r"))))
      return false;
    NamedNumber rank{.name = "rank", .word = number};
    std::string_view rest = number;
    TakeDouble(rest, &rank.value);
    out_.push_back(rank);
    Clear();
    return true;
  }

  void Emit(NamedNumber found, size_t end) {
    found.name = Name();
    found.marked = marked_;
    if (!tag_.empty() && IsNamed(found.name, {"value", "val"})) found.name = tag_;
    out_.push_back(found);
    at_ = end;
    SkipMean();
    Clear();
  }

  // "0.532 ( 0.739)", "50/1251 (  4%)": the mean, or the share
  void SkipMean() {
    size_t at = at_;
    while (at < line_.size() && line_[at] == ' ') ++at;
    if (at >= line_.size() || line_[at] != '(') return;
    const size_t close = line_.find(')', at);
    if (close == std::string_view::npos || close - at > 40) return;
    const std::string_view inside = Trim(line_.substr(at + 1, close - at - 1));
    double value = 0;
    if (!inside.empty() && (IsDigit(inside[0]) || inside[0] == '-' || LengthOfNonFinite(inside, &value) > 0))
      at_ = close + 1;
  }

  void TakeValue() {
    if (const size_t digest = HasName() ? LengthOfDigest(line_.substr(at_)) : 0; digest > 0) {
      Emit({.word = line_.substr(at_, digest), .digest = true}, at_ + digest);
      return;
    }
    NamedNumber found;
    std::string_view rest = line_.substr(at_);
    const size_t sign = rest[0] == '-' || rest[0] == '+' ? 1 : 0;
    size_t length = LengthOfNonFinite(rest.substr(sign), &found.value);
    if (length > 0) {
      if (rest[0] == '-') found.value = -found.value;
      length += sign;
    } else {
      std::string_view behind = rest.substr(rest[0] == '+' ? 1 : 0);
      if (!TakeDouble(behind, &found.value)) return SkipBlob();
      length = rest.size() - behind.size();
      while (HasThousands(rest, length)) length += 4;
      if (rest.substr(0, length).find(',') != std::string_view::npos) {
        std::string digits(rest.substr(0, length));
        std::erase(digits, ',');
        std::string_view whole = digits;
        TakeDouble(whole, &found.value);
      }
    }
    found.word = rest.substr(0, length);
    rest.remove_prefix(length);
    if (!TakeUnit(rest, found)) return SkipBlob();
    if (HasName() || AfterColon() || (found.of_total && IsBracketed(rest)))
      return Emit(found, line_.size() - rest.size());
    at_ = line_.size() - rest.size();
    Clear();
  }

  // "rank  0: 120.3": a value whose name stands in a line above
  bool AfterColon() const {
    size_t at = at_;
    while (at > 0 && line_[at - 1] == ' ') --at;
    return at > 0 && at < at_ && line_[at - 1] == ':';
  }

  // "[ 3/30]", "450/1000 [00:12<00:15", not the date 10/18
  bool IsBracketed(std::string_view behind) const {
    size_t at = at_;
    while (at > 0 && line_[at - 1] == ' ') --at;
    behind = Trim(behind);
    return (at > 0 && line_[at - 1] == '[') || behind.starts_with('[') || behind.starts_with('(');
  }

  static bool HasThousands(std::string_view text, size_t at) {
    if (at == 0 || at > 11 || text.size() < at + 4 || text[at] != ',' || !IsDigit(text[at - 1])) return false;
    if (text.substr(0, at).find('.') != std::string_view::npos) return false;
    return IsDigit(text[at + 1]) && IsDigit(text[at + 2]) && IsDigit(text[at + 3]) &&
           (text.size() == at + 4 || (!IsDigit(text[at + 4]) && text[at + 4] != '.'));
  }

  // False: what stands here is no figure (a date, a time of day, a version, "3d").
  static bool TakeUnit(std::string_view& rest, NamedNumber& found) {
    if (rest.size() >= 2 && (rest[0] == ':' || rest[0] == '-' || rest[0] == '.' || rest[0] == '_') && IsDigit(rest[1]))
      return false;
    size_t size = 0;
    while (size < rest.size() && size < 16 && (IsAlphabetic(rest[size]) || (rest[size] == '/' && size > 0))) ++size;
    if (size > 0) {
      found.unit = rest.substr(0, size);
      const bool known = IsUnitOfTime(found.unit) || Contains(found.unit, "/") ||
                         IsNamed(found.unit, {"k", "m", "g", "b", "kb", "mb", "gb", "gib", "mib", "x", "it"});
      rest.remove_prefix(size);
      return known && (rest.empty() || !IsWordChar(rest[0]));
    }
    if (rest.starts_with("\u00b5s") || rest.starts_with("\u03bcs")) {
      found.unit = "us";
      rest.remove_prefix(3);
      return true;
    }
    if (TakeLiteral(rest, "%")) {
      found.unit = "%";
      return true;
    }
    std::string_view behind = rest;
    if (TakeLiteral(behind, "/")) {
      SkipBlanks(behind);
      size_t digits = 0;
      while (digits < behind.size() && IsDigit(behind[digits])) ++digits;
      if (digits == 0) return true;
      if (digits < behind.size() && behind[digits] == '/') return false;  // 14/11/2025
      found.of_total = true;
      rest = behind.substr(digits);
      return true;
    }
    SkipBlanks(behind);
    if (behind.size() == rest.size()) return true;
    size_t word = 0;
    while (word < behind.size() && (IsWordChar(behind[word]) || behind[word] == '/')) ++word;
    if (!IsUnitOfTime(behind.substr(0, word)) && !Contains(behind.substr(0, word), "/s")) return true;
    found.unit = behind.substr(0, word);
    rest = behind.substr(word);
    return true;
  }

  void SkipBlob() {
    while (at_ < line_.size() && (IsWordChar(line_[at_]) || std::string_view(".:-+/,").find(line_[at_]) != std::string_view::npos))
      ++at_;
    if (at_ < line_.size() && line_[at_ - 1] == ',') --at_;
    Clear();
  }

  std::string_view line_;
  std::vector<NamedNumber>& out_;
  size_t at_ = 0, name_begin_ = 0, name_end_ = 0;
  bool marked_ = false;  // a colon or an equals sign stands behind the name
  bool gap_ = false;     // the next word begins another name
  std::string_view tag_;
};

}  // namespace

void FindNamedNumbers(std::string_view line, std::vector<NamedNumber>& out) {
  out.clear();
  LineScan(line, out).Run();
}

bool ReadValue(std::string_view cell, NamedNumber& out) {
  cell = Trim(cell);
  if (cell.size() >= 2 && (cell.front() == '"' || cell.front() == '\'') && cell.back() == cell.front())
    cell = cell.substr(1, cell.size() - 2);
  if (cell.empty() || cell.size() > 60) return false;
  // As if it had a name.
  std::array<char, 64> buffer;
  buffer[0] = 'x';
  buffer[1] = '=';
  std::copy(cell.begin(), cell.end(), buffer.begin() + 2);
  std::vector<NamedNumber> found;
  FindNamedNumbers({buffer.data(), cell.size() + 2}, found);
  if (found.size() != 1) return false;
  const NamedNumber& one = found.front();
  // Nothing but the value, its unit and its mean
  const auto begin = static_cast<size_t>(one.word.data() - buffer.data());
  if (begin != 2) return false;
  out = one;
  out.name = {};
  out.word = cell.substr(0, one.word.size());
  std::string_view rest = Trim(cell.substr(one.word.size()));
  if (one.unit == "us" && !rest.starts_with("us")) rest = {};  // with the letter for micro
  if (!one.unit.empty() && !rest.empty()) {
    if (!rest.starts_with(one.unit)) return false;
    out.unit = rest.substr(0, one.unit.size());
    rest = Trim(rest.substr(one.unit.size()));
  }
  return rest.empty() || rest.starts_with('(') || one.of_total;
}

}  // namespace tacet
