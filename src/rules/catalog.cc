// SPDX-License-Identifier: Apache-2.0
#include "rules/rule.h"

namespace tacet {

extern const Rule kRankStuckOnHostRule, kRankFrozenRule, kRankDeadRule, kRankOutOfMemoryRule, kApplicationExceptionRule,
    kGpuStalledRule, kGpuFaultRule, kCollectiveMismatchOperationRule, kCollectiveMismatchSizeRule,
    kCollectiveMismatchDtypeRule, kCollectiveMismatchReductionRule, kCollectiveMismatchRootRule, kCollectiveSkippedRule,
    kCollectiveExtraRule, kGroupOrderInversionRule, kP2pCycleRule, kP2pUnmatchedRule, kDdpUnusedParametersRule,
    kInitRankMissingRule, kInitNoInterfaceRule, kInitUnreachableRule, kInitMismatchRule, kNetworkFaultRule,
    kTimeoutTooShortRule, kTransportStalledRule, kTransportFallbackRule, kEnvironmentCripplesRule,
    kStragglerComputeRule, kStragglerHostRule, kStragglerIntermittentRule, kStragglerStageRule, kStragglerDataRule,
    kWrongResultsRule, kSharedMemoryFullRule, kDiskFullRule, kPortInUseRule, kKilledBySchedulerRule, kP2pBrokenRule,
    kRdmaBrokenRule, kFabricManagerDownRule, kWrongInterfaceRule, kEnvironmentDiffersRule, kEnvironmentMistakeRule,
    kForeignConnectionRule, kModelDiffersRule, kCommunicatorSharedByThreadsRule, kRingBrokenRule,
    kGraphSearchFailedRule, kNicCountUnequalRule, kNodeLowersGraphRule, kNicPathThroughCpuRule, kRingReentersNodeRule,
    kNicUnbalancedRule, kRailsCrossedRule, kSlowLinkRule, kBandwidthBelowModelRule, kAlgorithmMisfitRule, kPxnOffRule,
    kNvlsNotConnectedRule, kChannelsLimitedRule, kRankOrderScatteredRule, kRankUnlikeOthersRule, kLl128LostRule,
    kTrainingNotFiniteRule, kTrainingDegenerateRule, kStepsSlowDownRule, kResourcesPendingRule, kPortNotActiveRule,
    kLinkErrorsRule, kPcieFaultRule, kDataLoadingSlowRule, kLowUtilizationRule, kNodeUnavailableRule,
    kStorageUnreachableRule;

struct CatalogRow {
  const Rule* rule;
  RuleGroup group;
};

static constexpr CatalogRow kCatalog[] = {
    {&kRankStuckOnHostRule, RuleGroup::processes},
    {&kRankFrozenRule, RuleGroup::processes},
    {&kRankDeadRule, RuleGroup::processes},
    {&kRankOutOfMemoryRule, RuleGroup::processes},
    {&kApplicationExceptionRule, RuleGroup::processes},
    {&kGpuStalledRule, RuleGroup::devices},
    {&kGpuFaultRule, RuleGroup::devices},
    {&kPcieFaultRule, RuleGroup::devices},
    {&kStorageUnreachableRule, RuleGroup::devices},
    {&kCollectiveMismatchOperationRule, RuleGroup::calls},
    {&kCollectiveMismatchSizeRule, RuleGroup::calls},
    {&kCollectiveMismatchDtypeRule, RuleGroup::calls},
    {&kCollectiveMismatchReductionRule, RuleGroup::calls},
    {&kCollectiveMismatchRootRule, RuleGroup::calls},
    {&kCollectiveSkippedRule, RuleGroup::calls},
    {&kCollectiveExtraRule, RuleGroup::calls},
    {&kGroupOrderInversionRule, RuleGroup::calls},
    {&kP2pCycleRule, RuleGroup::calls},
    {&kP2pUnmatchedRule, RuleGroup::calls},
    {&kDdpUnusedParametersRule, RuleGroup::calls},
    {&kWrongResultsRule, RuleGroup::numbers},
    {&kTrainingNotFiniteRule, RuleGroup::numbers},
    {&kTrainingDegenerateRule, RuleGroup::numbers},
    {&kInitRankMissingRule, RuleGroup::start},
    {&kInitNoInterfaceRule, RuleGroup::start},
    {&kInitUnreachableRule, RuleGroup::start},
    {&kInitMismatchRule, RuleGroup::start},
    {&kNetworkFaultRule, RuleGroup::network},
    {&kTimeoutTooShortRule, RuleGroup::calls},
    {&kTransportStalledRule, RuleGroup::network},
    {&kStragglerComputeRule, RuleGroup::steps},
    {&kStragglerHostRule, RuleGroup::steps},
    {&kStragglerIntermittentRule, RuleGroup::steps},
    {&kStragglerStageRule, RuleGroup::steps},
    {&kStragglerDataRule, RuleGroup::steps},
    {&kStepsSlowDownRule, RuleGroup::steps},
    {&kPortNotActiveRule, RuleGroup::network},
    {&kLinkErrorsRule, RuleGroup::network},
    {&kDataLoadingSlowRule, RuleGroup::steps},
    {&kLowUtilizationRule, RuleGroup::steps},
    {&kTransportFallbackRule, RuleGroup::paths},
    {&kRingBrokenRule, RuleGroup::paths},
    {&kGraphSearchFailedRule, RuleGroup::paths},
    {&kNicCountUnequalRule, RuleGroup::paths},
    {&kNodeLowersGraphRule, RuleGroup::paths},
    {&kNicPathThroughCpuRule, RuleGroup::paths},
    {&kRingReentersNodeRule, RuleGroup::paths},
    {&kNicUnbalancedRule, RuleGroup::paths},
    {&kRailsCrossedRule, RuleGroup::paths},
    {&kPxnOffRule, RuleGroup::paths},
    {&kNvlsNotConnectedRule, RuleGroup::paths},
    {&kChannelsLimitedRule, RuleGroup::paths},
    {&kRankOrderScatteredRule, RuleGroup::paths},
    {&kRankUnlikeOthersRule, RuleGroup::paths},
    {&kLl128LostRule, RuleGroup::paths},
    {&kSlowLinkRule, RuleGroup::paths},
    {&kBandwidthBelowModelRule, RuleGroup::paths},
    {&kAlgorithmMisfitRule, RuleGroup::paths},
    {&kEnvironmentCripplesRule, RuleGroup::settings},
    {&kSharedMemoryFullRule, RuleGroup::devices},
    {&kDiskFullRule, RuleGroup::devices},
    {&kPortInUseRule, RuleGroup::start},
    {&kKilledBySchedulerRule, RuleGroup::processes},
    {&kResourcesPendingRule, RuleGroup::start},
    {&kNodeUnavailableRule, RuleGroup::start},
    {&kP2pBrokenRule, RuleGroup::network},
    {&kRdmaBrokenRule, RuleGroup::network},
    {&kFabricManagerDownRule, RuleGroup::devices},
    {&kWrongInterfaceRule, RuleGroup::start},
    {&kEnvironmentDiffersRule, RuleGroup::settings},
    {&kEnvironmentMistakeRule, RuleGroup::settings},
    {&kForeignConnectionRule, RuleGroup::start},
    {&kModelDiffersRule, RuleGroup::start},
    {&kCommunicatorSharedByThreadsRule, RuleGroup::calls},
};

std::span<const Rule* const> AllRules() {
  static const std::vector<const Rule*> kRules = [] {
    std::vector<const Rule*> rules;
    for (const CatalogRow& row : kCatalog) rules.push_back(row.rule);
    return rules;
  }();
  return kRules;
}

std::string_view Name(RuleGroup group) {
  switch (group) {
    case RuleGroup::processes: return "A process stops, fails or ends";
    case RuleGroup::devices: return "A GPU, a host or its storage fails";
    case RuleGroup::calls: return "Ranks do not issue the same calls, or not in time";
    case RuleGroup::numbers: return "Wrong numbers";
    case RuleGroup::start: return "The job does not start, or not as intended";
    case RuleGroup::network: return "Connections fail";
    case RuleGroup::steps: return "Slow steps";
    case RuleGroup::paths: return "Slow paths between ranks";
    case RuleGroup::settings: return "Settings";
  }
  return "";
}

std::vector<const Rule*> RulesIn(RuleGroup group) {
  std::vector<const Rule*> rules;
  for (const CatalogRow& row : kCatalog)
    if (row.group == group) rules.push_back(row.rule);
  return rules;
}

const Rule* FindRule(std::string_view id) {
  for (const Rule* rule : AllRules())
    if (rule->id == id) return rule;
  return nullptr;
}

}  // namespace tacet
