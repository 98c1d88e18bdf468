// SPDX-License-Identifier: Apache-2.0
#include "nsys_parse.h"

#include <string>
#include <unordered_map>

namespace tacet {
namespace {

// Times beyond this are rubbish; sums of two of them still fit.
constexpr int64_t kMaxNs = int64_t{1} << 61;
constexpr size_t kMaxName = 4096;  // of a kernel; templates get long
constexpr size_t kMaxStrings = size_t{1} << 22, kMaxRemembered = size_t{1} << 17;

class Reader {
 public:
  Reader(NsysDatabase& database, NsysSink& sink) : database_(database), sink_(sink) {}

  NsysReading Run() {
    ReadStrings();
    ReadMachine();
    ReadSchemas();
    ReadRuntime();
    ReadKernels();
    ReadCopies("CUPTI_ACTIVITY_KIND_MEMCPY", NsysGpuKind::copy, "Memcpy");
    ReadCopies("CUPTI_ACTIVITY_KIND_MEMSET", NsysGpuKind::memset, "Memset");
    // Graphs as a whole: nsys records their kernels one by one only with --cuda-graph-trace=node.
    ReadCopies("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", NsysGpuKind::graph, "CUDA graph");
    ReadRanges();
    return reading_;
  }

 private:
  // StringIds: 42, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
  void ReadStrings() {
    // A long recording has millions of strings of which few are asked for.
    if (database_.IsKeyedById("StringIds")) return;
    database_.Read("StringIds", {"id", "value"}, [&](const NsysRow& row) {
      const std::string_view text = row.Text(1).substr(0, kMaxName);
      reading_.value_bytes += text.size() + 8;
      if (strings_.size() < kMaxStrings) strings_.try_emplace(row.Int(0), text);
    });
  }

  // Valid until the next call.
  std::string_view StringOf(const NsysRow& row, int column) {
    if (row.IsNull(column)) return {};
    const int64_t id = row.Int(column);
    if (const auto found = strings_.find(id); found != strings_.end()) return found->second;
    if (!database_.IsKeyedById("StringIds")) return {};
    if (strings_.size() >= kMaxRemembered) strings_.clear();
    const std::string& text = strings_[id] = database_.TextById("StringIds", id, kMaxName);
    reading_.value_bytes += text.size() + 8;
    return text;
  }

