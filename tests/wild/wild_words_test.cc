// SPDX-License-Identifier: Apache-2.0
// What is said of a pasted log, and what must not be said of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/load.h"
#include "report/make_report.h"

namespace tacet {
namespace {

// Verdict, evidence, steps and ranks, one below the other.
std::string WordsOf(std::string_view path) {
  auto loaded = LoadEvidence({(std::filesystem::path(TACET_SOURCE_DIR) / path).string()}, {});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  const Report report = MakeReport(std::move(loaded->fragments));
  std::string words = report.verdict.cause + "\n" + report.verdict.headline + "\n";
  for (const ReportFinding& finding : report.findings) {
    words += finding.headline + "\n";
    for (const CitedEvidence& one : finding.evidence) words += one.says + "\n";
    for (const std::string& step : finding.fix) words += step + "\n";
  }
  for (const ReportRank& rank : report.ranks)
    words += "[" + std::to_string(rank.rank) + "|" + rank.role + "|" + rank.doing + "]\n";
  return words;
}

struct Said {
  std::string_view path;
  std::vector<std::string_view> holds, lacks;
};

class WildWords : public testing::TestWithParam<Said> {};

TEST_P(WildWords, SayWhatTheLogShows) {
  const std::string words = WordsOf(GetParam().path);
  for (const std::string_view one : GetParam().holds)
    EXPECT_NE(words.find(one), std::string::npos) << one << "\n" << words;
  for (const std::string_view one : GetParam().lacks)
    EXPECT_EQ(words.find(one), std::string::npos) << one << "\n" << words;
}

const Said kSaid[] = {
    // The odd rank is a call ahead, and the calls are plainly two.
    {"tests/users/recorded/skip_output",
     {"collective-skipped", "most likely skipped", "loop_tensor (trainjob.py:142)", "up to #24",
      "[2|guilty|timed out]"},
     {"drop_last", "DistributedSampler"}},
    // The same sizes, and nobody is ahead: no call was left out.
    {"tests/wild/watchdog/two_sizes_nobody_ahead.txt", {"collective-mismatch-size"}, {"skipped", "drop_last"}},
    {"tests/wild/beside/two_threads_one_group.txt",
     {"communicator-shared-by-threads", "publish (meter.py:41)", "[2|waits|"},
     {"guilty", "The stacks show where each side is"}},
    {"tests/wild/quoted/reply_nccl_remote_error.txt", {"Rank 2 got no answer from peer 10.8.3.4"}, {"which rank"}},
    {"tests/wild/kernel/amdgpu_fault_without_head.txt",
     {"Process 40211 (trainer) made an illegal memory access", "AMD_SERIALIZE_KERNEL=3 to find the kernel"},
     {"Drain the node and reboot", "GPU reset"}},
    {"tests/wild/setup/socket_beside_ib.txt",
     {"rank 1 uses TCP sockets as well", "NCCL lists mlx5_0:1/IB", "[1||"},
     {"[1|ok|"}},
    {"tests/wild/reader/ucx_retry.txt",
     {"Rank 17 on lx112 got no answer from a peer", "the peer's process is gone", "raise UCX_RC_TIMEOUT",
      "cannot be raised"},
     {"[17|waits|"}},
    {"tests/wild/last_lines/dataloader_shm.txt", {"most likely full", "SIGBUS"}, {"file_system", "NCCL_SHM_DISABLE"}},
    {"tests/wild/last_lines/cpp_exception.txt", {"core dump", "gdb"}, {"last frame in your own code"}},
    {"tests/wild/frameworks2/u_ds_minus9.txt",
     {"OOM killer is its most frequent sender", "memory limit of the job"},
     {}},
    {"tests/users/recorded/memory_redirects",
     {"loop_tensor (trainjob.py:124)", "asked for 16.00 GiB", "Look at loop_tensor (trainjob.py:124) first"},
     {}},
    {"tests/corpus/lab_gpuassert_r1_w4",
     {"An assertion failed in a GPU kernel of rank 1", "the CUDA error of rank 1"},
     {"the exception of rank 1"}},
    {"tests/users/fourth/slowhost_output", {"600 ms of 648 ms went into loading data"}, {}},
    {"tests/wild/infrastructure/ibstat_one_port_polling.txt",
     {"1 of the 5 network ports listed", "the state of mlx5_3; its physical state is Polling"},
     {}},
    {"tests/wild/kernel/nvrm_bus_line_alone.txt", {"The GPU at PCI 0000:5e:00 has fallen off the bus"}, {"as happens"}},
    {"tests/wild/frameworks2/store_get_reset.txt", {"ranks 4 and 7 lost the connection"}, {}},
    {"tests/wild/frameworks2/verl_megatron_to.txt", {"which rank it is", " raised AssertionError"}, {"A rank raised"}},
    {"tests/wild/exam/07_megatron_pp_recv.log", {"so did rank 3", "When it hangs again"}, {"While the job hangs"}},
    {"tests/wild/quoted/fence_watchdog_stuck.txt", {"the watchdog thread of rank 1 made no progress"}, {}},
    {"tests/wild/quoted/stops_and_gdb_is_attached.txt",
     {"its main thread is not shown", "thread apply all py-bt"},
     {"not a wait for other ranks"}},
    {"tests/users/fourth/fifo_cancel",
     {"rank 1 was in read_commands (user_job4.py:682)", "ranks 0, 2 and 3 had #30 under way"},
     {"[1|guilty"}},
    {"tests/users/second/socket_stacks",
     {"its process was alive when the others timed out", "when the job hangs again"},
     {"What is it doing"}},
    {"tests/corpus/gloo_stuck_r2_w4",
     {"ranks 1 and 3 waited for a peer until gloo timed out", "[1|waits|timed out]"},
     {}},
    {"tests/users/recorded/operation_output", {"The job is gone", "When it hangs again"}, {"While the job hangs"}},
    {"tests/wild/errors/segfault_behind_a_bar.txt",
     {"a segmentation fault in rasterize (ops.py:303)"},
     {"PYTHONFAULTHANDLER"}},
    {"tests/wild/errors/question_behind_an_error.txt", {"The driver is older"}, {"deadline"}},
    {"tests/wild/errors/nan_at_the_last_line.txt",
     {"The gradient norm is NaN in the last line (step 903)"},
     {"no line of a log"}},
    {"tests/wild/errors/lsf_limit_of_threads.txt",
     {"LSF ended the job at its limit of threads"},
     {"canceled", "bkill"}},
    {"tests/wild/errors/pods_leave_a_full_node.txt",
     {"pod pretrain-7b-worker-3: its node was low on disk space", "Write checkpoints and caches to a volume"},
     {"See why"}},
    {"tests/wild/errors/hub_behind_a_proxy.txt",
     {"curl -I", "HF_HUB_OFFLINE=1"},
     {"Fix the error where it was raised"}},
    {"tests/wild/errors/oomd_ends_a_session.txt", {"session-31.scope", "systemd-run --scope"}, {"Kubernetes", "pod "}},
    {"tests/wild/errors/rank_variable_not_set.txt", {"torchrun --nproc-per-node"}, {}},
    {"tests/wild/errors/extension_does_not_build.txt",
     {"A CUDA extension could not be built", "the first line with 'error:'"},
     {"exited with code 1"}},
    {"tests/wild/errors/nvlinks_of_one_gpu_listed.txt", {"1 of the 4 NVLink links of GPU 5 is inactive"}, {}},
    {"tests/wild/errors/dcgm_lists_one_link_down.txt", {"NVLink link 2 of GPU 1 is inactive"}, {"is normal"}},
    {"tests/wild/errors/dcgm_lists_all_links_down.txt", {"None of the NVLink links listed is active"}, {}},
    {"tests/wild/errors/heap_is_damaged.txt", {"The memory of a process is damaged", "gdb"}, {"is not in these files"}},
    {"tests/wild/errors/cloud_tells_of_a_refused_argument.txt", {"refused its command line"}, {"UserError"}},
    {"tests/wild/errors/dcgm_fails_on_all.txt", {"All GPUs failed the test PCIe"}, {"-i all"}},
    {"tests/wild/errors/title_says_hang.txt", {"You say that the job hangs"}, {}},
    {"tests/wild/errors/server_worker_traceback_is_cut.txt", {"the traceback is cut before its last line"}, {}},
};

INSTANTIATE_TEST_SUITE_P(All, WildWords, testing::ValuesIn(kSaid));

}  // namespace
}  // namespace tacet
