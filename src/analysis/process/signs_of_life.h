// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "model/incident.h"

namespace tacet {

// An error that only says that somebody else failed: a timeout, a lost peer, a store that is gone.
bool IsConsequence(const Event& event);

// An Xid that the driver writes because a process ended or its channel was taken away: it names no fault of the device.
bool IsAftermath(const Event& event);

// An exception with which the program gave up waiting for other ranks, by a limit of its own: "sync of step 14 not
// complete after 6 s".
bool IsOwnWaitInVain(const Event& event);

// The kernel says that a GPU failed, in a way that its user does not survive: an Xid of that kind, an uncorrected
// memory error, an NVLink error, a PCIe device that is lost (only where it is known to be a rank's GPU).
bool IsDeviceFault(const Event& event);

// An Xid that a kernel of the program brings about, mostly by an access out of bounds: 13 and 31.
bool IsOfAProgram(const Event& event);

// An end that nobody else's failure brings about: a segmentation fault, SIGKILL, an exit code of the program's own.
// SIGABRT is the watchdog's, SIGTERM the launcher's, and code 1 what Python gives for any exception, that of a lost
// peer too.
bool IsFirstHandEnd(const Event& event);

// An exception or NCCL warning that says that memory of the host ran out.
bool IsHostMemoryShortage(const Event& event);

// True when both times are known and leave no doubt that the first is the earlier.
bool IsBefore(const Event& a, const Event& b);

// The same, and by the order of lines where times are missing and both stand in one file.
bool CameBefore(const Event& a, const Event& b);

// What one rank left behind, and the events that tell how it is or how it ended.
struct RankLife {
  Rank rank;
  bool has_record = false;       // a flight record or black box with content
  bool has_dump = false;         // a flight record with content: written by the process when others waited already
  bool has_stub_record = false;  // a dump file, but the recorder was off or nothing had been issued
  bool has_nccl_log = false;
  bool has_output = false;  // stdout or stderr
  bool has_stack = false;
  bool has_cut_file = false;          // one that is known to end early: what it does not say proves nothing
  bool asked_to_dump = false;         // its output says that it saw the dump signal: the process was alive then
  bool finished = false;              // ended in order
  const Event* exited = nullptr;      // launcher or shell tells exit code or signal
  const Event* oom_killed = nullptr;  // kernel or cgroup
  const Event* gpu_error = nullptr;   // Xid, ECC, NVLink, CUDA error other than out of memory
  // The same, but it came with the death of a peer whose memory or GPU it shared, or may have: see vanished_ranks.
  const Event* shared_gpu_error = nullptr;
  const Event* cuda_oom = nullptr;
  const Event* host_memory = nullptr;  // it, or a worker of its, could not get memory of the host
  const Event* segfault = nullptr;
  const Event* hung_task = nullptr;    // the kernel says that the process is blocked in it (D state)
  const Event* mild_xid = nullptr;     // an Xid that programs survive: it names no fault by itself
  bool vanished = false;               // gone without a word, see vanished_ranks
  bool fell_silent = false;            // the same by one kind of file: counts for a rank that is waited for
  const Event* exception = nullptr;    // first uncaught one that is not a consequence
  const Event* consequence = nullptr;  // first uncaught one that is
  // One that it raised only when the others' time was up: its frames show where the rank was until then.
  const Event* late_exception = nullptr;
  const Event* dump_signal = nullptr;   // with which it learnt that somebody's time was up
  const Event* gloo_timeout = nullptr;  // of those: gloo waited for a peer until its time was up
  const Event* gloo_loss = nullptr;     // of those: gloo lost a peer
  const Event* gave_up = nullptr;       // of those: by a limit of the program's own it had waited for others too long
  const Event* aborted = nullptr;       // terminate called, SIGABRT
  const Event* unused_parameters = nullptr;
  const Event* timeout = nullptr;       // its watchdog fired
  const Event* lost_peer = nullptr;     // it saw a connection close
  const Event* left = nullptr;          // its program came to an end, whatever the end was
  const Event* remote_error = nullptr;  // NCCL saw a connection close, by the watchdog's words
  const Event* store_lost = nullptr;    // it no longer reaches the store of rank 0
  const Event* init_error = nullptr;    // NCCL or store error while setting up
  const Event* last_event = nullptr;    // latest one with a time
  int64_t last_wall_ns = kNoTime;
  int64_t last_step = -1;  // the highest that its output tells
  // Something of the process ran after the others had begun to wait.
  bool has_voice() const {
    return has_stack || has_dump || has_stub_record || asked_to_dump || timeout || lost_peer || store_lost ||
           consequence || exception || exited || finished || gpu_error;
  }
  bool any() const { return has_record || has_stub_record || has_nccl_log || has_output || has_stack; }
};

// Its own output, or the kernel, says what ended it.
bool IsExplained(const RankLife& life);

struct SignsOfLife {
  std::map<Rank, RankLife> ranks;                                      // every rank of the job
  int records = 0, stubs = 0, nccl_logs = 0, outputs = 0, stacks = 0;  // how many ranks left each
  // When the job last printed that it advanced, and how often it did so before; kNoTime where it printed too little.
  int64_t last_progress_wall_ns = kNoTime, progress_interval_ns = kNoTime;
  Patience patience;  // of the incident
  const RankLife* Of(Rank rank) const;
  size_t Present() const;  // how many ranks left a file
};

SignsOfLife ReadSignsOfLife(const Incident& incident);

// How the job ended, told by what its ranks say, before any cause is named.
struct Outcome {
  const Event* first_timeout = nullptr;  // somebody's watchdog fired
  const Event* first_failure = nullptr;  // earliest uncaught error that is no consequence
  const Event* first_end = nullptr;      // earliest end of a rank with a code or signal, whatever the reason
  bool unfinished_calls = false;         // a recorder shows operations that did not end
  bool aged = false;                     // ... for as long as the timeout, or for an unknown time
  bool overdue = false;                  // by boxes: for much longer than anything before, see overdue.h
  bool ended_in_order = false;           // every rank that logged destroyed its communicators, or says that it finished
  bool somebody_finished = false;        // at least one rank ended in order
  bool hangs() const { return first_timeout || (unfinished_calls && aged); }
  // Something stands still, though perhaps only for a while.
  bool stands() const { return hangs() || (unfinished_calls && overdue); }
  // It hangs, or nothing says that it ever ended: then who is waited for is a question worth asking.
  bool may_hang() const { return stands() || (!somebody_finished && !first_failure && !unfinished_calls); }
};

Outcome ReadOutcome(const Incident& incident, const SignsOfLife& life);

}  // namespace tacet
