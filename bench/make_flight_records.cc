// SPDX-License-Identifier: Apache-2.0
// Writes Flight Recorder dumps as PyTorch's C++ pickler writes them: protocol 2, every distinct string once, frame
// dicts shared by memo, times as LONG1. A data and tensor parallel job in which one rank stops issuing: its peers' last
// operations stay unfinished. Usage: make_flight_records FOLDER RANKS ENTRIES [STUCK_RANK]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

namespace {

class Pickle {
 public:
  Pickle() { out_ = "\x80\x02"; }
  void Dict() { out_ += "}("; }
  void EndDict() { out_ += 'u'; }
  void List() { out_ += "]("; }
  void EndList() { out_ += 'e'; }
  void None() { out_ += 'N'; }
  void Bool(bool value) { out_ += value ? '\x88' : '\x89'; }
  void Pair() { out_ += '\x86'; }
  void Text(std::string_view text) {
    const auto [found, added] = memo_.try_emplace(std::string(text), next_);
    if (!added) return Get(found->second);
    out_ += 'X';
    U32(static_cast<uint32_t>(text.size()));
    out_ += text;
    Put();
  }
  void Int(int64_t value) {
    if (value >= 0 && value < 256) {
      out_ += 'K';
      out_ += static_cast<char>(value);
    } else if (value >= 0 && value < 65536) {
      out_ += 'M';
      out_ += static_cast<char>(value & 255);
      out_ += static_cast<char>(value >> 8);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      out_ += 'J';
      U32(static_cast<uint32_t>(value));
    } else {
      out_ += "\x8a\x08";
      U32(static_cast<uint32_t>(value));
      U32(static_cast<uint32_t>(value >> 32));
    }
  }
  void Double(double value) {
    out_ += 'G';
    uint64_t bits = 0;
    static_assert(sizeof bits == sizeof value);
    __builtin_memcpy(&bits, &value, sizeof bits);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
  }
  uint32_t Put() {
    if (next_ < 256) {
      out_ += 'q';
      out_ += static_cast<char>(next_);
    } else {
      out_ += 'r';
      U32(next_);
    }
    return next_++;
  }
  void Get(uint32_t index) {
    if (index < 256) {
      out_ += 'h';
      out_ += static_cast<char>(index);
    } else {
      out_ += 'j';
      U32(index);
    }
  }
  std::string Finish() { return std::move(out_) + "."; }

