// SPDX-License-Identifier: Apache-2.0
// Writes torch.profiler traces as PyTorch 2.7 does, of any size: one file for each rank of a data-parallel job. A
// kernel comes with what a recording has around it, four operators, its launch, another host call and two flows,
// about 3.5 KB of text; every fortieth is an all-reduce. Usage: make_torch_trace FOLDER RANKS MEGABYTES [json|gz]
// [full|lean]
//   MEGABYTES is the size of one rank's text before it is compressed
//   lean      without operators, as ProfilerActivity.CUDA alone records: three times the kernels in the same text
#include <zlib.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

constexpr int kKernelsOfStep = 4000, kKernelsOfBucket = 40;
constexpr double kKernelMicros = 21.5;

// Text that goes into a plain file or through gzip, and is counted.
class Output {
 public:
  Output(const std::string& path, bool gzip) {
    if (gzip)
      packed_ = gzopen(path.c_str(), "wb1");
    else
      plain_ = std::fopen(path.c_str(), "wb");
    text_.reserve(kPiece + 8192);
  }
  ~Output() {
    Flush();
    if (packed_ && gzclose(packed_) != Z_OK) failed_ = true;
    if (plain_ && std::fclose(plain_) != 0) failed_ = true;
    if (failed_) {
      std::fprintf(stderr, "make_torch_trace: cannot write\n");
      std::exit(1);
    }
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[gnu::format(printf, 2, 3)]] void Say(const char* format, ...) {
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_.append(line, static_cast<size_t>(length));
    if (text_.size() >= kPiece) Flush();
  }
  uint64_t written() const { return written_ + text_.size(); }

 private:
  static constexpr size_t kPiece = 1 << 20;
  void Flush() {
    const auto size = static_cast<unsigned>(text_.size());
    if (packed_ ? gzwrite(packed_, text_.data(), size) != static_cast<int>(size)
                : !plain_ || std::fwrite(text_.data(), 1, size, plain_) != size)
      failed_ = true;
    written_ += size;
    text_.clear();
  }

  gzFile packed_ = nullptr;
  FILE* plain_ = nullptr;
  std::string text_;
  uint64_t written_ = 0;
  bool failed_ = false;
};

void SayHead(Output& out, int rank, int ranks) {
  out.Say(
      "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, \"name\": \"NVIDIA H200\", "
      "\"totalGlobalMem\": 150109880320,\n      \"computeMajor\": 9, \"computeMinor\": 0, \"numSms\": 132\n    }\n  "
      "],\n");
  std::string members;
  for (int r = 0; r < ranks; ++r) members += (r > 0 ? ", " : "") + std::to_string(r);
  out.Say(
      "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d, \"pg_count\": 1, "
      "\"pg_config\": "
      "[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", \"pg_size\": %d, "
      "\"ranks\": [%s]}], \"nccl_version\": \"2.26.2\"},\n",
      rank, ranks, ranks, members.c_str());
  out.Say("  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1790857026000000000,\n  \"traceEvents\": [\n");
}

// Four operators, one inside the other, with the shapes that record_shapes gives.
void SayOperators(Output& out, int64_t id, double at) {
  static constexpr const char* kNames[] = {"autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0",
                                           "aten::linear", "aten::addmm"};
  for (int i = 0; i < 4; ++i)
    out.Say(
        "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 983, \"tid\": 1049,\n    \"ts\": "
        "%.3f, "
        "\"dur\": %.3f,\n    \"args\": {\n      \"External id\": %ld,\"Sequence number\": %ld, \"Fwd thread id\": 1, "
        "\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"\"], \"Input type\": [\"c10::BFloat16\", "
        "\"c10::BFloat16\", \"c10::BFloat16\"], \"Input Strides\": [[1], [4096, 1], [1, 4096]], \"Input Dims\": "
        "[[4096], "
        "[2048, 4096], [4096, 4096]], \"Ev Idx\": %ld\n    }\n  },\n",
        kNames[i], at + i * 0.9, 12.4 - i * 2, id * 4 + i, id % 700, id * 4 + i);
}

void SayLaunch(Output& out, const char* category, const char* name, int64_t id, int64_t correlation, double at) {
  out.Say(
      "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 983, \"tid\": 1049,\n    \"ts\": %.3f, "
      "\"dur\": "
      "4.127,\n    \"args\": {\n      \"External id\": %ld,      \"cbid\": 211, \"correlation\": %ld\n    }\n  },\n",
      category, name, at, id, correlation);
  out.Say(
      "  {\n    \"ph\": \"s\", \"id\": %ld, \"pid\": 983, \"tid\": 1049, \"ts\": %.3f,\n    \"cat\": \"ac2g\", "
      "\"name\": "
      "\"ac2g\"\n  },\n",
      correlation, at);
}

