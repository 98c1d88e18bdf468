// SPDX-License-Identifier: Apache-2.0
// What is wrong with one variable by itself: its name, its value, its release, its effect.
#include <algorithm>
#include <utility>

#include "base/text_scan.h"
#include "lint/lint_sheet.h"
#include "lint/value_reading.h"
#include "lint/variable_harm.h"

namespace tacet {
namespace {

std::string Assignment(const VariableView& view) { return view.given.name + "=" + view.given.value; }

std::string UnsetAdvice(const Variable& variable) {
  if (variable.standard.empty()) return "unset it";
  const bool chosen = variable.standard == "-1" || variable.standard == "-2";
  return chosen ? "unset it: NCCL chooses" : "unset it";  // the default stands above
}

// Names that look like ours without being so: NCLL_DEBUG. All others in an environment are nobody's business.
bool MayBeMisspelt(std::string_view name) {
  return name.size() >= 8 && name.size() <= 60 &&
         (name.front() == 'N' || name.starts_with("TORCH") || name.starts_with("C")) && Contains(name, "_");
}

// "NCCL_BUFFSIZE", and the value with it where the one that is given would be misread there.
std::string AssignmentMeant(std::string_view name, const VariableView& view) {
  const Variable* meant = FindKnownVariable(name);
  if (!meant || !FindMisreading(*meant, view.given.value, view.nccl).found()) return std::string(name);
  const std::string bytes = meant->kind == ValueKind::integer ? BytesMeant(view.given.value) : std::string();
  return std::string(name) + "=" + (bytes.empty() ? "VALUE" : bytes) +
         (bytes.empty() ? " (" + FindMisreading(*meant, view.given.value, view.nccl).advice + ")" : "");
}

void CheckName(const VariableView& view, LintSheet& sheet) {
  const std::string& name = view.given.name;
  if (const std::string bare(Trim(name)); bare != name && FindKnownVariable(bare) != nullptr)
    return sheet.Add(LintKind::stray_characters, LintLevel::warning, view.environment, view.given,
                     bare + " is not set: there are spaces around its name", "write " + bare + "=VALUE without spaces");
  if (const NeverRead* never = FindNeverRead(name))
    return sheet.Add(
        LintKind::never_read, LintLevel::warning, view.environment, view.given,
        "neither NCCL nor PyTorch reads " + name + ": it has an effect only where the script itself reads it",
        std::string(never->advice));
  const std::string_view product = ProductOf(name);
  const bool closed = IsListClosed(name);
  if (product.empty() && !MayBeMisspelt(name)) return;
  if (!closed && product == "NCCL") return;  // a plugin's
  const std::string_view nearest = sheet.Nearest(name);
  if (product.empty() && (nearest.empty() || (!nearest.starts_with("NCCL_") && !nearest.starts_with("TORCH_NCCL_")) ||
                          nearest.size() + 1 < name.size() || name.size() + 1 < nearest.size()))
    return;
  if (!nearest.empty())
    return sheet.Add(LintKind::misspelt, LintLevel::warning, view.environment, view.given,
                     name + " is not a variable of " + std::string(ProductOf(nearest)) + "; " + std::string(nearest) +
                         " may be intended",
                     "write " + AssignmentMeant(nearest, view) + ", or unset it");
  if (closed)
    sheet.Add(LintKind::unknown, LintLevel::warning, view.environment, view.given,
              name + " is not a variable of " + std::string(product) + " known up to " +
                  (product == "NCCL" ? "2.31" : "2.11") + ": it has no effect",
              "unset it, or look its name up in the documentation");
}

// "NCCL 2.22" after 2.21; "the release after NCCL 2.21.5" where the last one is known to the patch.
std::string ReleaseAfter(ReleaseNumber last) {
  const std::string words = ReleaseWords(last);
  const ReleaseNumber next = (last / 100 + 1) * 100;
  if (std::count(words.begin(), words.end(), '.') != 1) return "the release after NCCL " + words;
  return "NCCL " + ReleaseWords(next);
}

// True where it is read at all.
bool CheckRelease(const VariableView& view, LintSheet& sheet) {
  const Variable& variable = *view.known;
  const std::string& name = view.given.name;
  const bool of_nccl = ProductOf(name) == "NCCL";
  if (variable.until != 0 && of_nccl && (view.nccl == 0 || view.nccl > variable.until)) {
    sheet.Add(LintKind::removed, LintLevel::warning, view.environment, view.given,
              name + " has had no effect since " +
                  (variable.until < 20300 ? "NCCL 2.3" : ReleaseAfter(variable.until)) + ", and NCCL gives no warning",
              variable.instead.empty() ? "unset it" : "use " + std::string(variable.instead) + " instead");
    return false;
  }
  if (of_nccl && view.nccl != 0 && view.nccl < variable.since) {
    sheet.Add(LintKind::too_new, LintLevel::warning, view.environment, view.given,
              name + " has no effect in NCCL " + ReleaseWords(view.nccl) + ": it was added in " +
                  ReleaseWords(variable.since),
              "unset it, or use NCCL " + ReleaseWords(variable.since) + " or newer");
    return false;
  }
  if (!variable.instead.empty() && variable.until == 0 && FindGiven(view.environment, variable.instead) == nullptr)
    sheet.Add(LintKind::renamed, LintLevel::note, view.environment, view.given,
              name + " is the old name of " + std::string(variable.instead) + ", and is still read",
              "write " + std::string(variable.instead));
  return true;
}

// True where the value is what it seems to be.
bool CheckValue(const VariableView& view, LintSheet& sheet) {
  const std::string& value = view.given.value;
  const std::string stray = StrayCharacters(value);
  const bool number = view.known->kind == ValueKind::integer;
  if (!stray.empty() && !(number && stray == "blanks at the end") && view.known->kind != ValueKind::torch_flag) {
    sheet.Add(LintKind::stray_characters, LintLevel::warning, view.environment, view.given,
              "the value of " + view.given.name + " has " + stray + ", which " +
                  std::string(ProductOf(view.given.name)) + " reads as part of it",
              "write the bare value (docker --env-file, nccl.conf and YAML keep quotes and spaces)");
    return false;
  }
  const bool of_list = view.known->kind == ValueKind::list;
  if (of_list && value.find(' ') != std::string::npos) {
    sheet.Add(LintKind::stray_characters, LintLevel::warning, view.environment, view.given,
              "the list " + Assignment(view) + " contains spaces, which become part of the names",
              "separate names with commas only");
    return false;
  }
  const Misreading misreading = FindMisreading(*view.known, value, view.nccl);
  if (!misreading.found()) return true;
  sheet.Add(LintKind::misread, LintLevel::warning, view.environment, view.given,
            Assignment(view) + (misreading.out_of_range    ? " is " + misreading.read_as
                                : misreading.invalid       ? " is not a valid value: " + misreading.read_as
                                : misreading.fails.empty() ? " is read as " + misreading.read_as
                                                           : " makes " + misreading.fails),
            misreading.advice);
  return false;
}

// NCCL_HOSTID makes several nodes of one host: what slows the network down then costs, but every address is reachable.
bool IsOneNode(const VariableView& view, const VariableHarm& harm) {
  return view.one_host && (harm.kind != HarmKind::slow || FindGiven(view.environment, "NCCL_HOSTID") == nullptr);
}

void CheckHarm(const VariableView& view, LintSheet& sheet) {
  bool told = false;
  for (const VariableHarm& harm : AllVariableHarms()) {
    if (harm.name != view.given.name || !harm.applies(view.value) || (harm.of_network && IsOneNode(view, harm)))
      continue;
    told = true;
    const bool debugging = harm.kind == HarmKind::debugging;
    sheet.Add(harm.kind == HarmKind::slow ? LintKind::slow
              : debugging                 ? LintKind::debugging
                                          : LintKind::risky,
              debugging ? LintLevel::note : LintLevel::warning, view.environment, view.given,
              Assignment(view) + ": " + std::string(harm.cost),
              debugging ? "unset it once the problem is understood" : UnsetAdvice(*view.known));
  }
  if (view.given.name == "NCCL_IB_GID_INDEX" && !told && ReadNcclNumber(view.value).value >= 1 &&
      (view.nccl == 0 || view.nccl >= 22100)) {
    sheet.Add(LintKind::old_default, LintLevel::note, view.environment, view.given,
              Assignment(view) + " pins the GID index; since 2.21 NCCL finds the RoCE v2 address itself",
              "unset it; where several addresses fit, set NCCL_IB_ADDR_RANGE");
    return;
  }
  // "mlx5_1" is a prefix of mlx5_10.
  if (view.given.name == "NCCL_IB_HCA" && !view.value.starts_with("=") && !view.value.starts_with("^=") &&
      (view.value.ends_with("_1") || Contains(view.value, "_1,")))
    sheet.Add(LintKind::risky, LintLevel::note, view.environment, view.given,
              Assignment(view) + " names prefixes: mlx5_1 also selects mlx5_10 to mlx5_19",
              "write = before the list for exact names");
  if (!told && IsForDebugging(view.given.name) && !(view.one_host && view.given.name.starts_with("NCCL_IB_")))
    sheet.Add(LintKind::debugging, LintLevel::note, view.environment, view.given,
              Assignment(view) + " is for debugging only, according to NCCL's user guide",
              "unset it in production, or write down why it is set");
}

}  // namespace

void CheckVariable(const VariableView& view, LintSheet& sheet) {
  if (view.known == nullptr) return CheckName(view, sheet);
  if (!CheckRelease(view, sheet) || !view.given.value_known || view.given.value.empty()) return;
  if (!CheckValue(view, sheet) || view.value == view.known->standard) return;
  if (HasNoInfiniBand(view.environment) && IsOfInfiniBand(view.given.name)) return;  // reported as without effect
  const bool of_nccl = ProductOf(view.given.name) == "NCCL";
  if (const PastDefault* past = FindPastDefault(view.given.name, view.value, of_nccl ? view.nccl : 0))
    return sheet.Add(LintKind::old_default, of_nccl ? LintLevel::warning : LintLevel::note, view.environment,
                     view.given,
                     Assignment(view) + " was the default before " + std::string(ProductOf(view.given.name)) + " " +
                         ReleaseWords(past->changed) + ": " + std::string(past->reason),
                     UnsetAdvice(*view.known));
  if (view.lone && IsInsideHost(view.given.name))
    return sheet.Add(LintKind::no_effect, LintLevel::note, view.environment, view.given,
                     Assignment(view) +
                         " has no effect: NCCL_HOSTID makes each of these processes a host of its own, "
                         "and P2P and shared memory are used inside a host only",
                     "give all processes of one host the same NCCL_HOSTID, or unset it; then check whether this "
                     "setting is still wanted");
  CheckHarm(view, sheet);
}

}  // namespace tacet
