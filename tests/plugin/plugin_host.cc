// SPDX-License-Identifier: Apache-2.0
// plugin_host --plugin FILE [options]: a whole job of the stand-in on this machine, one process a rank. Prints
// "healthy" or "killed" when it is over. With a fault the job hangs, as in life; after --seconds without progress all
// ranks get SIGKILL. With --join FILE it is one rank of a job that a launcher (srun, mpirun) started; all ranks name
// the same file.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/plugin/fake_nccl.h"

namespace tacet::fake {
namespace {

struct HostOptions {
  std::string plugin, fault, join, mix = "all_reduce";
  int api = 0, ranks = 4, channels = 2, first_channel = 0;
  bool network = false, kernel_thread = false, reopen = false, silent_launcher = false;
  uint64_t steps = 20, fault_step = 10;
  int fault_rank = 1;
  double seconds = 2;
  int pause_us = 0;
  std::string other_fault;  // a second one, at the same step
  int other_rank = 2;
  int tensor = 0;                                  // ranks of a tensor parallel group; 0: one group of all
  uint64_t sync_every = 1;                         // steps after which the groups across are used, with --tensor
  int slow_rank = -1, slow_us = 0;                 // a rank that takes longer for each step
  uint64_t run = static_cast<uint64_t>(getpid());  // NCCL's ids differ from run to run
  uint64_t rest_every = 0;                         // steps after which all ranks rest, as for a checkpoint
  int rest_ms = 0;
};

void Usage() {
  std::puts(
      "plugin_host --plugin FILE [--api N] [--ranks N] [--steps N] [--channels N] [--first-channel N] [--network]\n"
      "            [--kernel-thread] [--mix all_reduce|mixed|p2p|graph|silent] [--reopen] [--pause-us N] [--seconds "
      "S]\n            [--rest-every N --rest-ms N] [--join FILE]\n            [--silent-launcher]\n"
      "            [--tensor N [--sync-every N]] [--slow-rank R --slow-us N] [--other-fault ... --other-rank R]\n"
      "            [--fault stuck|dead|frozen|gpu|launch|data|credit|skip|exit|abort] [--fault-rank R] [--fault-step "
      "N]");
  std::exit(2);
}

HostOptions ReadOptions(int argc, char** argv) {
  HostOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : (Usage(), nullptr); };
    if (name == "--plugin")
      options.plugin = value();
    else if (name == "--api")
      options.api = std::atoi(value());
    else if (name == "--ranks")
      options.ranks = std::atoi(value());
    else if (name == "--steps")
      options.steps = std::strtoull(value(), nullptr, 10);
    else if (name == "--channels")
      options.channels = std::atoi(value());
    else if (name == "--first-channel")
      options.first_channel = std::atoi(value());
    else if (name == "--network")
      options.network = true;
    else if (name == "--kernel-thread")
      options.kernel_thread = true;
    else if (name == "--reopen")
      options.reopen = true;
    else if (name == "--silent-launcher")  // tells ranks by argument, as torch.multiprocessing.spawn does
      options.silent_launcher = true;
    else if (name == "--mix")
      options.mix = value();
    else if (name == "--fault")
      options.fault = value();
    else if (name == "--fault-rank")
      options.fault_rank = std::atoi(value());
    else if (name == "--fault-step")
      options.fault_step = std::strtoull(value(), nullptr, 10);
    else if (name == "--seconds")
      options.seconds = std::atof(value());
    else if (name == "--join")
      options.join = value();
    else if (name == "--pause-us")
      options.pause_us = std::atoi(value());
    else if (name == "--other-fault")
      options.other_fault = value();
    else if (name == "--other-rank")
      options.other_rank = std::atoi(value());
    else if (name == "--tensor")
      options.tensor = std::atoi(value());
    else if (name == "--sync-every")
      options.sync_every = std::strtoull(value(), nullptr, 10);
    else if (name == "--slow-rank")
      options.slow_rank = std::atoi(value());
    else if (name == "--slow-us")
      options.slow_us = std::atoi(value());
    else if (name == "--rest-every")
      options.rest_every = std::strtoull(value(), nullptr, 10);
    else if (name == "--rest-ms")
      options.rest_ms = std::atoi(value());
    else
      Usage();
  }
  if (options.plugin.empty() || options.ranks < 1 || options.channels > kMaxChannels) Usage();
  return options;
}

