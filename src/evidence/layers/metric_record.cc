// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/metric_record.h"

#include <algorithm>

#include "base/text_scan.h"
#include "evidence/told/told_states.h"

namespace tacet {
namespace {

constexpr size_t kLongest = 8 * 1024, kLongestName = 80, kMostNames = 120;
constexpr std::string_view kSpace = " \t\r\n";

// "reward", "rewards/accuracy", "train_loss", "pg_loss"
bool IsMetric(std::string_view name) {
  const std::string low = LowerCase(name);
  return low.ends_with("loss") || low == "reward" || Contains(low, "grad_norm") || Contains(low, "perplexity");
}

// What tells the place of a record in the run. The rate that is used now stands beside a loss as well, but also in a
// configuration, beside the weights of parts of the loss.
bool IsRate(std::string_view name) { return name == "learning_rate" || name == "lr"; }
bool IsPlainMetric(std::string_view name) { return name == "loss" || name == "grad_norm" || name == "reward"; }

bool IsPlace(std::string_view name) {
  const std::string low = LowerCase(name);
  for (const std::string_view one :
       {"step", "_step", "global_step", "trainer/global_step", "current_steps", "iteration", "iter", "epoch",
        "train/global_step", "train/epoch", "global_step/max_steps", "steps", "num_updates"})
    if (low == one) return true;
  return false;
}

// A step has many names; readers know one.
std::string_view PlainName(std::string_view name) {
  for (const std::string_view one : {"_step", "global_step", "trainer/global_step", "current_steps",
                                     "train/global_step", "global_step/max_steps", "steps"})
    if (LowerCase(name) == one) return "step";
  return name;
}

// Reads one object without objects in it.
class MetricObject {
 public:
  explicit MetricObject(std::string_view text) : text_(text.substr(0, kLongest)), whole_(text.size() <= kLongest) {}

  // The length of the object; 0 where this is none. An object that the end of the text cuts off counts.
  size_t Read() {
    if (!TakeLiteral(text_, "{")) return 0;
    const size_t size = text_.size() + 1;
    for (;;) {
      SkipSpace();
      if (text_.empty()) return Ends(size, whole_ && numbers_ >= 3);
      if (TakeLiteral(text_, "}")) return Ends(size, numbers_ >= 2);
      if (!ReadMember()) return text_.empty() ? Ends(size, whole_ && numbers_ >= 3) : 0;
      SkipSpace();
      TakeLiteral(text_, ",");
    }
  }

  const std::string& line() const { return line_; }
  bool json() const { return json_; }

 private:
  void SkipSpace() { text_.remove_prefix(std::min(text_.find_first_not_of(kSpace), text_.size())); }

  size_t Ends(size_t size, bool enough) {
    if (!enough || !metric_ || (!place_ && !(rate_ && plain_))) return 0;
    line_ = "{" + line_ + "}";
    return size - text_.size();
  }

  bool TakeQuoted(std::string_view* content) {
    if (text_.empty() || (text_[0] != '"' && text_[0] != '\'')) return false;
    size_t end = 1;
    while (end < text_.size() && text_[end] != text_[0] && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size() || text_[end] == '\n') {
      if (end >= text_.size()) text_ = {};
      return false;
    }
    json_ = json_ || text_[0] == '"';
    *content = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }

  // A list, a tensor or an object that belongs to one metric: of no use, and of no harm.
  bool SkipNested() {
    constexpr size_t kMost = 400;
    int depth = 0;
    for (size_t at = 0; at < std::min(text_.size(), kMost); ++at) {
      const char c = text_[at];
      depth += c == '[' || c == '{' || c == '(' ? 1 : c == ']' || c == '}' || c == ')' ? -1 : 0;
      if (depth == 0 && (c == ']' || c == '}' || c == ')')) return text_.remove_prefix(at + 1), true;
    }
    return false;
  }

