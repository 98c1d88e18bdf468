// SPDX-License-Identifier: Apache-2.0
#include "evidence/registry.h"

namespace tacet {

extern const Format kBenchTableFormat;
extern const Format kBlackBoxFormat;
extern const Format kFlightRecorderFormat;
extern const Format kHostTableFormat;
extern const Format kInspectorFormat;
extern const Format kIperf3Format;
extern const Format kKernelLogFormat;
extern const Format kNcclLogFormat;
extern const Format kNcclTestsFormat;
extern const Format kNsysFormat;
extern const Format kNvbandwidthFormat;
extern const Format kNvidiaSmiFormat;
extern const Format kOsuFormat;
extern const Format kP2pLatencyFormat;
extern const Format kPerftestFormat;
extern const Format kPipelineTraceFormat;
extern const Format kPortTableFormat;
extern const Format kRasFormat;
extern const Format kRunRecordFormat;
extern const Format kStacksFormat;
extern const Format kTopologyXmlFormat;
extern const Format kTorchLogFormat;
extern const Format kTorchTraceFormat;

std::span<const Format* const> AllFormats() {
  static constexpr const Format* kFormats[] = {
      &kBlackBoxFormat,    &kFlightRecorderFormat, &kInspectorFormat, &kKernelLogFormat,   &kNcclLogFormat,
      &kNcclTestsFormat,   &kNsysFormat,           &kRasFormat,       &kStacksFormat,      &kTorchLogFormat,
      &kTorchTraceFormat,  &kPipelineTraceFormat,  &kNvidiaSmiFormat, &kTopologyXmlFormat, &kRunRecordFormat,
      &kNvbandwidthFormat, &kP2pLatencyFormat,     &kIperf3Format,    &kPerftestFormat,    &kOsuFormat,
      &kBenchTableFormat,  &kPortTableFormat,      &kHostTableFormat,
  };
  return kFormats;
}

}  // namespace tacet
