// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/source_ref.h"
#include "base/training_record.h"

namespace tacet {

// Warnings that every job may print and that are no fault, whatever else is wrong.
enum class HarmlessWarning : uint8_t {
  process_group_left,    // PyTorch: destroy_process_group() was not called before program exit
  omp_threads,           // torchrun sets OMP_NUM_THREADS=1
  ccl_transport,         // oneCCL: no MPI launcher, so it takes OFI
  gloo_group_of_one,     // Gloo: connected to 0 peers of 0
  guessed_device,        // PyTorch: the GPU of a barrier is guessed from the rank
  no_unused_parameters,  // DDP: find_unused_parameters=True, and there are none
  deprecated_variable,   // PyTorch: NCCL_ASYNC_ERROR_HANDLING is called TORCH_NCCL_... now
  windows_host_name,     // Windows: a host name that cannot be used, error 10049; the next address is tried
  no_ipv6,               // PyTorch: the IPv6 address of a host cannot be used, error 97; IPv4 is tried next
  allocator_retried,     // PyTorch: cudaMalloc failed, and succeeded once cached memory was freed; times: how often
  store_retried,         // PyTorch: the store did not answer the first tries, as it does until rank 0 is up
  optional_operators,    // DeepSpeed: operators that it could not build here
  numa_node,             // TensorFlow: the GPU's NUMA node is -1
  registered_twice,      // TensorFlow: a factory of a CUDA library is registered already
  left_semaphores,       // Python: semaphores that are cleaned up at exit
  forked_tokenizers,     // Hugging Face tokenizers: the process was forked after they had been used
  scheduler_order,       // PyTorch: lr_scheduler.step() before the first optimizer.step()
  name_not_known_yet,    // PyTorch: a host's name does not resolve; it is tried again until the time is up
  mpi_note,              // Open MPI: fork() in a process, InfiniBand ports that are left to UCX
  of_python,             // Python: any other warning, after which the program goes on
};

struct SeenWarning {
  HarmlessWarning what{};
  int64_t times = 0;
  SourceRef source;    // the first
  std::string object;  // of store_retried: the address; of of_python: its words
};

// How the time of one line of progress is shared out: "Epoch: [1][20/25] Time 0.331 (21.090) Data 0.213 (20.799)".
struct StepShare {
  int64_t epoch = -1, place = -1;  // where in the run; -1: not told
  double whole = 0;                // seconds, what is told for data included
  double data = -1;                // seconds of it; -1: not told
  SourceRef source;
  int32_t rank = -1;   // whose step it is, where the line says so
  double work = -1;    // seconds of it in which this rank itself computes; -1: not told
  double shared = -1;  // seconds of its work in which it may wait for others too, where no wait is told beside it
  double wait = -1;    // seconds in which it communicates or waits for others; -1: not told
  int32_t stage = -1;  // of a pipeline, where the line says so
  bool told = false;   // the line tells the whole step; else it is the sum of what it tells
};

// "[rank 2] step=28 param_checksum=159.99": a figure of one rank at one step, as it is printed.
struct RankValue {
  enum class Kind : uint8_t { loss, parameters, setting };  // a norm or checksum of parameters; a learning rate
  int32_t rank = -1;
  Kind kind = Kind::parameters;
  std::string at;     // "step 28", "epoch 0.47"
  std::string value;  // small letters: "159.99", "nan"
  SourceRef source;
  std::string name;  // "param_checksum"; empty for a loss
};

// One figure that a program prints again and again, as one rank prints it: "d_loss", "grad_norm", "reward".
struct FigureSeries {
  // Of reinforcement learning: the reward, how much it differs within a group, and one of them that every line shows as
  // 0.
  enum class Kind : uint8_t { other, loss, gradient, reward, reward_spread, no_reward, no_spread };
  Kind kind = Kind::other;
  int32_t rank = -1;
  std::string name;
  bool held_out = false;  // of validation
  TrainingValue value;
  SourceRef last;  // the last line that tells it
};

// "r0 s019 local=1.822 update=0.080": a decimal of a rank's step whose name says nothing. What ranks tell of the same
// step can still be compared.
struct StepDecimal {
  int32_t rank = -1;
  int64_t epoch = -1, place = -1;
  uint32_t name = 0;  // in LogOutline::decimal_names
  double value = 0;
  SourceRef source;
};

// "AllReduce: [[0, 1, 2, 3]] Bytes: 2.00000 GB Time: 0.01404 s Bandwidth: 213.68 GB/s"
struct GroupRate {
  std::string operation;  // small letters only: "allreduce"
  int64_t members = 0;
  double gbs = 0;
  SourceRef source;
};

// "between node1 and node2 I get 25 GB/s"
struct PairRate {
  std::string one, other;
  double gbs = 0;  // the bare figure where no unit is written
  SourceRef source;
  bool unit_told = true;
};

// "INFO trainer: rank 2: shard is done, exporting the model": the last line by which a rank of the program tells of
// itself.
struct LineOfRank {
  int32_t rank = -1;
  std::string text;
  SourceRef source;
  bool waits = false;     // it says that it waits for something
  std::string lock_file;  // ... for this file to go away
};

// A line that says that the program waits.
enum class LineWait : uint8_t {
  none,
  peers,   // for other processes of the job
  thing,   // for a file, a lock, a server: "waiting for the lock of the cache", "/a/done does not exist yet"
  person,  // for somebody to do something: a debugger that attaches, a key
};

// "[r3] step 13 grad 0.0493": what the program itself printed on one rank, and where in the program that is. Ranks that
// are equally far print lines of one place.
struct OwnLine {
  int32_t rank = -1;   // -1: no mark of a rank, the file's own
  bool local = false;  // the rank is the number on its node, by torchrun's label
  uint64_t place = 0;  // the words with the whole numbers that count, without rank, time and measured figures
  uint64_t shape = 0;  // the words alone
  int64_t times = 1;   // in a row
  std::string text;
  SourceRef source;
  std::string awaited;  // a path that it says it waits for
  std::string written;  // a path that it says it wrote
  LineWait wait = LineWait::none;
  bool communicates = false;  // it says that it communicates with other ranks, or waits for them
  bool no_gpu = false;        // it says that the process sees no GPU
};

// A line that tells how far the job came: "checkpoint-486" of "Saving model checkpoint to /out/checkpoint-486".
struct Milestone {
  std::string words;  // empty: there is none
  SourceRef source;
  explicit operator bool() const { return !words.empty(); }
};

// What came before in the same text: workers that torchrun started anew, or steps that came to their end before others
// began with a lower number.
struct EarlierRun {
  SourceRef source;          // of the line with which it was over
  int64_t restarts = 0;      // by torchrun; 0: it came to its end
  int64_t last_step = -1;    // of one that came to its end
  std::string end;           // what ended the last attempt before the restart, or the words of the end
  uint32_t line_of_end = 0;  // 0: not told
};

// "mfu: 34.26%"
struct Utilization {
  double percent = 0;
  SourceRef source;
};

// What a text shows whose lines have the shape of a log, whatever they say: levels, times, ranks; and the times and
// rates that it prints. It makes no statement about who failed.
struct LogOutline {
  int64_t shaped = 0;  // lines with a level and a time, or with a place in code
  uint64_t bytes = 0;  // of these and of those that name a rank
  int64_t warnings = 0, errors = 0;
  std::vector<int32_t> ranks;             // that lines name as the ones that print them; sorted
  int64_t world = -1;                     // of these ranks
  int64_t stated_world = -1;              // a line calls it the world's size; -2: lines tell different ones
  std::vector<LineOfRank> last_of_ranks;  // sorted
  std::vector<LineOfRank> joining;        // by which processes say as which rank they join; in the order of lines
  std::vector<LineOfRank> at_work;        // the last line of a rank by which it is further than by one before; sorted
  std::vector<OwnLine> own_lines;         // the last ones of each rank, in the order of lines
  std::vector<OwnLine> first_lines;       // the first ones of each rank, of a kind that it prints only once
  std::vector<OwnLine> barriers;          // PyTorch's warning with which a rank calls barrier()
  std::vector<OwnLine> outsiders;         // ... with which a call is left out: the rank is no member of the group
  bool cut_end = false;                   // the text ends within a line: what follows it was not written out
  Milestone saved;                        // the last checkpoint that was saved
  Milestone trained;                      // training is done; what follows is its end
  Milestone served;                       // the last request that a server answered well, or that it is ready for them
  Milestone stopped;                      // the program says that it stops because it was asked to
  std::string last, first_error;
  SourceRef last_source, error_source;  // error_source: of the first error
  SourceRef last_error;                 // the last line marked as an error; line 0 where there is none
  std::vector<SeenWarning> harmless;
  int64_t exits = 0;       // lines that a process prints while it exits
  std::string ended_well;  // a line tells of an end with exit code 0
  SourceRef ended_source;
  std::string says_done;      // the last line says that the work is done: "training finished"
  bool local_labels = false;  // ranks of figures are those of torchrun's labels, which count within a node
  std::vector<StepShare> steps;
  std::vector<RankValue> values;
  std::vector<FigureSeries> series;
  std::vector<StepDecimal> decimals;
  std::vector<std::string> decimal_names;
  std::vector<GroupRate> rates;
  std::vector<PairRate> pairs;
  std::vector<Utilization> utilizations;
};

}  // namespace tacet
