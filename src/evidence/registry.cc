// SPDX-License-Identifier: Apache-2.0
#include "evidence/registry.h"

namespace tacet {

extern const Format kBlackBoxFormat;
extern const Format kFlightRecorderFormat;
extern const Format kInspectorFormat;
extern const Format kKernelLogFormat;
extern const Format kNcclLogFormat;
extern const Format kNcclTestsFormat;
extern const Format kNsysFormat;
extern const Format kNvidiaSmiFormat;
extern const Format kPipelineTraceFormat;
extern const Format kRasFormat;
extern const Format kRunRecordFormat;
extern const Format kStacksFormat;
extern const Format kTopologyXmlFormat;
extern const Format kTorchLogFormat;
extern const Format kTorchTraceFormat;

std::span<const Format* const> AllFormats() {
  static constexpr const Format* kFormats[] = {
      &kBlackBoxFormat,   &kFlightRecorderFormat, &kInspectorFormat, &kKernelLogFormat,   &kNcclLogFormat,
      &kNcclTestsFormat,  &kNsysFormat,           &kRasFormat,       &kStacksFormat,      &kTorchLogFormat,
      &kTorchTraceFormat, &kPipelineTraceFormat,  &kNvidiaSmiFormat, &kTopologyXmlFormat, &kRunRecordFormat,
  };
  return kFormats;
}

}  // namespace tacet
