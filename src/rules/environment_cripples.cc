// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <map>
#include <optional>

#include "rules/odd_holders.h"
#include "rules/rule.h"
#include "rules/told_finding.h"
#include "rules/words.h"

namespace tacet {
namespace {

int64_t Number(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Setting {
  std::string_view name;
  bool (*cripples)(std::string_view value);
  std::string_view cost;
  bool of_network = false;  // it costs nothing where all ranks are on one host
};

bool IsOn(std::string_view value) { return Number(value) == 1; }
bool IsOff(std::string_view value) { return Number(value) == 0; }
// "Ring" forces one; "Ring,Tree" leaves a choice, "^LL128" only excludes, "allreduce:ring" speaks of one function.
bool IsSingle(std::string_view value) {
  return !value.empty() && value.find_first_of("^,:;") == std::string_view::npos;
}

// What each costs is NCCL's documented effect, in order of magnitude only: the real price depends on the machine.
constexpr Setting kSettings[] = {
    {"NCCL_P2P_DISABLE", IsOn,
     "GPUs of one host no longer talk over NVLink or PCIe directly: several times slower inside a node"},
    {"NCCL_P2P_LEVEL", [](std::string_view v) { return v == "LOC" || v == "0"; },
     "direct GPU access is off: several times slower inside a node"},
    {"NCCL_SHM_DISABLE", IsOn, "ranks of one host talk over the network stack instead of shared memory"},
    {"NCCL_IB_DISABLE", IsOn, "InfiniBand and RoCE are not used: TCP sockets are 5 to 20 times slower", true},
    {"NCCL_NET", [](std::string_view v) { return v == "Socket" || v == "socket"; },
     "TCP sockets are forced where a faster network may exist", true},
    {"NCCL_NET_GDR_LEVEL", [](std::string_view v) { return v == "LOC" || v == "0"; },
     "GPUDirect RDMA is off: data is staged through host memory", true},
    {"NCCL_PXN_DISABLE", IsOn,
     "GPUs cannot use the network device next to another GPU: all_to_all crosses rails, and rings may go through the "
     "CPU",
     true},
    {"NCCL_ALGO", IsSingle, "one algorithm for every size: latency or bandwidth suffers at the other end"},
    {"NCCL_PROTO", IsSingle,
     "one protocol for every size: LL halves the bandwidth of large messages, Simple adds latency to small ones"},
    {"NCCL_MAX_NCHANNELS",
     [](std::string_view v) {
       const int64_t n = Number(v);
       return n > 0 && n <= 4;
     },
     "few channels cap the bandwidth"},
    {"NCCL_MAX_CTAS",
     [](std::string_view v) {
       const int64_t n = Number(v);
       return n > 0 && n <= 4;
     },
     "few blocks cap the bandwidth"},
    {"NCCL_MAX_NRINGS",
     [](std::string_view v) {
       const int64_t n = Number(v);
       return n > 0 && n <= 2;
     },
     "few rings cap the bandwidth"},
    {"NCCL_BUFFSIZE",
     [](std::string_view v) {
       const int64_t n = Number(v);
       return n > 0 && n < (1 << 20);
     },
     "small buffers stall the pipeline of large messages"},
    {"NCCL_NTHREADS",
     [](std::string_view v) {
       const int64_t n = Number(v);
       return n > 0 && n < 128;
     },
     "few threads cap the bandwidth of a channel"},
    {"NCCL_NVLS_ENABLE", IsOff, "NVLink SHARP is off: up to a third of the all_reduce bandwidth on NVSwitch machines"},
    {"NCCL_CHECK_POINTERS", IsOn, "every call checks its pointers"},
    {"NCCL_CHECK_MODE", [](std::string_view v) { return v == "DEBUG_GLOBAL"; },
     "every collective adds an exchange among all ranks"},
    {"NCCL_LAUNCH_MODE", [](std::string_view v) { return v == "GROUP"; }, "the legacy launch mode serialises launches"},
};

using Values = std::map<std::string, Holders>;  // name -> value -> where

Values CollectValues(const Case& facts) {
  Values values;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::environment) values[event.subject][event.text].push_back(&event);
  return values;
}

}  // namespace

extern const Rule kEnvironmentCripplesRule;

// `harmless`: the settings that cost nothing on one host, else all others.
static std::optional<Finding> CripplesFinding(const Case& facts, const Values& values, bool one_host, bool harmless) {
  Finding finding;
  ToldEvents told;
  std::string names, unset = "unset";
  for (const Setting& setting : kSettings) {
    const auto found = values.find(std::string(setting.name));
    if (found == values.end() || (one_host && setting.of_network) != harmless) continue;
    for (const auto& [value, events] : found->second) {
      if (!setting.cripples(value)) continue;
      for (const Event* event : events) TakeTold(facts, *event, told);
      names += (names.empty() ? "" : ", ") + std::string(setting.name) + "=" + value;
      if (!unset.ends_with(setting.name)) unset += " " + std::string(setting.name);
      finding.evidence.push_back(
          CiteEvent(*events.front(), std::string(setting.name) + "=" + value + ": " +
                                         (harmless ? "no network is used on one host" : std::string(setting.cost))));
    }
  }
  if (names.empty()) return std::nullopt;
  finding.cause = "environment-cripples";
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::certain;
  finding.ranks = told.ranks;
  finding.headline = harmless ? names + " costs nothing here: all ranks are on one host, and no network is used"
                              : "the environment forces slow paths on " + TellerWords(told) + ": " + names;
  finding.fix.assign(kEnvironmentCripplesRule.fix.begin(), kEnvironmentCripplesRule.fix.end());
  finding.fix.front() =
      unset + " (in the job script, the container image, /etc/nccl.conf, ~/.nccl.conf)" +
      (harmless ? " before the job is run on several hosts." : ", and measure again with nccl-tests.");
  return finding;
}

static RuleAnswer JudgeEnvironment(const Case& facts) {
  RuleAnswer answer;
  const Values values = CollectValues(facts);
  // Between ranks of one host no network is used: what it is forced to be costs nothing there.
  const bool one_host = NodesOf(facts.incident) == 1;
  if (auto finding = CripplesFinding(facts, values, one_host, false)) answer.findings.push_back(std::move(*finding));
  if (!one_host) return answer;
  if (auto finding = CripplesFinding(facts, values, one_host, true)) {
    finding->severity = Severity::note;
    finding->status = Status::healthy;
    finding->affected_ranks = std::move(finding->ranks);
    finding->ranks.clear();
    answer.findings.push_back(std::move(*finding));
  }
  return answer;
}

const Rule kEnvironmentCripplesRule = {
    "environment-cripples",
    "Environment variables force slow paths",
    "NCCL logs (ENV lines are on by default since 2.18)",
    "A variable switches off a fast transport, an algorithm or channels. Such settings are often left over from "
    "debugging, and may come from /etc/nccl.conf or "
    "~/.nccl.conf although NCCL says 'set by environment'.",
    "If the fast path does not exist on this machine, the setting changes nothing: then it costs nothing either. A "
    "fallback without any setting has a cause of its own.",
    {"Remove the named variables (job script, container image, /etc/nccl.conf, ~/.nccl.conf) and measure again with "
     "nccl-tests.",
     "If one of them was set to work around a hang, say so beside it and test it with every new NCCL."},
    {"Keep NCCL variables in one reviewed file for all jobs.",
     "Compare the ENV lines of all ranks: tuning variables must be equal everywhere."},
    JudgeEnvironment};

}  // namespace tacet
