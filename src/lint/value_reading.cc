// SPDX-License-Identifier: Apache-2.0
#include "lint/value_reading.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "base/text_scan.h"

namespace tacet {
namespace {

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Words that mean 0 and are read as 0.
bool MeansNo(std::string_view lower) { return IsOneOf(lower, {"false", "no", "off", "none", "disable", "disabled"}); }

Misreading Invalid(std::string consequence, std::string advice) {
  Misreading misreading;
  misreading.read_as = std::move(consequence);
  misreading.advice = std::move(advice);
  misreading.invalid = true;
  return misreading;
}

// Numbers with an end: fields of InfiniBand have a few bits, and NCCL's own tables a few places. -1 and -2 leave the
// choice to NCCL. For NCCL_IB_TIMEOUT, 0 and numbers from 32 are allowed and risky, see variable_harm.
struct NumberRange {
  std::string_view name;
  int64_t least, most;
  std::string_view beyond;  // what becomes of a larger number, where that is known
};
constexpr std::string_view kLowBits = "only the low 8 bits of a larger number are used",
                           kLimited = "NCCL uses the largest";
constexpr NumberRange kRanges[] = {
    {"NCCL_CROSS_NIC", 0, 2, ""},
    {"NCCL_IB_TC", 0, 255, kLowBits},
    {"NCCL_IB_FIFO_TC", 0, 255, kLowBits},
    {"NCCL_IB_SL", 0, 15, ""},
    {"NCCL_IB_TIMEOUT", 0, INT64_MAX, ""},
    {"NCCL_IB_RETRY_CNT", 0, 7, ""},
    {"NCCL_IB_QPS_PER_CONNECTION", 1, 128, ""},
    {"NCCL_IB_GID_INDEX", 0, 255, ""},
    {"NCCL_IB_PCI_RELAXED_ORDERING", 0, 2, ""},
    {"NCCL_IB_ROCE_VERSION_NUM", 1, 2, ""},
    {"NCCL_NCHANNELS_PER_NET_PEER", 1, 64, ""},
    {"NCCL_MAX_NCHANNELS", 1, 64, kLimited},
    {"NCCL_MIN_NCHANNELS", 0, 64, kLimited},
    {"NCCL_NTHREADS", 64, 512, kLimited},
    {"NCCL_LL128_NTHREADS", 160, 640, kLimited},
    {"NCCL_SOCKET_NTHREADS", 1, 16, kLimited},
    {"NCCL_NSOCKS_PERTHREAD", 1, 16, kLimited},
};

std::string WholeNumberAdvice(std::string_view value) {
  const std::string bytes = BytesMeant(value);
  return bytes.empty() ? "write the whole number in digits: NCCL stops at the first other character"
                       : "write " + bytes + ": NCCL stops at the first character that is not a digit";
}

Misreading ReadRange(const Variable& variable, int64_t value) {
  constexpr int64_t kFirstChoice = -2;
  if (value == -1 || value == kFirstChoice) return {};
  for (const NumberRange& range : kRanges) {
    if (range.name != variable.name || (value >= range.least && value <= range.most)) continue;
    const std::string words = range.most == INT64_MAX
                                  ? std::to_string(range.least) + " or more"
                                  : std::to_string(range.least) + " to " + std::to_string(range.most);
    Misreading misreading;
    misreading.out_of_range = true;
    misreading.read_as = "out of range: it takes " + words;
    if (value > range.most && !range.beyond.empty()) misreading.read_as += ", and " + std::string(range.beyond);
    misreading.advice = "write a number in this range, or unset it";
    return misreading;
  }
  return {};
}

Misreading ReadInteger(const Variable& variable, std::string_view value) {
  const NcclNumber number = ReadNcclNumber(value);
  if (number.out_of_range) return Invalid("the default applies", "give a number that fits in 64 bits");
  // NCCL warns, and takes its maximum.
  const bool of_threads = variable.name == "NCCL_NTHREADS" || variable.name == "NCCL_LL128_NTHREADS";
  if (of_threads && number.whole && number.value > 0 && number.value % 32 != 0)
    return {"the default: it is not a multiple of 32", variable.name == "NCCL_NTHREADS"
                                                           ? "write 64, 128, 256 or 512, or unset it"
                                                           : "write a multiple of 32 from 160 to 640, or unset it"};
  const bool only_one_counts = variable.name == "NCCL_P2P_DISABLE";
  if (only_one_counts && number.whole && number.value != 0 && number.value != 1)
    return {"0", "only exactly 1 switches it off"};
  if (number.whole && (value.size() < 2 || value[0] != '0' || !IsDigit(value[1])))
    return ReadRange(variable, number.value);
  if (MeansNo(LowerCase(value))) return {};
  const bool word = !IsDigit(value.front()) && value.front() != '-' && value.front() != '+';
  return {std::to_string(number.value), word           ? "write 1 or 0: NCCL reads any word as 0"
                                        : number.whole ? "write it without the leading 0, which makes it octal"
                                                       : WholeNumberAdvice(value)};
}

// Each variable takes levels of its own.
std::string LevelAdvice(const Variable& variable) {
  if (variable.name == "NCCL_P2P_LEVEL") return "write LOC, NVL, PIX, PXB, PHB or SYS";
  if (variable.name == "NCCL_NET_MERGE_LEVEL") return "write LOC, PORT, PIX, PXB, PHB or SYS";
  return "write LOC, PIX, PXB, PHB or SYS";
}

Misreading ReadLevel(const Variable& variable, std::string_view value) {
  static constexpr std::array<std::string_view, 12> kLevels = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                               "P2C", "PXN", "PHB", "SYS", "DIS", "PORT"};
  if (IsDigit(value.front())) {
    // Numbers of old releases: LOC, PIX, PXB, PHB, SYS, SYS; higher ones are read as the last.
    constexpr int64_t kLast = 5;
    if (ReadNcclNumber(value).value <= kLast) return {};
    return {"SYS: numeric levels end at 5", LevelAdvice(variable)};
  }
  const std::string lower = LowerCase(value);
  for (const std::string_view level : kLevels) {
    if (value == level) return {};
    if (lower == LowerCase(level))
      return Invalid("the default applies", "write " + std::string(level) + ": only capitals are known");
  }
  return Invalid("the default applies", LevelAdvice(variable));
}

// "INIT,NET", "^PROXY". NCCL passes over a name that it does not know.
Misreading ReadSubsystems(std::string_view value) {
  if (value.starts_with('^')) value.remove_prefix(1);
  for (std::string_view rest = value; !rest.empty();) {
    const size_t end = rest.find(',');
    const std::string_view word = Trim(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (word.empty() ||
        IsOneOf(LowerCase(word), {"init", "coll", "p2p", "shm", "net", "graph", "tuning", "env", "alloc", "call",
                                  "proxy", "nvls", "bootstrap", "reg", "profile", "ras", "all"}))
      continue;
    return {"a list without '" + std::string(word) + "', which is not a subsystem",
            "write names of subsystems: INIT, ENV, NET, COLL, P2P, SHM, GRAPH, TUNING, PROXY, NVLS, BOOTSTRAP, ... or "
            "ALL"};
  }
  return {};
}

Misreading ReadChoice(const Variable& variable, std::string_view value) {
  if (variable.name == "NCCL_DEBUG_SUBSYS") return ReadSubsystems(value);
  const std::string lower = LowerCase(value);
  if (variable.name == "NCCL_DEBUG")
    return IsOneOf(lower, {"version", "warn", "info", "abort", "trace", "none"})
               ? Misreading{}
               : Invalid("there is no log", "write VERSION, WARN, INFO or TRACE");
  if (variable.name == "TORCH_DISTRIBUTED_DEBUG")
    return IsOneOf(lower, {"off", "info", "detail"})
               ? Misreading{}
               : Misreading{"an error", "write OFF, INFO or DETAIL", "PyTorch fail when torch.distributed is loaded"};
  if (variable.name == "TORCH_CPP_LOG_LEVEL")
    return IsOneOf(lower, {"info", "warning", "error", "fatal", "0", "1", "2", "3"})
               ? Misreading{}
               : Invalid("the default applies", "write INFO, WARNING, ERROR or FATAL");
  if (variable.name.ends_with("_FAMILY"))
    return IsOneOf(value, {"AF_INET", "AF_INET6"}) ? Misreading{}
                                                   : Invalid("the default applies", "write AF_INET or AF_INET6");
  if (variable.name == "NCCL_LAUNCH_MODE")
    return IsOneOf(value, {"PARALLEL", "GROUP"}) ? Misreading{}
                                                 : Invalid("the default applies", "write PARALLEL, or unset it");
  if (variable.name == "NCCL_CHECK_MODE")
    return IsOneOf(value, {"DEFAULT", "DEBUG_LOCAL", "DEBUG_GLOBAL"})
               ? Misreading{}
               : Invalid("the default applies", "write DEFAULT, DEBUG_LOCAL or DEBUG_GLOBAL");
  return {};
}

// Two letters exchanged, or one that differs, is missing or too many: "rign" is Ring.
bool IsSlipOf(std::string_view word, std::string_view right) {
  if (word.size() == right.size()) {
    const auto first = std::mismatch(word.begin(), word.end(), right.begin());
    if (first.first == word.end()) return true;
    const auto at = static_cast<size_t>(first.first - word.begin());
    if (word.substr(at + 1) == right.substr(at + 1)) return true;
    return at + 1 < word.size() && word[at] == right[at + 1] && word[at + 1] == right[at] &&
           word.substr(at + 2) == right.substr(at + 2);
  }
  if (word.size() > right.size()) std::swap(word, right);
  if (word.size() + 1 != right.size()) return false;
  const auto at = static_cast<size_t>(std::mismatch(word.begin(), word.end(), right.begin()).first - word.begin());
  return word.substr(at) == right.substr(at + 1);
}

// The one that was most likely meant; empty: none, or several. `word` is in small letters.
std::string_view WordMeant(std::string_view word, bool algorithms) {
  constexpr std::array<std::string_view, 7> kAlgorithms{"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                                        "NVLSTree", "PAT"};
  constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "Simple"};
  std::string_view meant;
  size_t found = 0;
  const auto look = [&](std::string_view right) {
    if (right.size() > 2 && IsSlipOf(word, LowerCase(right))) meant = right, ++found;
  };
  if (algorithms)
    for (const std::string_view one : kAlgorithms) look(one);
  else
    for (const std::string_view one : kProtocols) look(one);
  return found == 1 ? meant : std::string_view();
}

// "Ring,Tree", "^LL128", "allreduce:tree,ring;broadcast:ring".
Misreading ReadElements(std::string_view value, bool algorithms, ReleaseNumber nccl) {
  for (std::string_view rest = value; !rest.empty();) {
    const size_t end = rest.find_first_of(",;:");
    std::string_view written = Trim(rest.substr(0, end));
    const bool function = end != std::string_view::npos && rest[end] == ':';
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (written.starts_with('^')) written.remove_prefix(1);
    const std::string word = LowerCase(written);
    if (word.empty() || function) continue;
    const bool known = algorithms
                           ? IsOneOf(word, {"tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"})
                           : IsOneOf(word, {"ll", "ll128", "simple"});
    if (known || (algorithms && word == "collnet" && nccl != 0 && nccl < 21400)) continue;
    const bool fails = nccl == 0 || nccl >= 22400;
    const std::string_view meant = WordMeant(word, algorithms);
    std::string failure;
    if (fails) {
      failure = "NCCL fail when it creates a communicator: there is no ";
      failure.append(algorithms ? "algorithm" : "protocol").append(" '").append(written).append("'");
    }
    return {fails ? "an error" : "a list without '" + std::string(written) + "'",
            word == "collnet" ? "write CollNetDirect or CollNetChain (since 2.14)"
            : !meant.empty()  ? "write " + std::string(meant)
            : algorithms      ? "write Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree or PAT"
                              : "write LL, LL128 or Simple",
            std::move(failure)};
  }
  return {};
}

}  // namespace

std::string BytesMeant(std::string_view value) {
  constexpr size_t kMostDigits = 9;
  const size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  if (digits == 0 || digits > kMostDigits || digits == value.size()) return "";
  std::string unit(value.substr(digits));
  for (char& c : unit) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  int64_t factor = 0;
  for (const auto& [name, power] : {std::pair<std::string_view, int>{"K", 10}, {"M", 20}, {"G", 30}})
    if (unit.starts_with(name) && (unit.size() == 1 || unit.substr(1) == "B" || unit.substr(1) == "IB"))
      factor = int64_t{1} << power;
  if (factor == 0) return "";
  int64_t number = 0;
  for (const char c : value.substr(0, digits)) number = 10 * number + (c - '0');
  return std::to_string(number * factor);
}

NcclNumber ReadNcclNumber(std::string_view text) {
  const std::string copy(text.substr(0, 64));  // strtoll wants an end
  NcclNumber number;
  char* end = nullptr;
  errno = 0;
  number.value = std::strtoll(copy.c_str(), &end, 0);
  number.out_of_range = errno == ERANGE;
  number.whole = end != copy.c_str() && Trim(end).empty() && text.size() <= 64;
  return number;
}

Misreading FindMisreading(const Variable& variable, std::string_view value, ReleaseNumber nccl) {
  if (value.empty()) return {};
  switch (variable.kind) {
    case ValueKind::integer: return ReadInteger(variable, value);
    case ValueKind::level: return ReadLevel(variable, value);
    case ValueKind::choice: return ReadChoice(variable, value);
    case ValueKind::algorithms: return ReadElements(value, true, nccl);
    case ValueKind::protocols: return ReadElements(value, false, nccl);
    case ValueKind::torch_flag:
      if (IsOneOf(LowerCase(value), {"1", "y", "yes", "t", "true", "0", "n", "no", "f", "false"})) return {};
      return {"an error", "write 1 or 0", "PyTorch fail when it creates a process group"};
    case ValueKind::torch_integer:
      if (IsDigit(value.front()) || (value.size() > 1 && value.front() == '-' && IsDigit(value[1]))) return {};
      return {"an error", "write a number", "PyTorch fail when it creates a process group"};
    case ValueKind::text:
    case ValueKind::list: return {};
  }
  return {};
}

std::string StrayCharacters(std::string_view value) {
  if (value.empty()) return "";
  if (value.back() == '\r') return "a carriage return at its end";
  if ((value.front() == '"' || value.front() == '\'') && value.size() > 1 && value.back() == value.front())
    return "quotes";
  if (IsSpace(value.front()) || IsSpace(value.back())) return "blanks at the end";
  return "";
}

}  // namespace tacet