 private:
  void U32(uint32_t value) {
    for (int i = 0; i < 4; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  std::string out_;
  std::unordered_map<std::string, uint32_t> memo_;
  uint32_t next_ = 0;
};

struct Shape {
  int ranks, entries, stuck, tensor_parallel;
};

std::string Members(int first, int step, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(first + i * step);
  return text + "]";
}

void GroupConfig(Pickle& p, const std::string& name, std::string_view description, const std::string& ranks) {
  p.Text(name);
  p.Dict();
  p.Text("name"), p.Text(name), p.Text("desc"), p.Text(description), p.Text("ranks"), p.Text(ranks);
  p.EndDict();
}

constexpr int64_t kStart = 1'763'000'000'000'000'000;
constexpr int kFrames = 5;

void Entry(Pickle& p, int record, int pg, const std::string& group, std::string_view description, int64_t seq,
           int64_t elements, int finished_until, uint32_t* frames) {
  const int64_t created = kStart + int64_t{record} * 3'000'000;
  const bool done = record < finished_until, started = record == finished_until;
  p.Dict();
  p.Text("frames"), p.List();
  for (int f = 0; f < kFrames; ++f) {
    if (frames[f] != UINT32_MAX) {
      p.Get(frames[f]);
      continue;
    }
    p.Dict();
    p.Text("name"), p.Text("step_" + std::to_string(f)), p.Text("filename"),
        p.Text("/srv/train/module_" + std::to_string(f) + ".py");
    p.Text("line"), p.Int(40 + f);
    p.EndDict();
    frames[f] = p.Put();
  }
  p.EndList();
  p.Text("record_id"), p.Int(record), p.Text("pg_id"), p.Int(pg);
  p.Text("process_group"), p.Text(group), p.Text(description), p.Pair();
  p.Text("thread_name"), p.Text("python"), p.Text("thread_id"), p.Text("140123456789");
  p.Text("collective_seq_id"), p.Int(seq), p.Text("p2p_seq_id"), p.Int(0), p.Text("op_id"), p.Int(seq);
  p.Text("profiling_name"), p.Text("nccl:all_reduce"), p.Text("time_created_ns"), p.Int(created);
  if (done) p.Text("duration_ms"), p.Double(1.25);
  p.Text("input_sizes"), p.List(), p.List(), p.Int(elements), p.EndList(), p.EndList();
  p.Text("input_dtypes"), p.List(), p.Text("BFloat16"), p.EndList();
  p.Text("output_sizes"), p.List(), p.List(), p.Int(elements), p.EndList(), p.EndList();
  p.Text("output_dtypes"), p.List(), p.Text("BFloat16"), p.EndList();
  p.Text("state"), p.Text(done ? "completed" : started ? "started" : "scheduled");
  p.Text("time_discovered_started_ns");
  if (done || started)
    p.Int(done ? created + 2'000'000 : kStart + int64_t{600'000'000'000});
  else
    p.None();
  p.Text("time_discovered_completed_ns");
  if (done)
    p.Int(created + 2'500'000);
  else
    p.None();
  p.Text("retired"), p.Bool(done), p.Text("timeout_ms"), p.Int(600000), p.Text("is_p2p"), p.Bool(false);
  p.EndDict();
}

// Every fourth operation is a data parallel one, the others are tensor parallel; the stuck rank stops before its last
// data parallel operation, and its peers in that group wait.
std::string Dump(const Shape& shape, int rank) {
  const int tp = shape.tensor_parallel, tp_group = rank / tp, dp_group = rank % tp;
  const std::string tp_name = std::to_string(1 + tp_group), dp_name = std::to_string(100000 + dp_group);
  const int last_dp = shape.entries / 4 * 4 - 1;
  const bool stuck = rank == shape.stuck, waits = !stuck && dp_group == shape.stuck % tp;
  const int count = stuck ? last_dp : shape.entries;
  const int finished = waits ? last_dp : count;
  Pickle p;
  p.Dict();
  p.Text("version"), p.Text("2.10");
  p.Text("pg_config"), p.Dict();
  GroupConfig(p, "0", "default_pg", Members(0, 1, shape.ranks));
  GroupConfig(p, tp_name, "TENSOR_MODEL_PARALLEL_GROUP", Members(tp_group * tp, 1, tp));
  GroupConfig(p, dp_name, "DATA_PARALLEL_GROUP", Members(dp_group, tp, shape.ranks / tp));
  p.EndDict();
  p.Text("comm_lib_version"), p.Text("2.28.9");
  p.Text("pg_status"), p.Dict();
  p.EndDict();
  p.Text("entries"), p.List();
  uint32_t frames[kFrames];
  for (uint32_t& frame : frames) frame = UINT32_MAX;
  int64_t tp_seq = 0, dp_seq = 0;
  for (int i = 0; i < count; ++i) {
    const bool dp = i % 4 == 3;
    if (dp)
      Entry(p, i, 2, dp_name, "DATA_PARALLEL_GROUP", ++dp_seq, 4194304, finished, frames);
    else
      Entry(p, i, 1, tp_name, "TENSOR_MODEL_PARALLEL_GROUP", ++tp_seq, 262144, finished, frames);
  }
  p.EndList();
  p.EndDict();
  return p.Finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: make_flight_records FOLDER RANKS ENTRIES [STUCK_RANK]\n");
    return 2;
  }
  Shape shape{std::atoi(argv[2]), std::atoi(argv[3]), argc > 4 ? std::atoi(argv[4]) : 5, 8};
  if (shape.ranks < 8 || shape.ranks % 8 != 0 || shape.entries < 8) {
    std::fprintf(stderr, "make_flight_records: RANKS must be a multiple of 8, ENTRIES at least 8\n");
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const std::string path = std::string(argv[1]) + "/nccl_trace_rank_" + std::to_string(rank);
    std::FILE* file = std::fopen(path.c_str(), "wb");
    const std::string bytes = Dump(shape, rank);
    if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || std::fclose(file) != 0) {
      std::fprintf(stderr, "make_flight_records: cannot write %s\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
