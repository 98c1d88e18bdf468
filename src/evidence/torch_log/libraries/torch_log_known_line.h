// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What a line of another program means that writes it in words of its own, without the type of an error.
enum class KnownTold : uint8_t {
  failed,     // an error of the process that prints it, or of the one it speaks of
  stops,      // it ends because something else failed, which is told elsewhere
  gone,       // another process, of which it is known that it ended and not how
  node_gone,  // a node, whose signs of life did not come
  hangs,      // a time limit was over without progress
  waits,      // others did not join the setup in time
  lost,       // the connection to another process
  no_ssh,     // the launcher does not reach a host
  no_memory,  // an allocation of GPU memory failed
  bad_gpu,    // a GPU is told to compute wrong results
};

struct KnownLine {
  std::string_view all[2];  // both stand in the line; the second may be empty
  KnownTold told;
  std::string_view name;        // failed: whose error it is; stops, gone: how it is told
  std::string_view rank_after;  // the words before the rank that the line is about
};

// Only words that no healthy job prints at the level of an error.
inline constexpr std::array kKnownLines{
    // Ray
    KnownLine{{"because one Ray agent failed", ""}, KnownTold::failed, "an error of Ray", ""},
    KnownLine{{"have not registered within the timeout", "worker process("}, KnownTold::failed, "an error of Ray", ""},
    KnownLine{{"because the local raylet failed", ""},
              KnownTold::stops,
              "Ray's raylet on its node is gone (see raylet.out there)",
              ""},
    KnownLine{{"due to local raylet death", ""},
              KnownTold::stops,
              "Ray's raylet on its node is gone (see raylet.out there)",
              ""},
    KnownLine{{"the actor's node was terminated unexpectedly", ""}, KnownTold::node_gone, "", ""},
    KnownLine{{"Node is dead because the health check failed", ""}, KnownTold::node_gone, "", ""},
    KnownLine{{"Failed to connect to GCS ", "within "}, KnownTold::lost, "", ""},
    // JAX and XLA
    KnownLine{{"unexpectedly tried to connect with a different incarnation", ""},
              KnownTold::gone,
              "it was restarted, and no log shows how it had ended",
              "/task:"},
    KnownLine{{"hutdown barrier in coordination service has failed", ""},
              KnownTold::stops,
              "JAX's barrier at the end was not reached by all processes: one ended early, or was late",
              ""},
    KnownLine{{"Coordination agent is set to error: ", ""},
              KnownTold::stops,
              "JAX's coordination service reports the error of another process",
              ""},
    KnownLine{{"Barrier timed out", "hutdown"},
              KnownTold::stops,
              "JAX's barrier at the end was not reached by all processes: one ended early, or was late",
              ""},
    KnownLine{{"waited too long for some tasks to show up", ""}, KnownTold::waits, "", ""},
    KnownLine{{"Could not create cudnn handle: ", ""}, KnownTold::failed, "a cuDNN error", ""},
    KnownLine{
        {"Loaded runtime CuDNN library: ", "but source was compiled with"}, KnownTold::failed, "a cuDNN error", ""},
    // TensorFlow
    KnownLine{{"creation via pthread_create() failed", ""}, KnownTold::failed, "an error of TensorFlow", ""},
    // servers of models
    KnownLine{{"Engine core initialization failed", ""}, KnownTold::stops, "vLLM's engine did not start", ""},
    KnownLine{{"# GPU blocks: 0,", ""}, KnownTold::failed, "an error of the server", ""},
    KnownLine{{"GPU KV cache size: 0 tokens", ""}, KnownTold::failed, "an error of the server", ""},
    KnownLine{{"vailable KV cache memory: -", " GiB"}, KnownTold::failed, "an error of the server", ""},
    KnownLine{{"Did not receive response from front-end process within", ""}, KnownTold::waits, "", ""},
    KnownLine{{"text_generation_launcher: Shard ", " crashed"},
              KnownTold::gone,
              "its launcher reports a crash, and no log shows why",
              "Shard "},
    KnownLine{{" scheduler is dead. Please check if there are relevant logs", "Rank "},
              KnownTold::gone,
              "the server found its scheduler dead, and its own error is not here",
              "Rank "},
    KnownLine{{"Scheduler or DataParallelController ", " terminated with -"},
              KnownTold::gone,
              "a signal ended the server's scheduler, and no log shows why",
              ""},
    KnownLine{{"NotEnoughCUDADevices(", ""}, KnownTold::failed, "an error of the server", ""},
    KnownLine{{"couldn't get a response from detokenizer for last ", ""}, KnownTold::hangs, "", ""},
    KnownLine{{"CUDA runtime error: out of memory", ""}, KnownTold::no_memory, "", ""},
    // Megatron-Core's check of results: it repeats the step, on the same GPU and on another one
    KnownLine{{"Unexpected result ", " invocation #"}, KnownTold::failed, "an error of Megatron", " on rank "},
    KnownLine{
        {"First rerun: unexpected result is reproducible", ""}, KnownTold::failed, "an error of Megatron", "Rank "},
    KnownLine{
        {"Correct result (but possible Application error)", ""}, KnownTold::failed, "an error of Megatron", "Rank "},
    KnownLine{{"Possible persistent error!", "iteration #"},
              KnownTold::bad_gpu,
              "possible hardware error: another GPU does not repeat its result",
              "Rank "},
    KnownLine{{"Possible transient error!", "iteration #"},
              KnownTold::bad_gpu,
              "possible hardware error: it does not repeat its own result",
              "Rank "},
    // watchdogs of other programs
    KnownLine{{"Did not get subsequent heartbeat. Waited ", ""}, KnownTold::hangs, "", ""},
    KnownLine{{"Did not get initial heartbeat. Waited ", ""}, KnownTold::hangs, "", ""},
    KnownLine{{"Reaping worker_id=[", "Expired timers"}, KnownTold::hangs, "", ""},
    KnownLine{{"Find timeout start but not finish task:", ""}, KnownTold::hangs, "", "global_rank:"},
    KnownLine{{"Find timeout init but not start task:", ""}, KnownTold::hangs, "", "global_rank:"},
    // launchers
    KnownLine{{"Some rank(s) exited with non-zero exit code", ""},
              KnownTold::stops,
              "the launcher reports that ranks exited with an error",
              ""},
    KnownLine{{"could not connect to some hosts via ssh", ""}, KnownTold::no_ssh, "", ""},
    KnownLine{{"Unable to find the hostfile, no such file", ""}, KnownTold::failed, "an error of the launcher", ""},
    KnownLine{{"Failed to connect to the meta server. Maybe it has exited", ""}, KnownTold::lost, "", ""},
    KnownLine{{"(Unavailable) TCP connection reset by peer", ""}, KnownTold::lost, "", ""},
    // gloo
    KnownLine{{"Wait timeout for key(s): [", ""}, KnownTold::waits, "", ""},
    KnownLine{{"] Read error [", "transport/"}, KnownTold::lost, "", ""},
    KnownLine{{"] writev [", "transport/"}, KnownTold::lost, "", ""},
    // runtimes
    KnownLine{{"libgomp: Thread creation failed", ""}, KnownTold::failed, "an error of OpenMP", ""},
    KnownLine{{"OMP: Error #", ""}, KnownTold::failed, "an error of OpenMP", ""},
    KnownLine{{"userbuffers-host.cpp:", "CUDA Error: "}, KnownTold::failed, "an error of Transformer Engine", ""},
};

// The row that the line belongs to; nullptr: none.
const KnownLine* FindKnownLine(std::string_view text);
// An error in these words only says that somebody else failed, or did not come.
constexpr bool TellsOfOthers(const KnownLine& known) {
  return known.told != KnownTold::failed && known.told != KnownTold::no_memory && known.told != KnownTold::bad_gpu;
}

LineUse ReadKnownLine(const LogLine& line, RecordList& out);

// A limit that was over is none where the program goes on behind it: `served` is the last line that shows it at work.
void DropPassedLimits(TorchLog& log, uint32_t served);

}  // namespace tacet
