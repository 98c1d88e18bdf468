// SPDX-License-Identifier: Apache-2.0
// Writes NCCL logs of a training job as NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,ENV,NET,COLL,TUNING writes them:
// set-up once for each rank, then a line for each collective and, from rank 0, one for the algorithm chosen. Data and
// tensor parallel groups alternate. At the end one rank stops issuing. Usage: make_nccl_log PATH RANKS MEGABYTES
// [merged|files]
//   merged  one file PATH in which the ranks' lines alternate, as a job's standard output does
//   files   PATH is a folder, one file for each rank (NCCL_DEBUG_FILE); MEGABYTES is their sum
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kTensorParallel = 2;
constexpr int kStart = 13 * 60;  // minutes and seconds of the first line, after midnight

struct Rank {
  int rank, ranks, pid;
  FILE* file = nullptr;
  uint64_t world_count = 0, tensor_count = 0;
};

uint64_t written = 0;

[[gnu::format(printf, 3, 4)]] void Say(const Rank& rank, int second, const char* format, ...) {
  const int at = kStart + second;
  written += static_cast<uint64_t>(std::fprintf(rank.file, "[2026-11-15 %02d:%02d:%02d] node%03d:%d:%d [%d] NCCL INFO ",
                                                at / 3600 % 24, at / 60 % 60, at % 60, rank.rank / 8, rank.pid,
                                                rank.pid, rank.rank % 8));
  va_list arguments;
  va_start(arguments, format);
  written += static_cast<uint64_t>(std::vfprintf(rank.file, format, arguments));
  va_end(arguments);
  std::fputc('\n', rank.file);
  ++written;
}

uint64_t WorldComm(const Rank& rank) { return 0x55d0c0a00000u + static_cast<uint64_t>(rank.rank) * 4096; }
uint64_t TensorComm(const Rank& rank) { return 0x55d0d0b00000u + static_cast<uint64_t>(rank.rank) * 4096; }

void SayInit(const Rank& rank, uint64_t comm, int place, int size, uint64_t id) {
  const int next = (place + 1) % size;
  const char* const form =
      "ncclCommInitRankConfig comm 0x%lx rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId "
      "0x%lx - Init %s";
  const int device = rank.rank % 8;
  Say(rank, 1, form, comm, place, size, device, device, (device + 1) * 0x1000, id, "START");
  for (int channel = 0; channel < 8; ++channel)
    Say(rank, 2, "Channel %02d/0 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA", channel, place, device, next,
        next % 8, device);
  Say(rank, 2, "Connected all rings, use ring PXN 0 GDR 1");
  Say(rank, 3, form, comm, place, size, device, device, (device + 1) * 0x1000, id, "COMPLETE");
}

void SaySetUp(const Rank& rank) {
  Say(rank, 0, "NCCL_IB_HCA set by environment to mlx5");
  Say(rank, 0, "Bootstrap: Using eth0:10.0.%d.%d<0>", rank.rank / 8 / 250, 1 + rank.rank / 8 % 250);
  Say(rank, 1, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.%d.%d<0>", rank.rank / 8 / 250,
      1 + rank.rank / 8 % 250);
  Say(rank, 1, "Using network IB");
  SayInit(rank, WorldComm(rank), rank.rank, rank.ranks, 0x554de40bbdc91ec7u);
  SayInit(rank, TensorComm(rank), rank.rank % kTensorParallel, kTensorParallel,
          0x7a11000000000000u + static_cast<uint64_t>(rank.rank / kTensorParallel));
}

void SayCollective(Rank& rank, uint64_t step, bool tensor) {
  const int second = static_cast<int>(4 + step / 64);
  const uint64_t buffer = 0x7f042c000000u + step % 48 * 0x200000;
  const uint64_t count = tensor ? 262144 : 4194304 - step % 7 * 65536;
  Say(rank, second,
      "%s: opCount %lx sendbuff 0x%lx recvbuff 0x%lx count %lu datatype 9 op 0 root 0 comm 0x%lx [nranks=%d] stream "
      "0x55d0c1b2%04x",
      step % 5 == 4 ? "AllGather" : "AllReduce", tensor ? rank.tensor_count++ : rank.world_count++, buffer, buffer,
      count, tensor ? TensorComm(rank) : WorldComm(rank), tensor ? kTensorParallel : rank.ranks, rank.rank & 0xffff);
  if ((tensor ? rank.rank % kTensorParallel : rank.rank) == 0)
    Say(rank, second, "%s: %lu Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}",
        step % 5 == 4 ? "AllGather" : "AllReduce", count * 2);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 0;
  const int64_t megabytes = argc > 3 ? std::atoll(argv[3]) : 0;
  const std::string_view shape = argc > 4 ? argv[4] : "merged";
  if (ranks < 2 || ranks % kTensorParallel != 0 || megabytes < 1 || (shape != "merged" && shape != "files")) {
    std::fprintf(stderr, "usage: make_nccl_log PATH RANKS MEGABYTES [merged|files]   (an even number of ranks)\n");
    return 2;
  }
  const std::string path = argv[1];
  const bool merged = shape == "merged";
  if (!merged) std::filesystem::create_directories(path);
  FILE* const whole = merged ? std::fopen(path.c_str(), "wb") : nullptr;
  std::vector<Rank> all;
  for (int r = 0; r < ranks; ++r) {
    Rank rank{r, ranks, 4700 + r};
    rank.file = merged ? whole : std::fopen((path + "/nccl_rank" + std::to_string(r) + ".log").c_str(), "wb");
    if (!rank.file) {
      std::perror(path.c_str());
      return 1;
    }
    SaySetUp(rank);
    all.push_back(rank);
  }
  const uint64_t goal = static_cast<uint64_t>(megabytes) * 1'000'000;
  for (uint64_t step = 0; written < goal; ++step)
    for (Rank& rank : all)
      for (int burst = 0; burst < 4; ++burst) SayCollective(rank, step * 4 + static_cast<uint64_t>(burst), burst != 3);
  // The job hangs: all but rank 1 come to one more operation of the whole job.
  for (Rank& rank : all)
    if (rank.rank != 1) SayCollective(rank, 3, false);
  for (Rank& rank : all)
    if (!merged) std::fclose(rank.file);
  if (whole) std::fclose(whole);
  return 0;
}
