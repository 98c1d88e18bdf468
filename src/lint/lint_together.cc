// SPDX-License-Identifier: Apache-2.0
// What is wrong with variables together: in one environment, and between environments.
#include <algorithm>
#include <map>
#include <set>

#include "base/text_scan.h"
#include "lint/lint_sheet.h"
#include "lint/value_reading.h"

namespace tacet {
namespace {

int64_t NumberIn(const GivenEnvironment& environment, std::string_view name, int64_t otherwise) {
  const GivenVariable* given = FindGiven(environment, name);
  return given != nullptr && given->value_known && !given->value.empty() ? ReadNcclNumber(given->value).value
                                                                         : otherwise;
}

std::string ValueIn(const GivenEnvironment& environment, std::string_view name) {
  const GivenVariable* given = FindGiven(environment, name);
  return given != nullptr ? given->value : "";
}

void NoEffect(const GivenEnvironment& environment, std::string_view name, const std::string& why, std::string advice,
              LintSheet& sheet) {
  if (const GivenVariable* given = FindGiven(environment, name))
    sheet.Add(LintKind::no_effect, LintLevel::note, environment, *given, std::string(name) + " has no effect: " + why,
              std::move(advice));
}

bool ChoosesSockets(const GivenEnvironment& environment) {
  const std::string net = ValueIn(environment, "NCCL_NET");
  return net == "Socket" || net == "socket";
}

}  // namespace

bool HasNoInfiniBand(const GivenEnvironment& environment) {
  return NumberIn(environment, "NCCL_IB_DISABLE", 0) == 1 || ChoosesSockets(environment);
}

bool IsOfInfiniBand(std::string_view name) { return name.starts_with("NCCL_IB_") && name != "NCCL_IB_DISABLE"; }

namespace {

void CheckNetwork(const GivenEnvironment& environment, LintSheet& sheet) {
  const bool disabled = NumberIn(environment, "NCCL_IB_DISABLE", 0) == 1;
  std::set<std::string_view> told;
  for (const GivenVariable& given : environment.variables) {
    if (!IsOfInfiniBand(given.name) || !FindKnownVariable(given.name)) continue;
    if (HasNoInfiniBand(environment) && told.insert(given.name).second)
      NoEffect(environment, given.name,
               disabled ? "NCCL_IB_DISABLE=1 forbids InfiniBand"
                        : "NCCL_NET=" + ValueIn(environment, "NCCL_NET") + " chooses sockets",
               "unset one of the two", sheet);
  }
  if (NumberIn(environment, "NCCL_SOCKET_NTHREADS", 1) * NumberIn(environment, "NCCL_NSOCKS_PERTHREAD", 1) > 64)
    if (const GivenVariable* given = FindGiven(environment, "NCCL_NSOCKS_PERTHREAD"))
      sheet.Add(LintKind::misread, LintLevel::warning, environment, *given,
                "NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD is above 64, and is reduced to 64",
                "keep the product at 64 or less");
  if (ValueIn(environment, "FI_PROVIDER") == "efa")
    for (const std::string_view name : {"NCCL_ALGO", "NCCL_PROTO"})
      if (const GivenVariable* given = FindGiven(environment, name))
        sheet.Add(LintKind::risky, LintLevel::note, environment, *given,
                  std::string(name) + " is set on EFA, where the plugin's tuner makes the better choice", "unset it");
}

void CheckLogging(const GivenEnvironment& environment, LintSheet& sheet) {
  std::string level = ValueIn(environment, "NCCL_DEBUG");
  std::transform(level.begin(), level.end(), level.begin(),
                 [](unsigned char c) { return static_cast<char>(c | 0x20); });
  if (level != "info" && level != "trace" && level != "abort")
    NoEffect(environment, "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG is not INFO", "set NCCL_DEBUG=INFO, or unset it", sheet);
  if (level.empty() || level == "version")
    NoEffect(environment, "NCCL_DEBUG_FILE", "NCCL_DEBUG is not WARN, INFO or TRACE",
             "set NCCL_DEBUG=WARN or INFO, or unset it", sheet);
  if (NumberIn(environment, "NCCL_INSPECTOR_ENABLE", 0) == 1) {
    const GivenVariable* given = FindGiven(environment, "NCCL_INSPECTOR_ENABLE");
    if (FindGiven(environment, "NCCL_PROFILER_PLUGIN") == nullptr)
      NoEffect(environment, given->name, "NCCL_PROFILER_PLUGIN does not name the Inspector",
               "set NCCL_PROFILER_PLUGIN to its library", sheet);
    else if (NumberIn(environment, "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", -1) <= 0)
      sheet.Add(LintKind::no_effect, LintLevel::warning, environment, *given,
                "NCCL Inspector writes nothing: NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS is not set",
                "set NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS, for example to 1000000");
  }
  if (FindGiven(environment, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE") &&
      std::max(NumberIn(environment, "TORCH_NCCL_TRACE_BUFFER_SIZE", 0),
               NumberIn(environment, "TORCH_FR_BUFFER_SIZE", 0)) <= 0)
    NoEffect(environment, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "the flight recorder's buffer size is not set",
             "set TORCH_NCCL_TRACE_BUFFER_SIZE=2000", sheet);
}

// The winner, the loser and what is lost.
constexpr std::pair<std::string_view, std::string_view> kWinners[] = {
    {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"},
    {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"},
    {"TORCH_FR_CPP_STACK", "TORCH_NCCL_TRACE_CPP_STACK"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"},
    {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"},
    {"NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"},
    {"NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS"}};

void Overridden(const GivenEnvironment& environment, const GivenVariable& loser, const std::string& by,
                LintSheet& sheet) {
  sheet.Add(LintKind::overridden, LintLevel::note, environment, loser,
            loser.name + "=" + loser.value + " is overridden by " + by, "keep one of the two");
}

// "2097152 on rank 6; 4194304 on 7 others".
std::string HoldersOf(const std::map<std::string, std::vector<const GivenEnvironment*>>& by_value) {
  std::vector<const std::pair<const std::string, std::vector<const GivenEnvironment*>>*> order;
  order.reserve(by_value.size());
  for (const auto& entry : by_value) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](auto a, auto b) { return a->second.size() < b->second.size(); });
  std::string words;
  constexpr size_t kMostNamed = 3, kMostValues = 4;
  for (size_t i = 0; i < order.size() && i < kMostValues; ++i) {
    const auto& [value, holders] = *order[i];
    words += (words.empty() ? "" : "; ") + value + " on ";
    for (size_t j = 0; j < holders.size() && j < kMostNamed; ++j)
      words += (j == 0 ? "" : ", ") + (holders[j]->holder.empty() ? holders[j]->file : holders[j]->holder);
    if (holders.size() > kMostNamed) words += " and " + std::to_string(holders.size() - kMostNamed) + " more";
  }
  return order.size() > kMostValues ? words + "; ..." : words;
}

// Complete environments also tell what is not set.
void CompareRanks(const std::vector<const GivenEnvironment*>& ranks, const std::string& name, bool count_absent,
                  LintSheet& sheet) {
  std::map<std::string, std::vector<const GivenEnvironment*>> by_value;
  for (const GivenEnvironment* environment : ranks) {
    if (const GivenVariable* given = FindGiven(*environment, name))
      by_value[given->value].push_back(environment);
    else if (IsComplete(environment->source) && count_absent)
      by_value["not set"].push_back(environment);
  }
  if (by_value.size() < 2) return;
  const auto odd = std::min_element(by_value.begin(), by_value.end(),
                                    [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const GivenVariable* given = FindGiven(*odd->second.front(), name);
  const GivenVariable absent{name, odd->first};
  sheet.Add(LintKind::differs, ProductOf(name) == "NCCL" ? LintLevel::warning : LintLevel::note, *odd->second.front(),
            given ? *given : absent, name + " differs between ranks: " + HoldersOf(by_value),
            "set it to the same value everywhere; mpirun (-x), docker (-e) and ssh pass on only the variables they are "
            "given, and so does srun with --export=NAMES");
}

// What every process reads before its first communicator is set up, and what it reads by the time one is. Others are
// read on connecting, by those ranks alone that connect in such a way.
constexpr std::string_view kReadFirst[] = {"NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_NET", "NCCL_IB_DISABLE",
                                           "NCCL_IB_HCA"};
constexpr std::string_view kReadInSetup[] = {"NCCL_HOSTID", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"};

bool IsNamedIn(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A process that has passed the place where it would have read the variable, and shows none.
bool ShowsNone(const GivenEnvironment& environment, std::string_view name) {
  if (FindGiven(environment, name)) return false;
  return IsComplete(environment.source) || environment.setup_done ||
         (environment.setup_began && IsNamedIn(kReadFirst, name));
}

std::string HolderNames(const std::vector<const GivenEnvironment*>& holders) {
  constexpr size_t kMostNamed = 4;
  std::string words;
  for (size_t i = 0; i < holders.size() && i < kMostNamed; ++i)
    words.append(i == 0 ? "" : ", ").append(holders[i]->holder.empty() ? holders[i]->file : holders[i]->holder);
  if (holders.size() > kMostNamed) words += " and " + std::to_string(holders.size() - kMostNamed) + " more";
  return words;
}

bool IsOfARank(EnvironmentSource source) {
  return IsComplete(source) || source == EnvironmentSource::log || source == EnvironmentSource::manifest;
}

}  // namespace

void CheckCombinations(const GivenEnvironment& environment, ReleaseNumber, LintSheet& sheet) {
  const int64_t least = NumberIn(environment, "NCCL_MIN_NCHANNELS", -1),
                most = NumberIn(environment, "NCCL_MAX_NCHANNELS", -1);
  if (least > 0 && most > 0 && least > most)
    sheet.Add(LintKind::risky, LintLevel::warning, environment, *FindGiven(environment, "NCCL_MIN_NCHANNELS"),
              "NCCL_MIN_NCHANNELS=" + std::to_string(least) + " is above NCCL_MAX_NCHANNELS=" + std::to_string(most),
              "keep one of the two");
  CheckNetwork(environment, sheet);
  // What a log or a script does not hold may be set elsewhere.
  if (IsComplete(environment.source)) CheckLogging(environment, sheet);
  for (const auto& [winner, loser] : kWinners) {
    const GivenVariable *over = FindGiven(environment, winner), *under = FindGiven(environment, loser);
    if (over && under && over->value != under->value)
      Overridden(environment, *under, over->name + "=" + over->value, sheet);
  }
  if (environment.source != EnvironmentSource::script) return;
  std::map<std::string_view, const GivenVariable*> last;
  for (const GivenVariable& given : environment.variables) {
    if (given.conditional) continue;
    const auto [at, first] = last.try_emplace(given.name, &given);
    if (!first && at->second->value != given.value && !ProductOf(given.name).empty())
      Overridden(environment, *at->second, given.name + "=" + given.value + " in line " + std::to_string(given.line),
                 sheet);
    at->second = &given;
  }
}

void CheckOverridden(std::span<const GivenEnvironment> environments, LintSheet& sheet) {
  for (const GivenEnvironment& conf : environments) {
    if (conf.source != EnvironmentSource::user_conf && conf.source != EnvironmentSource::host_conf) continue;
    for (const GivenVariable& given : conf.variables)
      for (const GivenEnvironment& other : environments) {
        const bool wins = IsComplete(other.source) ||
                          (other.source == EnvironmentSource::user_conf && conf.source == EnvironmentSource::host_conf);
        if (!wins || (!conf.host.empty() && !other.host.empty() && conf.host != other.host)) continue;
        const GivenVariable* winner = FindGiven(other, given.name);
        if (winner == nullptr || winner->value == given.value) continue;
        Overridden(conf, given, winner->value + " of " + (other.file.empty() ? "the environment" : other.file), sheet);
        break;
      }
  }
}

void CheckDifferences(std::span<const GivenEnvironment> environments, LintSheet& sheet) {
  std::map<size_t, std::vector<const GivenEnvironment*>> jobs;
  for (const GivenEnvironment& environment : environments)
    if (IsOfARank(environment.source)) jobs[environment.job].push_back(&environment);
  for (const auto& [job, ranks] : jobs) {
    std::set<std::string> names;
    size_t complete = 0;
    for (const GivenEnvironment* environment : ranks) {
      complete += IsComplete(environment->source);
      for (const GivenVariable& given : environment->variables)
        if (const Variable* known = FindKnownVariable(given.name); known && known->agreement != Agreement::may)
          names.insert(given.name);
    }
    for (const std::string& name : names) CompareRanks(ranks, name, complete > 1, sheet);
  }
}

std::set<const GivenEnvironment*> FindLoneProcesses(std::span<const GivenEnvironment> environments) {
  std::map<std::pair<size_t, std::string>, std::vector<const GivenEnvironment*>> by_id;
  std::map<std::pair<size_t, std::string>, size_t> on_host;
  for (const GivenEnvironment& environment : environments) {
    if (!IsOfARank(environment.source) || environment.host.empty() || environment.host == "localhost") continue;
    ++on_host[{environment.job, environment.host}];
    if (const GivenVariable* given = FindGiven(environment, "NCCL_HOSTID");
        given && given->value_known && !given->value.empty())
      by_id[{environment.job, given->value}].push_back(&environment);
  }
  std::set<const GivenEnvironment*> lone;
  for (const auto& [id, holders] : by_id)
    if (holders.size() == 1 && on_host[{id.first, holders[0]->host}] > 1) lone.insert(holders[0]);
  return lone;
}

// NCCL_HOSTID tells NCCL which processes share a host: those that differ in it are on different hosts for NCCL. The
// name of the host decides here whether they share one; "localhost" is a name that machines have in common.
void CheckSplitHosts(std::span<const GivenEnvironment> environments, LintSheet& sheet) {
  std::map<std::pair<size_t, std::string>, std::map<std::string, std::vector<const GivenEnvironment*>>> hosts;
  for (const GivenEnvironment& environment : environments)
    if (const GivenVariable* given = FindGiven(environment, "NCCL_HOSTID");
        given && given->value_known && !given->value.empty() && IsOfARank(environment.source) &&
        !environment.host.empty() && environment.host != "localhost")
      hosts[{environment.job, environment.host}][given->value].push_back(&environment);
  for (const auto& [place, by_value] : hosts) {
    if (by_value.size() < 2) continue;
    const std::string& host = place.second;
    const GivenEnvironment& first = *by_value.begin()->second.front();
    sheet.Add(LintKind::slow, LintLevel::note, first, *FindGiven(first, "NCCL_HOSTID"),
              "NCCL_HOSTID differs between processes of " + host + " (" + HoldersOf(by_value) +
                  "): NCCL treats it as " + std::to_string(by_value.size()) +
                  " hosts and uses the network between them, never NVLink, PCIe or shared memory",
              "give all processes of one host the same value, or unset it; different values are right only for "
              "machines or containers that share this host name but cannot reach each other's memory");
    for (const auto& [value, holders] : by_value)
      for (const GivenEnvironment* environment : holders)
        if (const GivenVariable* interface = FindGiven(*environment, "NCCL_SOCKET_IFNAME");
            interface && (interface->value == "lo" || interface->value == "=lo"))
          sheet.Add(LintKind::risky, LintLevel::note, *environment, *interface,
                    "NCCL_SOCKET_IFNAME=" + interface->value +
                        " works inside one host only: other hosts cannot reach the loopback interface",
                    "name an interface that all hosts can reach before the job grows beyond " + host);
  }
}

// The ranks of one host start alike: what some of them lack was set for the others by hand, or got lost.
void CheckPartlySet(std::span<const GivenEnvironment> environments, LintSheet& sheet) {
  std::map<std::pair<size_t, std::string>, std::vector<const GivenEnvironment*>> hosts;
  for (const GivenEnvironment& environment : environments)
    if (IsOfARank(environment.source) && !environment.host.empty() && environment.host != "localhost")
      hosts[{environment.job, environment.host}].push_back(&environment);
  for (const auto& [place, processes] : hosts) {
    if (processes.size() < 2) continue;
    std::vector<std::string_view> names(std::begin(kReadFirst), std::end(kReadFirst));
    names.insert(names.end(), std::begin(kReadInSetup), std::end(kReadInSetup));
    for (const std::string_view name : names) {
      std::vector<const GivenEnvironment*> with, without;
      for (const GivenEnvironment* environment : processes) {
        if (FindGiven(*environment, name)) with.push_back(environment);
        if (ShowsNone(*environment, name)) without.push_back(environment);
      }
      // Complete environments that must agree are compared above, with what is not set.
      const Variable* known = FindKnownVariable(name);
      const bool compared = known && known->agreement != Agreement::may && IsComplete(processes.front()->source);
      if (with.empty() || without.empty() || compared) continue;
      const GivenVariable& given = *FindGiven(*with.front(), name);
      sheet.Add(LintKind::differs, LintLevel::note, *with.front(), given,
                std::string(name) + " is set on some processes of " + place.second + " only: " + HolderNames(with) +
                    " (" + given.value + "), not on " + HolderNames(without),
                "set it on all processes of the host, or on none");
    }
  }
}

void CheckSharedFiles(std::span<const GivenEnvironment> environments, LintSheet& sheet) {
  std::map<std::string_view, std::set<std::string>> values;
  for (const GivenEnvironment& environment : environments)
    if (const GivenVariable* given = FindGiven(environment, "NCCL_DEBUG_FILE"); given && IsOfARank(environment.source))
      values[given->name].insert(given->value);
  const bool per_rank = values["NCCL_DEBUG_FILE"].size() > 1;
  for (const GivenEnvironment& environment : environments) {
    const GivenVariable* given = FindGiven(environment, "NCCL_DEBUG_FILE");
    if (given == nullptr || !given->value_known || given->value.empty() || per_rank) continue;
    if (Contains(given->value, "%p") || given->value.starts_with("/dev/") || ValueIn(environment, "WORLD_SIZE") == "1")
      continue;
    // A log shows by itself that NCCL writes one.
    const bool unlogged = environment.source != EnvironmentSource::log &&
                          environment.source != EnvironmentSource::manifest && !FindGiven(environment, "NCCL_DEBUG");
    sheet.Add(LintKind::shared_file, LintLevel::warning, environment, *given,
              "NCCL_DEBUG_FILE=" + given->value + " is one file for all ranks" +
                  std::string(Contains(given->value, "%h") ? " of a host" : "") +
                  ", and every rank truncates it on opening" +
                  (unlogged ? "; while NCCL_DEBUG is not set, nothing is written" : ""),
              "put %h and %p into the name, for example nccl.%h.%p.log");
  }
}

}  // namespace tacet
