// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/launcher_prefix.h"
#include "base/log_outline.h"
#include "base/source_ref.h"
#include "base/training_record.h"

namespace tacet {

// What a line, or a block of lines, says. The names are those of the model's events.
enum class TorchLogKind : uint8_t {
  process_started,
  progress,
  process_finished,
  process_exited,
  process_killed,
  watchdog_timeout,
  watchdog_status,
  dump_signal,
  dump_started,
  dump_written,
  heartbeat_stuck,
  gil_blocked,
  program_left,
  store_lost,
  desync_report,
  mismatch_report,
  monitored_barrier_failed,
  ddp_unused_parameters,
  ddp_marked_twice,
  exception,
  cuda_error,
  nccl_error,
  connection_lost,
  abort_signal,
  oom_kill,
  job_time_limit,
  node_failed,
  restarted,       // torchrun starts all its workers anew: what was said before is of an earlier attempt
  barrier_passed,  // everybody has joined, and so nobody waits any longer: subject = key of the barrier
  store_wait_timeout,
  rendezvous_incomplete,
  store_unreachable,
  shared_memory_full,
  disk_full,
  port_in_use,
  scheduler_kill,
  peer_access_failed,
  rdma_failed,
  fabric_down,
  model_mismatch,
  connect_failed,
  nccl_warning,      // a network plugin's own words, where it speaks without NCCL
  xla_wait,          // line_before = how many of its waits have ended
  start_pending,     // a scheduler's words: see torch_log_pending.h
  setting,           // an environment variable, in the command that started the job
  node_count,        // the job's command or settings: it has more than one node
  straggler_report,  // ranks = those that a tool calls slow
  memory_use,        // subject = the share of the host's memory
  interface_used,    // gloo chose the loopback, since the name of its host led to no address
};

// A time as written. PyTorch's own lines have no year; the import finds it from other lines of the file.
struct LogMoment {
  static constexpr int64_t kNone = INT64_MIN;
  int64_t wall_ns = kNone;  // where the year is written
  int32_t month_day = 0;    // else month * 100 + day, 0 where there is no time at all
  int32_t second_of_day = 0;
  bool known() const { return wall_ns != kNone || month_day != 0; }
};

// Words of TorchLogRecord::object that say who was lost.
inline constexpr std::string_view kRendezvousStore = "rendezvous", kRemoteDaemon = "daemon",
                                  kCoordinator = "coordinator";
inline constexpr std::string_view kHeartbeat = "heartbeat";  // what was missed of a node that is counted as dead
// Word of TorchLogRecord::subject: who killed a process for want of memory.
inline constexpr std::string_view kRaysMonitor = "Ray's memory monitor";
inline constexpr std::string_view kSystemdsKiller = "systemd";
inline constexpr std::string_view kContainerStart = "the start of a container";
// Word of TorchLogRecord::file: it was gloo that compared the sizes.
inline constexpr std::string_view kGloo = "gloo";
// Word of TorchLogRecord::file: UCX's error is of a dynamically connected queue pair.
inline constexpr std::string_view kDynamicQueue = "dc";

struct TorchLogRecord {
  TorchLogKind kind{};
  uint32_t voice = 0;  // index into TorchLog::voices: who printed it
  SourceRef source;
  LogMoment time;
  int32_t rank = -1;  // the rank that the text is about, where it names one
  int32_t peer = -1;
  bool peer_is_self = false;   // "from this local rank"
  bool of_itself = false;      // end of a process: its own words, whoever may have told the host before
  bool of_pod = false;         // end of a process: a pod's, as Kubernetes tells it
  bool with_step = false;      // end of a process: with its step or job, for which no reason is given
  bool in_sentence = false;    // end of a process: somebody tells of the launcher's line, and may err
  bool of_launcher = false;    // exception: raised in the code of a launcher, which watches the ranks
  bool caught_there = false;   // exception: its frames begin in the function that raised it: somebody there printed it
  bool of_parent = false;      // exception: a child process could not read what its parent pickled for it
  bool in_thread = false;      // exception: it ended a thread, and the program goes on
  bool of_job = false;         // exception: a frame is of code that several processes run together
  bool in_collective = false;  // exception: raised below a call of torch.distributed
  bool of_server = false;      // exception: in the code of a program that serves models
  bool handled = false;        // the program says that it goes on in spite of it
  bool of_spawn = false;       // torch.multiprocessing.spawn tells it, which passes on the first failure alone
  bool named_first = false;    // end of a process: mpirun or horovodrun names it as the first that failed
  bool of_script = false;      // end of a process: the scheduler cannot start its own copy of the job script
  bool by_path = false;        // ... what cannot be started is named by a path
  bool spared_by_ray = false;  // ... Ray counts crashed workers there, and none that it killed for memory
  bool of_checker = false;     // mismatch: Horovod's coordinator tells it, and names nobody
  uint8_t during = 0;          // exception: what the process was doing, the model's Activity
  int32_t work_rank = -1;      // "[Rank 3]" of the versions before 2.2, which print no other rank
  int32_t local_rank = -1;
  int32_t group_rank = -1, peer_group_rank = -1;
  int64_t seq = -1, pid = -1;
  // As the readers find them. What each is of which kind of record DetailOf says (torch_log_detail.h), and nobody
  // behind it sees them. Of an error that a program may survive value2 is the highest step before it.
  int64_t value = -1, value2 = -1, count = -1, count_out = -1;
  uint32_t line_before = 0;  // of progress: the line before it that told a lower step, 0 where there is none
  uint32_t repeats = 1;      // how often the same was said
  uint32_t code_line = 0;
  uint32_t reason_line = 0;  // the line with what is cited: NCCL's reason, DDP's list, a bar; 0: the record's own
  int64_t left_s = -1;       // of a bar: the time that it expects to need still
  std::string op, group_name, group_description, subject, text, object, function, file, host;
  std::string cure;  // of a library's error: what the library itself says to do about it
  std::vector<int32_t> ranks;
  std::vector<int32_t> waiting;  // of a report: who has joined and waits
  std::vector<int64_t> by_peer;  // of a wait: the value that it shows for each of its peers
};

// What stands before a line, and so tells the processes of a mixed file apart. Label 0 is "nothing".
struct TorchLogLabel {
  std::string text;
  LauncherPrefix::Kind kind = LauncherPrefix::Kind::none;
  int64_t number = -1;
  std::string host;
};

// One who speaks in the file, as far as its lines can be told from others'.
struct TorchLogVoice {
  uint32_t label = 0;
  int32_t rank = -1;  // as the lines themselves state it: "[rank3]:", or the rank in the default group
  int64_t pid = -1;   // -2: several
  int64_t world_size = -1;
  uint32_t error_line = 0;  // the last line that PyTorch's logger marks as an error (E, F), 0 where there is none
};

struct TorchLog {
  std::deque<TorchLogRecord> records;
  std::vector<TorchLogLabel> labels;
  std::vector<TorchLogVoice> voices;
  std::vector<TrainingRecord> training;  // one a voice that tells figures of its steps
  std::vector<EarlierRun> earlier_runs;  // whose steps came to their end
  std::vector<SeenWarning> harmless;     // found beside the records; the outline has those of single lines
  uint64_t understood = 0, ignored = 0, not_understood = 0;
  uint32_t lines = 0;
  uint64_t dropped_records = 0;              // over the limit
  int64_t dated_wall_ns = LogMoment::kNone;  // some time of the file with its year
  bool has_launcher = false;                 // torchrun, srun or mpirun speak in it
  std::vector<uint32_t> bar_voices;          // whose progress bar of other work ran when timeouts were reported
  std::vector<std::string> sparing_nodes;    // where Ray counts crashed workers, and none that it killed for memory
};

TorchLog ParseTorchLog(std::string_view bytes);

// torchrun's error.json. False when it is not one.
bool ParseTorchErrorFile(std::string_view bytes, TorchLog* out);

}  // namespace tacet
