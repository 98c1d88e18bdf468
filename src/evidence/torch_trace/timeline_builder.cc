// SPDX-License-Identifier: Apache-2.0
#include "timeline_builder.h"

#include <algorithm>

#include "base/json_reader.h"
#include "base/text_scan.h"
#include "matrix_flops.h"
#include "model/kernel_name.h"

namespace tacet {
namespace {

// -1 where the product does not fit: no tensor is that large.
int64_t ElementsOf(const std::vector<int64_t>& sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(elements, size, &elements)) return -1;
  return elements;
}

// "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
bool IsDataLoading(std::string_view name) { return Contains(name, "DataLoader") || Contains(name, "dataloader"); }

// A kernel with its launch, and nothing else, takes about this much text.
constexpr uint64_t kBytesOfKernel = 600;

}  // namespace

TimelineBuilder::TimelineBuilder(Fragment& fragment, uint64_t expected_bytes) : fragment_(fragment) {
  const size_t kernels = std::min<size_t>(expected_bytes / kBytesOfKernel, kMaxGpuEvents);
  timeline_.gpu.reserve(kernels);
  launches_.reserve(kernels);
}

Reading TimelineBuilder::OnEvent(std::string_view text) {
  TraceEventRecord event;
  ++events_;
  if (!ParseTraceEvent(text, &event)) return Reading::not_understood;
  switch (event.kind) {
    case TraceEventKind::other: return Reading::ignored;
    case TraceEventKind::kernel: TakeGpu(event, ClassifyKernel(event.name)); break;
    case TraceEventKind::copy: TakeGpu(event, GpuWork::copy); break;
    case TraceEventKind::memset: TakeGpu(event, GpuWork::memset); break;
    case TraceEventKind::runtime:
      if (!TakeRuntime(event)) return Reading::ignored;
      break;
    case TraceEventKind::communication: TakeCommunication(event); break;
    case TraceEventKind::matrix: {
      const double flops = MatrixFlops(event.name, ParseDims(event.input_dims));
      if (flops > 0 && timeline_.matrix_work.size() < kMaxSmallEvents)
        timeline_.matrix_work.push_back({event.start_ns, flops});
      break;
    }
    case TraceEventKind::annotation: TakeAnnotation(event); break;
    case TraceEventKind::memory: TakeMemory(event); break;
    case TraceEventKind::gradient: TakeGradient(event); break;
  }
  return Reading::understood;
}

void TimelineBuilder::Extend(int64_t start_ns, int64_t end_ns) {
  if (timeline_.begin_ns == kNoTime || start_ns < timeline_.begin_ns) timeline_.begin_ns = start_ns;
  if (timeline_.end_ns == kNoTime || end_ns > timeline_.end_ns) timeline_.end_ns = end_ns;
}

StringId TimelineBuilder::Name(std::string_view raw) {
  if (!Contains(raw, "\\")) return timeline_.names.Intern(raw);
  return timeline_.names.Intern(JsonReader::Unescape(raw));
}

uint16_t TimelineBuilder::StreamIndex(int32_t device, int64_t stream) {
  const auto next = static_cast<uint16_t>(std::min<size_t>(timeline_.streams.size(), 0xffff));
  const auto [found, added] = streams_.try_emplace({device, stream}, next);
  if (!added) return found->second;
  if (next == 0xffff) {
    found->second = 0;  // 65 thousand streams are no real trace; the work is kept, its stream is not told apart
    return 0;
  }
  timeline_.streams.push_back({device, stream});
  return next;
}

uint32_t TimelineBuilder::ThreadIndex(int64_t tid) {
  const auto [found, added] = threads_.try_emplace(tid, static_cast<uint32_t>(timeline_.threads.size()));
  if (added) timeline_.threads.push_back(tid);
  return found->second;
}

void TimelineBuilder::TakeGpu(const TraceEventRecord& event, GpuWork work) {
  if (timeline_.gpu.size() >= kMaxGpuEvents || streams_.size() > kMaxSmallEvents) {
    ++dropped_;
    return;
  }
  GpuEvent gpu;
  gpu.start_ns = event.start_ns;
  gpu.end_ns = event.start_ns + event.duration_ns;
  gpu.name = Name(event.name);
  gpu.work = event.collective.any() ? GpuWork::communication : work;
  const int64_t device = event.device >= 0 ? event.device : event.pid;
  gpu.stream = StreamIndex(static_cast<int32_t>(std::clamp<int64_t>(device, -1, INT32_MAX)),
                           event.stream >= 0 ? event.stream : event.tid);
  // Until the launches are joined this holds the correlation.
  gpu.launch =
      event.correlation >= 0 && event.correlation < kNoIndex ? static_cast<uint32_t>(event.correlation) : kNoIndex;
  if (gpu.work == GpuWork::communication && event.kind == TraceEventKind::kernel) {
    gpu.collective = static_cast<uint32_t>(kernels_.size());
    CommunicationKernel kernel;
    kernel.has_arguments = event.collective.any();
    kernel.operation = ToCollective(event.collective);
    if (kernel.operation.kind == OpKind::unknown) kernel.operation.kind = OperationOfKernel(event.name);
    if (kernel.operation.type == DataType::unknown) kernel.operation.type = DataTypeOfKernel(event.name);
    // Old versions repeat the correlation as External id: that is no operator's number.
    kernel.external_id = event.external_id == event.correlation ? -1 : event.external_id;
    kernels_.push_back(kernel);
  }
  Extend(gpu.start_ns, gpu.end_ns);
  timeline_.gpu.push_back(gpu);
}