void SayKernel(Output& out, const char* name, const char* collective, int stream, int64_t id, int64_t correlation,
               double at, double micros) {
  out.Say(
      "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d,\n    \"ts\": %.3f, "
      "\"dur\": "
      "%.3f,\n    \"args\": {\n      \"External id\": %ld,      \"queued\": 0, \"device\": 0, \"context\": 1,      "
      "\"stream\": %d, \"correlation\": %ld,      \"registers per thread\": 96,      \"shared memory\": 103808,      "
      "\"blocks per SM\": 0.015152,      \"warps per SM\": 0.136364,      \"grid\": [2, 1, 1],      \"block\": [288, "
      "1, "
      "1],      \"est. achieved occupancy %%\": 0%s\n    }\n  },\n",
      name, stream, at, micros, id, stream, correlation, collective);
  out.Say(
      "  {\n    \"ph\": \"f\", \"id\": %ld, \"pid\": 0, \"tid\": %d, \"ts\": %.3f,\n    \"cat\": \"ac2g\", \"name\": "
      "\"ac2g\", \"bp\": \"e\"\n  },\n",
      correlation, stream, at);
}

void SayAllReduce(Output& out, int ranks, int rank, int64_t id, int64_t correlation, double at) {
  char arguments[512];
  std::snprintf(
      arguments, sizeof arguments,
      ", \"Collective name\": \"allreduce\", \"In msg nelems\": 16782336, \"Out msg nelems\": 16782336, \"Group "
      "size\": %d, \"dtype\": \"BFloat16\", \"In split size\": \"[]\", \"Out split size\": \"[]\", \"Process Group "
      "Name\": \"0\", \"Process Group Description\": \"default_pg\", \"Process Group Ranks\": \"[]\"",
      ranks);
  out.Say(
      "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"record_param_comms\", \"pid\": 983, \"tid\": 1049,\n   "
      " \"ts\": "
      "%.3f, \"dur\": 270.296,\n    \"args\": {\n      \"External id\": %ld,\"Record function id\": 0%s, \"Rank\": "
      "%d\n    "
      "}\n  },\n",
      at, id * 4, arguments, rank);
  SayLaunch(out, "cuda_driver", "cuLaunchKernelEx", id * 4, correlation, at + 3);
  SayKernel(out, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", arguments, 16, id * 4,
            correlation, at + 20 + rank % 3, 300);
}

void WriteRank(const std::string& path, bool gzip, bool lean, int rank, int ranks, uint64_t bytes) {
  Output out(path, gzip);
  SayHead(out, rank, ranks);
  double now = 3846202254285.749, step_begin = now;
  for (int64_t id = 1; out.written() < bytes; ++id) {
    char name[160];
    std::snprintf(
        name, sizeof name,
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x%ld_tn_align8>(Params)",
        id % 97);
    if (!lean) SayOperators(out, id, now);
    SayLaunch(out, "cuda_runtime", "cudaLaunchKernel", id * 4 + 3, id * 2, now + 4);
    SayKernel(out, name, "", 7, id * 4 + 3, id * 2, now + 15, 17.3);
    now += kKernelMicros;
    if (id % kKernelsOfBucket == 0) SayAllReduce(out, ranks, rank, id, id * 2 + 1, now);
    if (id % kKernelsOfStep != 0) continue;
    out.Say(
        "  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%ld\", \"pid\": 983, \"tid\": "
        "983,\n  "
        "  \"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      \"External id\": %ld,\"Ev Idx\": 1\n    }\n  },\n",
        id / kKernelsOfStep, step_begin, now + 340 - step_begin, id * 4);
    now += 341;
    step_begin = now;
  }
  out.Say(
      "  {\n    \"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", \"ts\": "
      "%.3f\n  }\n  "
      "],\n  \"traceName\": \"trace.json\"\n}\n",
      now);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 3 ? std::atoi(argv[2]) : 0;
  const double megabytes = argc > 3 ? std::atof(argv[3]) : 0;
  const std::string_view kind = argc > 4 ? argv[4] : "json";
  const std::string_view detail = argc > 5 ? argv[5] : "full";
  if (ranks < 1 || ranks > 512 || !(megabytes > 0) || (kind != "json" && kind != "gz") ||
      (detail != "full" && detail != "lean")) {
    std::fprintf(stderr, "usage: make_torch_trace FOLDER RANKS MEGABYTES [json|gz] [full|lean]\n");
    return 2;
  }
  const std::string folder = argv[1];
  std::filesystem::create_directories(folder);
  for (int rank = 0; rank < ranks; ++rank)
    WriteRank(folder + "/trace_rank" + std::to_string(rank) + (kind == "gz" ? ".json.gz" : ".json"), kind == "gz",
              detail == "lean", rank, ranks, static_cast<uint64_t>(megabytes * 1e6));
  return 0;
}
