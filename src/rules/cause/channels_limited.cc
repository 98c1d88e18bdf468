// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

// Variables that cap channels. Very low values are named as environment-cripples.
const Event* CapOf(const TopologyChecks& checks) {
  for (const std::string_view name : {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS", "NCCL_NCHANNELS"})
    if (const Event* setting = checks.Setting(name)) return setting;
  return nullptr;
}

// NCCL takes twice the channels of the lesser graph. 0 where a node's searches are not known: it may have found less.
int32_t ChannelsOfGraphs(const Case& facts, const CommView& comm) {
  const TopologyView& view = facts.analyses.topology;
  int32_t least = INT32_MAX, known = 0;
  for (uint32_t node = 0; node < view.nodes.size(); ++node) {
    const NcclGraphSearch* ring = GraphOfNode(facts.incident, comm, node, NcclAlgorithm::ring);
    const NcclGraphSearch* tree = GraphOfNode(facts.incident, comm, node, NcclAlgorithm::tree);
    if (!ring || !tree) continue;
    ++known;
    least = std::min({least, ring->channels, tree->channels});
  }
  const int minor = MinorReleaseOf(facts.incident, comm);
  const int32_t most = minor >= 0 && minor < 25 ? 32 : 64;  // what a release has room for
  return known > 0 && known == comm.nodes ? std::min(2 * least, most) : 0;
}

RuleAnswer JudgeChannels(const Case& facts) {
  RuleAnswer answer;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  for (const CommView& comm : facts.analyses.topology.comms) {
    const int32_t graphs = ChannelsOfGraphs(facts, comm);
    if (graphs <= 0 || comm.coll_channels <= 0 || comm.coll_channels >= graphs || comm.setups.empty()) continue;
    const NcclSetup& setup = facts.incident.nccl_setups[comm.setups.front()];
    if (facts.incident.strings.Get(setup.version).starts_with("RCCL")) continue;  // which counts differently
    const Event* cap = CapOf(checks);
    constexpr int32_t kNamedElsewhere = 4;
    if (cap && comm.coll_channels <= kNamedElsewhere) continue;
    // Without a variable to name, a few channels less may have reasons that the log does not show.
    if (!cap && comm.coll_channels * 4 > graphs * 3) continue;
    Finding finding = DegradedFinding("channels-limited");
    finding.group = comm.group;
    finding.headline = "The communicator of " + std::to_string(comm.ranks) + " ranks uses " +
                       std::to_string(comm.coll_channels) + (comm.coll_channels == 1 ? " channel" : " channels") +
                       "; its graphs allow " + std::to_string(graphs);
    finding.headline +=
        cap ? ": " + cap->As<EnvironmentSetting>().name + "=" + cap->As<EnvironmentSetting>().value + " caps them"
            : ": the application asks for fewer (maxCTAs of the communicator)" +
                  std::string(
                      static_cast<int32_t>(comm.setups.size()) < comm.ranks ? ", or a rank that left no log does" : "");
    if (!cap) finding.confidence = Confidence::likely;
    if (cap) finding.evidence.push_back(CiteEvent(*cap, "the setting that caps the channels"));
    if (const NcclGraphSearch* ring = setup.GraphOf(NcclAlgorithm::ring))
      finding.evidence.push_back(CiteGraph(*ring, "the search found this many channels; NCCL uses twice as many"));
    answer.findings.push_back(std::move(finding));
    break;
  }
  return answer;
}

}  // namespace

extern const Rule kChannelsLimitedRule;
const Rule kChannelsLimitedRule = {
    "channels-limited",
    "Fewer channels than the graph allows",
    "NCCL logs (INIT, GRAPH) of at least one rank of each node",
    "NCCL found room for more channels than the communicator uses. Bandwidth grows with the number of channels until "
    "the links are full.",
    "A communicator that overlaps with computation may be given few channels on purpose (maxCTAs): then the loss is "
    "intended. NCCL_MAX_NCHANNELS of 4 or less is reported as environment-cripples.",
    {"Remove NCCL_MAX_NCHANNELS or NCCL_MAX_CTAS, or raise maxCTAs where the program sets it "
     "(ProcessGroupNCCL.Options.config.max_ctas).",
     "Measure both: all_reduce_perf with and without the cap."},
    {"Keep NCCL_* variables out of shared images."},
    JudgeChannels};

}  // namespace tacet
