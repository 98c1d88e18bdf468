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
    kTrainingNotFiniteRule, kStepsSlowDownRule, kDataLoadingSlowRule, kLowUtilizationRule;

std::span<const Rule* const> AllRules() {
  static constexpr const Rule* kRules[] = {
      &kRankStuckOnHostRule,
      &kRankFrozenRule,
      &kRankDeadRule,
      &kRankOutOfMemoryRule,
      &kApplicationExceptionRule,
      &kGpuStalledRule,
      &kGpuFaultRule,
      &kCollectiveMismatchOperationRule,
      &kCollectiveMismatchSizeRule,
      &kCollectiveMismatchDtypeRule,
      &kCollectiveMismatchReductionRule,
      &kCollectiveMismatchRootRule,
      &kCollectiveSkippedRule,
      &kCollectiveExtraRule,
      &kGroupOrderInversionRule,
      &kP2pCycleRule,
      &kP2pUnmatchedRule,
      &kDdpUnusedParametersRule,
      &kWrongResultsRule,
      &kTrainingNotFiniteRule,
      &kInitRankMissingRule,
      &kInitNoInterfaceRule,
      &kInitUnreachableRule,
      &kInitMismatchRule,
      &kNetworkFaultRule,
      &kTimeoutTooShortRule,
      &kTransportStalledRule,
      &kStragglerComputeRule,
      &kStragglerHostRule,
      &kStragglerIntermittentRule,
      &kStragglerStageRule,
      &kStragglerDataRule,
      &kStepsSlowDownRule,
      &kDataLoadingSlowRule,
      &kLowUtilizationRule,
      &kTransportFallbackRule,
      &kRingBrokenRule,
      &kGraphSearchFailedRule,
      &kNicCountUnequalRule,
      &kNodeLowersGraphRule,
      &kNicPathThroughCpuRule,
      &kRingReentersNodeRule,
      &kNicUnbalancedRule,
      &kRailsCrossedRule,
      &kPxnOffRule,
      &kNvlsNotConnectedRule,
      &kChannelsLimitedRule,
      &kRankOrderScatteredRule,
      &kRankUnlikeOthersRule,
      &kLl128LostRule,
      &kSlowLinkRule,
      &kBandwidthBelowModelRule,
      &kAlgorithmMisfitRule,
      &kEnvironmentCripplesRule,
      &kSharedMemoryFullRule,
      &kDiskFullRule,
      &kPortInUseRule,
      &kKilledBySchedulerRule,
      &kP2pBrokenRule,
      &kRdmaBrokenRule,
      &kFabricManagerDownRule,
      &kWrongInterfaceRule,
      &kEnvironmentDiffersRule,
      &kEnvironmentMistakeRule,
      &kForeignConnectionRule,
      &kModelDiffersRule,
      &kCommunicatorSharedByThreadsRule,
  };
  return kRules;
}

const Rule* FindRule(std::string_view id) {
  for (const Rule* rule : AllRules())
    if (rule->id == id) return rule;
  return nullptr;
}

}  // namespace tacet