CollFacts FactsOf(const std::string& mix, uint64_t step) {
  CollFacts facts;
  facts.count = 1024 * (1 + step % 3);
  facts.stream = reinterpret_cast<void*>(0x7000);
  if (mix != "mixed") return facts;
  static const struct {
    const char* func;
    uint8_t code;
  } kKinds[] = {{"AllReduce", 4}, {"AllGather", 2}, {"ReduceScatter", 3}, {"Broadcast", 0}, {"Reduce", 1}};
  facts.func = kKinds[step % 5].func;
  facts.func_code = kKinds[step % 5].code;
  return facts;
}

void Misbehave(const HostOptions& options, const std::string& fault, Comm& comm, uint64_t step) {
  if (step + 1 < options.fault_step) return;  // the communicator numbers its operations from 1
  const uint64_t at = options.fault_step;
  if (fault == "gpu") comm.faults.gpu_never_starts = at;
  if (fault == "launch") comm.faults.launch_never_returns = at;
  if (fault == "data") comm.faults.data_never_arrives = at;
  if (fault == "credit") comm.faults.no_credit = at;
  if (step + 1 != options.fault_step) return;
  if (fault == "stuck")
    for (;;) pause();
  if (fault == "dead") raise(SIGKILL);
  if (fault == "frozen") raise(SIGSTOP);
  if (fault == "exit") _exit(0);
  if (fault == "abort") {
    comm.Abort();
    std::exit(1);
  }
}

bool RunStep(const HostOptions& options, Comm& comm, int rank, uint64_t step, Plan& graph) {
  if (options.mix == "p2p") {
    const int next = (rank + 1) % options.ranks, previous = (rank + options.ranks - 1) % options.ranks;
    comm.GroupStart();
    auto send = comm.Transfer(true, next, 512);
    auto recv = comm.Transfer(false, previous, 512);
    comm.GroupEnd();
    comm.Wait(*send);
    comm.Wait(*recv);
    return true;
  }
  if (options.mix == "graph" && step >= 3) {
    if (step == 3) graph = comm.Capture(FactsOf(options.mix, step));
    comm.Replay(graph);
    comm.Synchronize();
    return true;
  }
  auto task = comm.Collective(FactsOf(options.mix, step));
  if (step % 4 != 3) return true;  // let a few be in flight at once
  comm.Wait(*task);
  return task->sum == comm.ExpectedSum(*task);
}

// As Megatron lays ranks out: neighbours share the layers, those `tensor` apart share the gradients.
int RunGrid(const HostOptions& options, SharedArena& arena, int rank) {
  PluginOfProcess process;
  process.path = options.plugin;
  process.api = options.api;
  const int block = rank / options.tensor, column = rank % options.tensor, blocks = options.ranks / options.tensor;
  Comm tensor(process, arena,
              {.index = 0,
               .rank = column,
               .size = options.tensor,
               .first = block * options.tensor,
               .hash = options.run << 24 | static_cast<uint64_t>(block + 1),
               .name = "tensor",
               .network = options.network,
               .channels = options.channels});
  Comm across(process, arena,
              {.index = 1,
               .rank = block,
               .size = blocks,
               .first = column,
               .stride = options.tensor,
               .hash = options.run << 24 | static_cast<uint64_t>(1000 + column),
               .name = "data",
               .network = options.network,
               .channels = options.channels});
  for (uint64_t step = 0; step < options.steps; ++step) {
    if (rank == options.fault_rank) Misbehave(options, options.fault, tensor, step);
    if (rank == options.other_rank) Misbehave(options, options.other_fault, tensor, step);
    tensor.Wait(*tensor.Collective(FactsOf(options.mix, step)));
    if ((step + 1) % options.sync_every == 0) across.Wait(*across.Collective(FactsOf(options.mix, step)));
    arena.StepsOf(rank).store(step + 1);
    if (options.pause_us > 0) usleep(static_cast<useconds_t>(options.pause_us));
  }
  tensor.Destroy();
  across.Destroy();
  return 0;
}