bool TimelineBuilder::TakeRuntime(const TraceEventRecord& event) {
  const uint32_t duration = static_cast<uint32_t>(std::min<int64_t>(event.duration_ns, UINT32_MAX));
  if (IsLaunchCall(event.name) && event.correlation >= 0 && event.correlation < kNoIndex &&
      launches_.size() < kMaxGpuEvents) {
    launches_.push_back({static_cast<uint32_t>(event.correlation), duration, event.start_ns, ThreadIndex(event.tid)});
    if (pid_ < 0) pid_ = event.pid;
    return true;
  }
  if (IsDeviceWait(event.name) && timeline_.ranges.size() < kMaxSmallEvents) {
    timeline_.ranges.push_back({event.start_ns, event.start_ns + event.duration_ns, Name(event.name),
                                ThreadIndex(event.tid), HostWork::device_wait});
    Extend(event.start_ns, event.start_ns + event.duration_ns);
    return true;
  }
  return false;
}

TraceCollective TimelineBuilder::ToCollective(const CollectiveArguments& arguments) {
  TraceCollective out;
  if (!arguments.any()) return out;
  out.kind = ParseOpKind(arguments.name);
  out.type = ParseDataType(arguments.type);
  out.group = FindGroup(arguments);
  out.group_size = static_cast<int32_t>(std::clamp<int64_t>(arguments.group_size, -1, INT32_MAX));
  out.seq = arguments.seq;
  out.in_elements = arguments.in_elements;
  out.out_elements = arguments.out_elements;
  const int64_t peer = out.kind == OpKind::recv ? arguments.source : arguments.destination;
  if (peer >= 0 && peer < INT32_MAX) out.peer = {static_cast<int32_t>(peer)};
  return out;
}

void TimelineBuilder::TakeCommunication(const TraceEventRecord& event) {
  if (event.collective.name == "wait" || calls_.size() >= kMaxSmallEvents) return;
  CommunicationCall call;
  call.operation = ToCollective(event.collective);
  call.operation.enter_ns = event.start_ns;
  call.end_ns = event.start_ns + event.duration_ns;
  call.external_id = event.external_id;
  call.thread = ThreadIndex(event.tid);
  Extend(event.start_ns, call.end_ns);
  calls_.push_back(call);
}

void TimelineBuilder::TakeAnnotation(const TraceEventRecord& event) {
  const int64_t end_ns = event.start_ns + event.duration_ns;
  Extend(event.start_ns, end_ns);
  std::string_view step = event.name;
  int64_t number = 0;
  if (TakeLiteral(step, "ProfilerStep#") && TakeNumber(step, &number)) {
    if (timeline_.steps.size() < kMaxSmallEvents) timeline_.steps.push_back({number, event.start_ns, end_ns});
    if (pid_ < 0) pid_ = event.pid;
    return;
  }
  if (event.name.starts_with("nccl:")) {
    CommunicationCall call;
    call.operation.kind = ParseOpKind(event.name);
    call.operation.enter_ns = event.start_ns;
    const auto dims = ParseDims(event.input_dims);
    if (!dims.empty()) call.operation.in_elements = ElementsOf(dims.front());
    call.end_ns = end_ns;
    call.thread = ThreadIndex(event.tid);
    call.from_annotation = true;
    if (calls_.size() < kMaxSmallEvents) calls_.push_back(call);
    return;
  }
  if (timeline_.ranges.size() >= kMaxSmallEvents) return;
  timeline_.ranges.push_back({event.start_ns, end_ns, Name(event.name), ThreadIndex(event.tid),
                              IsDataLoading(event.name) ? HostWork::data_loading : HostWork::annotation});
}

// "Input type": ["c10::BFloat16"], "Input Dims": [[8192, 1024]]; without record_shapes there are none.
void TimelineBuilder::TakeGradient(const TraceEventRecord& event) {
  const auto dims = ParseDims(event.input_dims);
  if (dims.empty() || timeline_.gradients.size() >= kMaxSmallEvents) return;
  std::string_view type = event.input_types;
  type.remove_prefix(std::min(type.size(), type.find('"') + 1));
  type = type.substr(0, type.find('"'));
  if (type.starts_with("c10::")) type.remove_prefix(5);
  const int64_t elements = ElementsOf(dims.front());
  if (elements > 0)
    timeline_.gradients.push_back(
        {event.start_ns + event.duration_ns, elements, ThreadIndex(event.tid), ParseDataType(type)});
}

void TimelineBuilder::TakeMemory(const TraceEventRecord& event) {
  if (event.name == "[OutOfMemory]") {
    if (timeline_.out_of_memory_ns == kNoTime) timeline_.out_of_memory_ns = event.start_ns;
    return;
  }
  // Device type 0 is the CPU; the others are accelerators.
  if (event.device_type <= 0 || event.allocated < 0) return;
  auto& samples = timeline_.memory;
  samples.push_back({event.start_ns, event.allocated, event.reserved});
  if (samples.size() < kMaxMemorySamples) return;
  for (size_t i = 0; i + 1 < samples.size(); i += 2)
    samples[i / 2] = samples[i].allocated >= samples[i + 1].allocated ? samples[i] : samples[i + 1];
  samples.resize(samples.size() / 2);
}

}  // namespace tacet
