// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_guard.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/told/told_lines.h"

namespace tacet {
namespace {

// What all ranks must call together. `sharded`: only where each of them holds a part of the model.
struct CollectiveCall {
  std::string_view name;
  bool sharded = false;
  bool meeting = false;  // two of them on different branches may be meant for each other
};

constexpr CollectiveCall kCalls[] = {{"all_reduce"},
                                     {"all_gather"},
                                     {"all_gather_object"},
                                     {"all_gather_into_tensor"},
                                     {"reduce_scatter_tensor"},
                                     {"broadcast_object_list"},
                                     {"gather_object"},
                                     {"gather_for_metrics"},
                                     {"new_group"},
                                     {"barrier", false, true},
                                     {"monitored_barrier", false, true},
                                     {"wait_for_everyone", false, true},
                                     {"save_state", true},
                                     {"save_checkpoint", true},
                                     {"save_16bit_model", true},
                                     {"get_state_dict", true},
                                     {"get_model_state_dict", true},
                                     {"optim_state_dict", true},
                                     {"full_optim_state_dict", true},
                                     {"summon_full_params", true},
                                     {"full_tensor", true},
                                     {"save_model", true}};

bool IsCodeNamePart(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '.'; }

size_t IndentOf(std::string_view line) {
  size_t indent = 0;
  while (indent < line.size() && (line[indent] == ' ' || line[indent] == '\t')) ++indent;
  return indent;
}

// "if accelerator.is_main_process:" -> "accelerator.is_main_process", where only some ranks fulfil it.
std::optional<std::string> RankConditionOf(std::string_view line) {
  std::string_view code = Trim(line);
  if (!TakeLiteral(code, "if ")) return std::nullopt;
  const size_t colon = code.rfind(':');
  if (colon == std::string_view::npos || code.size() > 200) return std::nullopt;
  const std::string_view behind = Trim(code.substr(colon + 1));
  if (!behind.empty() && !behind.starts_with('#')) return std::nullopt;
  const std::string_view condition = Trim(code.substr(0, colon));
  const std::string low = LowerCase(condition);
  if (Contains(low, " or ") || ContainsAny(low, {"fsdp", "deepspeed", "zero3", "sharded"})) return std::nullopt;
  std::string plain = low;
  std::erase(plain, ' ');
  const bool of_rank =
      ContainsAny(plain, {"is_main_process", "is_local_main_process", "is_world_process_zero", "is_local_process_zero",
                          "is_global_zero", "is_rank_zero", "is_rank_0", "is_master", "master_process", "is_main()",
                          "rank==0", "rank()==0", "rank!=0", "rank()!=0", "rankin[-1,0]", "is_first_rank"});
  return of_rank ? std::optional<std::string>(condition) : std::nullopt;
}

// "    accelerator.save_state(out_dir)" -> "accelerator.save_state"
std::optional<std::string> CallIn(std::string_view line, bool sharded, const CollectiveCall*& call) {
  const std::string_view code = Trim(line);
  if (code.starts_with('#') || code.starts_with("def ") || code.starts_with("class ")) return std::nullopt;
  for (size_t open = code.find('('); open != std::string_view::npos; open = code.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 && IsCodeNamePart(code[begin - 1])) --begin;
    const std::string_view whole = code.substr(begin, open - begin);
    const size_t dot = whole.rfind('.');
    const std::string_view name = whole.substr(dot == std::string_view::npos ? 0 : dot + 1);
    for (const CollectiveCall& one : kCalls) {
      if (one.name != name || (one.sharded && (!sharded || dot == std::string_view::npos))) continue;
      call = &one;
      return std::string(whole);
    }
  }
  return std::nullopt;
}

struct Guard {
  std::string condition, call;
  const CollectiveCall* kind = nullptr;
  SourceRef source;
  std::string text;
  size_t indent = 0;    // of its condition
  bool open = true;     // its block goes on
  bool other = false;   // the other branch goes on
  bool shared = false;  // ... and makes the same call
};

class GuardReader {
 public:
  explicit GuardReader(bool sharded) : sharded_(sharded) {}

  void Read(std::string_view line, const SourceRef& source) {
    const std::string_view code = Trim(line);
    if (code.empty()) return;
    const size_t indent = IndentOf(line);
    const bool otherwise = code.starts_with("else:") || code.starts_with("elif ");
    for (Guard& guard : guards_) {
      if (indent > guard.indent) continue;
      guard.other = indent == guard.indent && otherwise && (guard.open || guard.other);
      guard.open = false;
    }
    conditions_.resize(static_cast<size_t>(std::find_if(conditions_.begin(), conditions_.end(),
                                                        [&](const Condition& one) { return one.indent >= indent; }) -
                                           conditions_.begin()));
    if (auto condition = RankConditionOf(line)) conditions_.push_back({std::move(*condition), indent});
    if (conditions_.empty() && guards_.empty()) return;  // nearly all lines of nearly all texts
    const CollectiveCall* kind = nullptr;
    const auto call = CallIn(line, sharded_, kind);
    if (!call) return;
    for (Guard& guard : guards_) guard.shared |= guard.other && guard.kind == kind;
    if (conditions_.empty() || indent <= conditions_.back().indent || guards_.size() >= kMost) return;
    const Condition& inner = conditions_.back();
    guards_.push_back({inner.text, *call, kind, source, std::string(code.substr(0, 200)), inner.indent});
    ++met_[kind->name];
  }

  const Guard* First() const {
    const auto found = std::find_if(guards_.begin(), guards_.end(), [&](const Guard& guard) {
      return !guard.shared && !(guard.kind->meeting && met_.at(guard.kind->name) > 1);
    });
    return found == guards_.end() ? nullptr : &*found;
  }

 private:
  struct Condition {
    std::string text;
    size_t indent = 0;
  };
  static constexpr size_t kMost = 16;
  bool sharded_;
  std::vector<Condition> conditions_;  // those that the line stands under
  std::vector<Guard> guards_;
  std::map<std::string_view, int> met_;
};

}  // namespace

void AddToldGuard(std::string_view bytes, Fragment& fragment) {
  if (!ContainsAny(bytes, {"if "}) || !ContainsAny(bytes, {"rank", "process", "master", "is_main"})) return;
  GuardReader guards(ContainsAny(
      bytes, {"FSDP", "fsdp", "FullyShard", "fully_shard", "DeepSpeed", "deepspeed", "ZeRO", "zero_stage"}));
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) guards.Read(line, {FileId{}, reader.number(), reader.offset()});
  const Guard* guard = guards.First();
  if (guard == nullptr) return;
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::told_guard;
  event.speaker = kNobody;
  event.source = guard->source;
  event.text = guard->text;
  event.Make<GuardedCall>() = {guard->call, guard->condition};
}

}  // namespace tacet