  // TARGET_INFO_SESSION_START_TIME: utcEpochNs 1731628800000000000
  // TARGET_INFO_SYSTEM_ENV: "Hostname", "node01"
  // TARGET_INFO_GPU: id 0, "NVIDIA H100 80GB HBM3", totalMemory 85899345920, smCount 132
  // TARGET_INFO_CUDA_DEVICE: gpuId 3, cudaId 0, pid 4711
  void ReadMachine() {
    database_.Read("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [&](const NsysRow& row) {
      const int64_t utc = row.Int(0);
      if (utc <= 0 || utc > kMaxNs || reading_.has_session_start) return;
      reading_.has_session_start = true;
      sink_.OnSessionStart(utc);
    });
    database_.Read("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&](const NsysRow& row) {
      if (row.Text(0) == "Hostname") sink_.OnHost(row.Text(1).substr(0, 255));
    });
    std::unordered_map<int64_t, std::pair<NsysDeviceRecord, std::string>> gpus;
    database_.Read("TARGET_INFO_GPU",
                   {"id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor", "cuDevice"},
                   [&](const NsysRow& row) {
                     if (gpus.size() >= 4096) return;
                     auto& [gpu, name] = gpus[row.Int(0)];
                     gpu = {-1, row.Int(6, row.Int(0)), row.Int(0), {}, row.Int(2), row.Int(4), row.Int(5), row.Int(3)};
                     name = row.Text(1).substr(0, 255);
                   });
    bool mapped = false;
    database_.Read("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"}, [&](const NsysRow& row) {
      const auto found = gpus.find(row.Int(0));
      if (found == gpus.end()) return;
      NsysDeviceRecord device = found->second.first;
      device.name = found->second.second;
      device.cuda_id = row.Int(1);
      device.pid = row.Int(2);
      mapped = true;
      sink_.OnDevice(device);
    });
    for (auto& [id, gpu] : gpus) {
      gpu.first.name = gpu.second;
      if (!mapped) sink_.OnDevice(gpu.first);
    }
  }

  void ReadSchemas() {
    database_.Read("NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "type", "name", "offset"},
                   [&](const NsysRow& row) {
                     schemas_.Add(static_cast<uint64_t>(row.Int(0)), static_cast<uint64_t>(row.Int(1)), row.Int(2),
                                  row.IsNull(3) ? std::string_view() : row.Text(3), row.Int(4));
                   });
  }

  bool TakeTimes(const NsysRow& row, int64_t* start, int64_t* end) {
    *start = row.Int(0, INT64_MIN);
    *end = row.Int(1, INT64_MIN);
    reading_.value_bytes += 48;
    const bool fits = *start >= 0 && *end >= *start && *end < kMaxNs;
    if (!fits) ++reading_.odd_rows;
    return fits;
  }

  void ReadRuntime() {
    // Driver calls have a table of their own in some versions.
    for (const std::string_view table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"})
      database_.Read(table, {"start", "end", "correlationId", "globalTid", "nameId"}, [&](const NsysRow& row) {
        NsysRuntimeRecord call;
        if (!TakeTimes(row, &call.start_ns, &call.end_ns)) return;
        call.correlation = row.Int(2);
        call.pid = NsysPid(row.Int(3, 0));
        call.tid = NsysTid(row.Int(3, 0));
        call.name = StringOf(row, 4);
        sink_.OnRuntime(call);
      });
  }

  bool TakeWork(const NsysRow& row, NsysGpuRecord* work) {
    if (!TakeTimes(row, &work->start_ns, &work->end_ns)) return false;
    work->device = row.Int(2);
    work->stream = row.Int(3);
    work->correlation = row.Int(4);
    work->pid = NsysPid(row.Int(5, 0));
    return true;
  }

  void ReadKernels() {
    reading_.has_kernels = database_.Read(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "shortName"},
        [&](const NsysRow& row) {
          NsysGpuRecord work;
          if (!TakeWork(row, &work)) return;
          work.name = StringOf(row, 6);
          if (work.name.empty()) work.name = StringOf(row, 7);
          sink_.OnGpu(work);
        });
  }

  void ReadCopies(std::string_view table, NsysGpuKind kind, std::string_view name) {
    database_.Read(table, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid"},
                   [&](const NsysRow& row) {
                     NsysGpuRecord work;
                     work.kind = kind;
                     if (!TakeWork(row, &work)) return;
                     work.name = name;
                     sink_.OnGpu(work);
                   });
  }

  // Push and pop (59) and start and end (60) are ranges; marks, categories and names of domains are not. The text
  // stands in the row, or, for registered strings and in new versions always, in StringIds.
  void ReadRanges() {
    reading_.has_ranges = database_.Read(
        "NVTX_EVENTS",
        {"start", "end", "eventType", "globalTid", "text", "textId", "binaryData", "jsonText", "jsonTextId"},
        [&](const NsysRow& row) {
          if (row.Int(2) != 59 && row.Int(2) != 60) return;
          NsysRangeRecord range;
          if (row.IsNull(1) || !TakeTimes(row, &range.start_ns, &range.end_ns)) return;  // open when recording ended
          range.pid = NsysPid(row.Int(3, 0));
          range.tid = NsysTid(row.Int(3, 0));
          DecodePayload(row, &range.nccl);
          range.text = row.IsNull(4) ? StringOf(row, 5) : row.Text(4).substr(0, kMaxName);
          sink_.OnRange(range);
        });
  }

  // Bytes as NCCL wrote them, or, where the exporter decoded them, a text.
  void DecodePayload(const NsysRow& row, NsysNcclArguments* out) {
    if (!row.IsNull(6)) {
      const std::string_view binary = row.Bytes(6);
      reading_.value_bytes += binary.size();
      if (schemas_.Decode(binary, out)) return;
    }
    const std::string_view json = row.IsNull(7) ? StringOf(row, 8) : row.Text(7).substr(0, kMaxName);
    if (json.empty()) return;
    if (!row.IsNull(7)) reading_.value_bytes += json.size();
    DecodeNsysJson(json, out);
  }

  NsysDatabase& database_;
  NsysSink& sink_;
  NsysReading reading_;
  NsysPayloadSchemas schemas_;
  std::unordered_map<int64_t, std::string> strings_;
};

}  // namespace

NsysReading ParseNsys(NsysDatabase& database, NsysSink& sink) { return Reader(database, sink).Run(); }

}  // namespace tacet