int RunRank(const HostOptions& options, SharedArena& arena, int rank) {
  if (options.tensor > 0) return RunGrid(options, arena, rank);
  PluginOfProcess process;
  process.path = options.plugin;
  process.api = options.api;
  CommOptions comm_options{.index = 0,
                           .rank = rank,
                           .size = options.ranks,
                           .hash = options.run << 24 | 0xc0ffeeu,
                           .name = "default_pg",
                           .network = options.network,
                           .channels = options.channels,
                           .first_channel = options.first_channel,
                           .kernel_thread = options.kernel_thread};
  if (options.reopen) {  // a communicator that comes and goes: NCCL closes the library with it
    CommOptions brief = comm_options;
    brief.index = 1;
    brief.hash = 0xabcdef;
    brief.name = "brief";
    Comm first(process, arena, brief);
    for (uint64_t i = 0; i < 3; ++i) first.Wait(*first.Collective(FactsOf(options.mix, i)));
    first.Destroy();
  }
  Comm comm(process, arena, comm_options);
  Plan graph;
  for (uint64_t step = 0; step < options.steps; ++step) {
    if (rank == options.fault_rank) {
      Misbehave(options, options.fault, comm, step);
      if (options.fault == "skip" && step + 1 == options.fault_step) continue;
    }
    if (rank == options.other_rank) Misbehave(options, options.other_fault, comm, step);
    if (rank == options.slow_rank) usleep(static_cast<useconds_t>(options.slow_us));
    if (!RunStep(options, comm, rank, step, graph)) return 3;
    arena.StepsOf(rank).store(step + 1);
    if (options.pause_us > 0) usleep(static_cast<useconds_t>(options.pause_us));
    if (options.rest_every > 0 && (step + 1) % options.rest_every == 0) {
      comm.Synchronize();  // what is in flight ends first
      usleep(static_cast<useconds_t>(options.rest_ms) * 1000);
    }
  }
  comm.Destroy();
  return 0;
}

int RunJob(const HostOptions& options) {
  SharedArena arena = SharedArena::Make(options.ranks);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // a job that is itself killed leaves no rank behind
      if (options.silent_launcher) std::exit(RunRank(options, arena, rank));
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
      setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
      std::exit(RunRank(options, arena, rank));
    }
    pids.push_back(pid);
  }
  int left = options.ranks, worst = 0;
  const int patience = static_cast<int>(options.seconds * 200);
  uint64_t progress = 0;
  for (int still = 0; still < patience && left > 0; ++still) {
    uint64_t now = 0;
    for (int rank = 0; rank < options.ranks; ++rank) now += arena.StepsOf(rank).load();
    if (now != progress || now == 0) still = 0;
    progress = now;
    int status = 0;
    while (left > 0 && waitpid(-1, &status, WNOHANG) > 0) {
      --left;
      if (WIFEXITED(status) && WEXITSTATUS(status) > worst) worst = WEXITSTATUS(status);
    }
    usleep(5000);
  }
  if (left > 0)
    for (const pid_t pid : pids) kill(pid, SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0) continue;
  std::printf("%s, worst exit %d, steps", left > 0 ? "killed" : "healthy", worst);
  for (int rank = 0; rank < options.ranks; ++rank)
    std::printf(" %llu", static_cast<unsigned long long>(arena.StepsOf(rank).load()));
  std::puts("");
  return worst;
}

int NumberIn(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = getenv(name)) return std::atoi(value);
  std::fprintf(stderr, "plugin_host --join: started by neither srun nor mpirun\n");
  std::exit(2);
}

int JoinJob(HostOptions options) {
  const int rank = NumberIn({"OMPI_COMM_WORLD_RANK", "SLURM_PROCID"});
  options.run = std::hash<std::string>()(options.join) >> 24;
  options.ranks = NumberIn({"OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"});
  SharedArena arena = SharedArena::Join(options.join, options.ranks);
  return RunRank(options, arena, rank);
}

}  // namespace
}  // namespace tacet::fake

int main(int argc, char** argv) {
  const auto options = tacet::fake::ReadOptions(argc, argv);
  return options.join.empty() ? tacet::fake::RunJob(options) : tacet::fake::JoinJob(options);
}