  bool ReadMember() {
    std::string_view name, value;
    if (++members_ > kMostNames || !TakeQuoted(&name) || name.empty() || name.size() > kLongestName) return false;
    SkipSpace();
    if (!TakeLiteral(text_, ":")) return false;
    SkipSpace();
    if (text_.empty()) return false;
    if (text_[0] == '"' || text_[0] == '\'') {
      // "8280/11043": the place and how far it goes. Newer trainers print every figure as a string.
      if (!TakeQuoted(&value)) return false;
      std::string_view rest = value;
      double number = 0;
      if (!TakeDouble(rest, &number) || (!rest.empty() && rest[0] != '/')) return true;
      value = value.substr(0, value.size() - rest.size());
    } else if (text_[0] == '[' || text_[0] == '{') {
      return SkipNested();
    } else {
      const size_t end = std::min(text_.find_first_of(",}\n]"), text_.size());
      value = Trim(text_.substr(0, end));
      text_.remove_prefix(end);
    }
    Add(name, value);
    return true;
  }

  void Add(std::string_view name, std::string_view value) {
    const std::string low = LowerCase(value);
    double number = 0;
    std::string_view rest = low;
    const bool lost = low == "nan" || low == "infinity" || low == "inf" || low == "-infinity" || low == "-inf";
    if (!lost && (!TakeDouble(rest, &number) || !rest.empty())) return;
    ++numbers_;
    metric_ = metric_ || IsMetric(name);
    place_ = place_ || IsPlace(name);
    rate_ = rate_ || IsRate(name);
    plain_ = plain_ || IsPlainMetric(name);
    line_ += (line_.empty() ? "'" : ", '") + std::string(PlainName(name)) + "': " +
             (low == "infinity"    ? "inf"
              : low == "-infinity" ? "-inf"
                                   : low);
  }

  std::string_view text_;
  const bool whole_;
  std::string line_;
  size_t members_ = 0, numbers_ = 0;
  bool metric_ = false, place_ = false, rate_ = false, plain_ = false, json_ = false;
};

// Calls `found` with the begin, the length and the line of each object.
template <typename Found>
void ForEachRecord(std::string_view bytes, Found found) {
  for (size_t at = bytes.find('{'); at != std::string_view::npos;) {
    const size_t next = bytes.find_first_not_of(kSpace, at + 1);
    size_t length = 0;
    if (next != std::string_view::npos && (bytes[next] == '"' || bytes[next] == '\'')) {
      MetricObject object(bytes.substr(at));
      length = object.Read();
      const bool many = length > 0 && Contains(bytes.substr(at, length), "\n");
      if (length > 0 && (many || object.json()) && !found(at, length, object.line())) return;
    }
    at = bytes.find('{', at + std::max<size_t>(length, 1));
  }
}

}  // namespace

bool HasMetricRecords(std::string_view prefix) {
  if (!ContainsAny(prefix, {"loss\"", "loss'", "reward\"", "reward'", "grad_norm"})) return false;
  bool any = false;
  ForEachRecord(prefix, [&](size_t, size_t, const std::string&) {
    any = true;
    return false;
  });
  return any;
}

std::string WriteMetricRecords(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  size_t done = 0;
  bool document = false, first = true;
  const auto keep = [&](std::string_view between) {
    if (!document) {
      out += between;
      return;
    }
    out.append(static_cast<size_t>(std::count(between.begin(), between.end(), '\n')), '\n');
  };
  ForEachRecord(bytes, [&](size_t at, size_t length, const std::string& line) {
    // {"best_metric": null, ..., "log_history": [{"loss": ...
    const std::string_view before = bytes.substr(done, at - done);
    if (first) document = !Trim(before).empty() && (Trim(before)[0] == '{' || Trim(before)[0] == '[');
    first = false;
    keep(before);
    out += line;
    const std::string_view object = bytes.substr(at, length);
    out.append(static_cast<size_t>(std::count(object.begin(), object.end(), '\n')), '\n');
    done = at + length;
    if (done < bytes.size() && bytes[done] == ',') ++done;
    return true;
  });
  keep(bytes.substr(done));
  return out;
}

}  // namespace tacet
