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
    for (const CitedEvidence& one : finding.evidence) words += one.says + " :" + std::to_string(one.line) + "\n";
    for (const std::string& step : finding.fix) words += step + "\n";
  }
  for (const CannotTell& open : report.cannot_tell) words += open.question + "\n" + open.missing + "\n";
  for (const std::string& one : report.assumptions) words += "assumed: " + one + "\n";
  for (const ReportJob& job : report.jobs)
    words += (job.world_told ? "world of " : "world of at least ") + std::to_string(job.world_size) + "\n";
  for (const ReportInput& input : report.inputs) words += "not read: " + std::to_string(input.not_understood) + "\n";
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
    {"tests/wild/watchdog/one_rank_alone_issued_it.txt",
     {"Rank 3 alone has issued all_reduce #58", "ranks 0-2 had completed all that they had issued, up to #57",
      "was asked to dump flight records"},
     {"reports an error"}},
    {"tests/wild/watchdog/all_are_in_the_same_work.txt",
     {"[0||was asked to dump flight records]"},
     {"alone has issued"}},
    {"tests/wild/hosts/one_process_is_stopped",
     {"kill -CONT 88145", "process 88145 as stopped (state T)"},
     {"ps -o pid"}},
    {"tests/wild/numbers/one_rank_loses_its_loss_first", {"Rank 2 had a loss of NaN first, at step 50"}, {}},
    {"tests/wild/programs/every_rank_says_that_all_epochs_are_done.txt",
     {"all 3 ranks say that they finished ('all epochs done')"},
     {"does not show how the job ended"}},
    {"tests/wild/programs/last_of_all_steps.txt", {"The last progress line shows step 320 of 320"}, {}},
    {"tests/wild/pasted/gloo_peer_in_quotes.txt", {"at [10.8.0.3]:43185:"}, {"43185\""}},
    {"tests/wild/pasted/barrier_peer_lost.txt", {"lost the connection to rank 0 at"}, {"a peer at"}},
    {"tests/wild/pasted/barrier_peer_timed_out.txt", {}, {"connection", "ended first"}},
    {"tests/wild/healthy/two_runs_side_by_side.txt", {}, {"loss went from"}},
    {"tests/wild/programs/ray_workers_die_at_start.txt", {"ended while they started"}, {"in time"}},
    {"tests/wild/programs/ray_worker_cannot_start_threads.txt", {"cannot create more threads", "ulimit -u"}, {}},
    // Without a frame of the user's own the innermost one is below the call, and calls nobody.
    {"tests/wild/threads/native_stack_without_user_frames.txt", {"innermost frame clock_nanosleep"}, {"called from"}},
    {"tests/wild/infrastructure/ray_counts_three_nodes_dead.txt",
     {"nodes 10.8.1.17, 10.8.1.22 and 10.8.1.31", "autoscaler"},
     {"out of service"}},
    {"tests/wild/infrastructure/ras_process_dead.txt", {"NCCL RAS counts rank 6"}, {"No fault"}},
    {"tests/wild/threads/two_of_four_gpus_idle.txt", {"GPU 2 is busy, GPUs 0 and 1 are idle"}, {"All 3 GPUs"}},
    {"tests/wild/mpi/no_common_transport.txt", {"BTLs attempted: self sm", "--mca pml ucx"}, {"GLOO", "NCCL_SOCKET"}},
    {"tests/wild/frameworks2/grpc_peer_not_there.txt", {"/job:ps/replica:0/task:1", "TF_CONFIG"}, {"GLOO"}},
    {"tests/wild/frameworks2/hccl_link_not_made.txt", {"hccn_tool", "10.7.0.18"}, {"GLOO"}},
    {"tests/wild/pasted/addresses_became_links.txt", {"on 10.9.4.12 is gone"}, {"http"}},
    {"tests/wild/errors/quoted_head_of_spawn.txt", {"rank 3 raised"}, {}},
    // The store of the rendezvous is rank 0's, and no NCCL log exists so early.
    {"tests/wild/old_nccl/torch15_address_in_use.txt",
     {"MASTER_PORT is already in use: rank 0 cannot listen", "On the host that MASTER_ADDR names"},
     {"Which host", "INIT lines"}},
    {"tests/users/fourth/portserver_spawn",
     {"world of 3", "[0||", "If the program itself listens there", "the port in init_method"},
     {"guilty", "torchrun", "at least"}},
    // "GET " in the place of a magic number.
    {"tests/wild/warn_only/wrong_magic_from_scanner.txt",
     {"An HTTP client at 10.0.99.7", "On 10.0.99.7: find", "(3 times)", "the setup fails :5"},
     {"another job", "MASTER_PORT", "2.14", "earlier run"}},
    {"tests/wild/warn_only/stranger_of_another_job.txt", {"from 10.9.0.21", "or another job"}, {"HTTP", "MASTER_PORT"}},
    {"tests/wild/last_lines/slurm_script_missing.txt", {"first line of the job script", "spool"}, {"PATH", "conda"}},
    {"tests/wild/last_lines/slurm_program_missing.txt", {"this path exists on every node"}, {"PATH", "spool"}},
    {"tests/wild/watchdog/rank_completed_what_another_waits_in.txt",
     {"(numbers of group 2)", "rank 0 has completed #902 :4"},
     {}},
    {"tests/wild/infrastructure/virbr0_both_hosts_wait.txt",
     {"both hosts announce this same address", "NCCL_SOCKET_IFNAME=eno1", "not read: 0"},
     {"guilty"}},
    {"tests/wild/watchdog/tokenizer_runs_while_others_time_out.txt",
     {"the progress bar is still advancing :6", "to well over 43 min", "not read: 0"},
     {"Nothing here points"}},
    {"tests/wild/healthy/xla_thread_is_unstuck.txt", {"about 16 s", "the thread continued :2"}, {"threads waited"}},
    {"tests/wild/quoted/then_nothing_after_setup.txt",
     {"The text around the log says that the job hangs; the log ends during NCCL's setup"},
     {"you say", "no log line shows"}},
    {"tests/wild/infrastructure/per_rank_one_missing", {"world of 8", "Get its output"}, {"(ps)", "at least"}},
    {"tests/wild/infrastructure/nccl_error_only_last_line.txt",
     {"NCCL's error message :6", "the process at 10.66.0.14 first"},
     {"warnings around the cited line"}},
    {"tests/wild/threads/router_panics.txt", {"ConnectionRefused", "the line with the error"}, {"Did the job finish"}},
    {"tests/wild/last_lines/4127.txt", {"The path is relative"}, {"container", "permissions"}},
    {"tests/wild/last_lines/absolute_path_missing.txt", {"Check that the path exists"}, {"relative"}},
    {"tests/wild/setup/gid_wrong_roce.txt", {"NCCL_IB_GID_INDEX is set to 0", "the GID index is set :2"}, {}},
    {"tests/wild/clones/ucx_connect.txt",
     {"cannot connect to rank 17 at 10.44.2.9:51120", "nc -zv 10.44.2.9 51120"},
     {"UCX_RC", "ib_write_bw"}},
    {"tests/wild/clones/ucx_tcp_no_answer.txt", {"rank 5 at 172.16.4.40:38100", "From cn8"}, {"perfquery"}},
    {"tests/wild/setup/agent_never_reached_the_store.txt",
     {"A torchrun agent cannot connect to the rendezvous store at 10.61.4.2:29400"},
     {"A process cannot"}},
    {"tests/wild/pasted/cut_traceback_named_in_a_sentence.txt",
     {"Weights & Biases did not answer", "WANDB_MODE=offline", "Run initialization has timed out"},
     {"guilty", "what the message names"}},
    {"tests/wild/setup/wandb_gives_up.txt", {"Weights & Biases did not answer"}, {"guilty"}},
    {"tests/wild/setup/rendezvous_lost_at_its_end.txt", {"harmless if the job had finished"}, {"crashed"}},
    {"tests/wild/frameworks2/desync_report.txt",
     {"according to PyTorch's desync report :6", "[2|suspect|did not join all_reduce #1604]"},
     {"(ps)", "in the list of ranks", "assumed:"}},
    {"tests/wild/setup/reentrant_checkpoint_marks_a_parameter_twice.txt", {", rank 1 in <module> (sft.py:144)"}, {}},
    {"tests/users/fourth/freeze_output",
     {"it alone printed 'warm-up is over, freezing the stem'", "on all ranks in the same step", "on rank 2 :42",
      "what only rank 2 printed :14"},
     {}},
    {"tests/users/second/seedflow_output", {"of blocks.1 (12: "}, {"instead of their indices"}},
    {"tests/users/third/sloweval_some", {"timeout-too-short", "which was still working"}, {"cause is unknown"}},
    {"tests/users/third/scatter_output", {"one entry for each rank"}, {"data shard"}},
    {"tests/wild/setup/scatter_with_a_short_list.txt", {"one entry for each rank", "share_out (split.py:40)"}, {}},
    {"tests/users/fourth/mainreduce_detail",
     {"print_epoch_summary (user_job4.py:149)", "update (user_job4.py:91)"},
     {"compare their tracebacks"}},
    {"tests/users/fourth/inittwice_redirects", {"world of 3"}, {"while setting up", "at least"}},
    {"tests/users/fourth/slowdown_tee",
     {"what grows with each step", "more with each step", "--profile-steps 25-30"},
     {"throttling", "assumed:"}},
    {"tests/users/fourth/stop_tee", {"[1||reports an error]"}, {"no error reported", "assumed:"}},
    {"tests/corpus/lab_evalalone_batchnorm_r0_w4", {"call model.module in eval mode"}, {}},
    {"tests/corpus/lab_frozen_checkpoint_r2_w4", {"most likely frozen"}, {}},
    {"tests/users/third/g_nanskip", {"NaN or infinite for a few steps, and is finite again now"}, {}},
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
    {"tests/users/fourth/slowhost_output", {"600 ms of a 648 ms step was data loading"}, {}},
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
     {"Its process was alive when the others timed out", "if the job hangs again"},
     {"What is it doing"}},
    {"tests/corpus/gloo_stuck_r2_w4",
     {"ranks 1 and 3 waited for a peer until gloo timed out", "[1|waits|timed out]"},
     {}},
    {"tests/users/recorded/operation_output", {"The job is gone", "When it hangs again"}, {"While the job hangs"}},
    {"tests/wild/errors/segfault_behind_a_bar.txt",
     {"a segmentation fault in rasterize (ops.py:303)"},
     {"PYTHONFAULTHANDLER"}},
    {"tests/wild/errors/question_behind_an_error.txt", {"The driver is too old"}, {"deadline"}},
    {"tests/wild/errors/nan_at_the_last_line.txt",
     {"The gradient norm is NaN in the last line (step 903)"},
     {"no log line shows"}},
    {"tests/wild/errors/lsf_limit_of_threads.txt", {"LSF ended the job at its thread limit"}, {"canceled", "bkill"}},
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
    {"tests/wild/errors/cloud_tells_of_a_refused_argument.txt", {"rejected its command line"}, {"UserError"}},
    {"tests/wild/errors/dcgm_fails_on_all.txt", {"All GPUs failed the PCIe test"}, {"-i all"}},
    {"tests/wild/errors/title_says_hang.txt", {"The text around the log says that the job hangs"}, {}},
    {"tests/wild/errors/server_worker_traceback_is_cut.txt", {"the traceback is cut before its last line"}, {}},
    // What the log, or whoever pasted it, states is used.
    {"tests/wild/cluster/ray_worker_crashes_by_itself.txt",
     {"Ray's memory monitor did not kill it", "ray logs raylet.out -ip 172.20.4.8", "worker-*-8823.err"},
     {"These files do not show how it ended"}},
    {"tests/wild/cluster/ray_worker_gone_without_a_count.txt",
     {"These files do not show how it ended"},
     {"Ray's memory monitor did not kill it"}},
    {"tests/wild/infrastructure/memlock_reg_mr.txt",
     {"the memlock limit is too low, 64 KiB", "(rank 0 on node014)", "Singularity and Apptainer", "[0|"},
     {"probably", "Which rank was it", "If ulimit -l is unlimited"}},
    {"tests/wild/infrastructure/memlock_is_unlimited.txt",
     {"the memlock limit is probably too low", "If ulimit -l is unlimited"},
     {"the memlock limit is too low"}},
    {"tests/wild/reader/socket_fallback_slow.txt",
     {"transport-fallback\nNCCL uses TCP sockets: it finds no InfiniBand device",
      "although the hosts have HDR InfiniBand", "said in the text around the log :17"},
     {"Did the job finish", "Did every rank exit", "that NCCL does not see?"}},
    {"tests/wild/reader/socket_fallback_asked.txt",
     {"no faster network device was found", "that NCCL does not see?"},
     {"although the hosts have"}},
    {"tests/wild/infrastructure/port_29500_in_use.txt",
     {"if it belongs to another user or to a running job, leave it", "Each job on a host needs a port of its own"},
     {}},
    {"tests/wild/infrastructure/ucx_transport_retry.txt",
     {"the port with LID 412", "raise UCX_DC_MLX5_TIMEOUT"},
     {"UCX_RC_"}},
    {"tests/wild/clones/ucx_endpoint_timeout.txt", {"raise UCX_RC_TIMEOUT"}, {"LID", "UCX_DC"}},
    {"tests/wild/exam/45_time_limit_noise.log",
     {"its last progress line (step 44120) is 33 s older", "the launcher reports the signal :4"},
     {"Was the job stalled", "the program reports the signal"}},
    {"tests/wild/errors/freezes_every_few_batches.txt",
     {"the job pauses once every 16 iterations", "at least 17 steps in a row"},
     {"Compare with a run that is fast"}},
    // What is quoted stands in the line that is cited, and only equal lines are counted.
    {"tests/wild/setup/too_many_joined.txt", {"the store counted 16 processes for a group of 8 :3"}, {"times"}},
    {"tests/wild/setup/store_tries_no_route.txt",
     {"a process cannot reach its peer :2", "the error of its last attempt :1", "a firewall rejects the connection",
      "firewall-cmd", "the address of worker-head)"},
     {"worker-head:29400;"}},
    {"tests/wild/last_lines/undefined_nccl_symbol_alone.txt",
     {"(the loader: torch/lib/libtorch_cuda.so", "ldd torch/lib/libtorch_cuda.so | grep nccl"},
     {"symbol lookup error"}},
    {"tests/wild/wrapped/fingerprints_over_lines.txt",
     {"Rank 0 called all_gather where rank 1 called broadcast", "world of at least 2"},
     {"disagree"}},
    {"tests/users/fourth/twoforward_output",
     {"runs the backward pass, where the error shows", "...'. Communication is not the cause"},
     {"Fix the error in train_two_views"}},
    // Who is named in the sentence is in the table, too.
    {"tests/wild/setup/exception_wraps_a_refused_connection.txt", {"Ranks 0 and 3 cannot connect to 10.9.1.20"}, {}},
    {"tests/wild/infrastructure/docker0_bootstrap_refused.txt",
     {"Ranks 0 and 1 on ", "Unset NCCL_SOCKET_IFNAME (now docker, seen on lab-ws1)", "[0||]"},
     {"a process on"}},
    // Advice fits the launcher, the backend and the file system.
    {"tests/wild/frameworks/paddle_container_failed.txt", {"log/workerlog.N"}, {"torchrun", "srun"}},
    {"tests/wild/mpi/before_init.txt",
     {"An MPI call was made before MPI was initialized", "Call MPI_Init"},
     {"if there is a traceback", "data shard", "torchrun"}},
    {"tests/wild/clones/mccl_watchdog.txt", {"the log of the collective library"}, {"TORCH_NCCL", "NCCL_DEBUG"}},
    {"tests/wild/infrastructure/checkpoint_disk_full.txt", {"lfs df -h /lustre", "one full OST"}, {"On that host"}},
    {"tests/wild/places/one_rank_a_shard_behind.txt", {"rank 2", "shard 11 opened"}, {}},
    {"tests/wild/places/own_limit_while_one_renders.txt",
     {"rendering 40 preview images", "SyncStalled"},
     {"Communication is not"}},
    {"tests/wild/places/waits_for_a_file_of_another_name.txt", {"/scratch/exp/5c02/vocab.bin", "no rank writes"}, {}},
    {"tests/wild/places/third_rank_is_where_the_first_is.txt", {"Rank 1 waits in a different operation"}, {}},
    {"tests/wild/places/one_rank_completed_what_all_wait_in.txt", {"which rank 3 has completed"}, {}},
    {"tests/wild/places/late_by_its_own_counters.txt", {"Rank 1 issued all_reduce #7 only after ranks 0 and 2"}, {}},
    {"tests/wild/places/message_of_the_third_does_not_fit.txt",
     {"rank 2 has issued its own #34, which does not match"},
     {}},
    {"tests/wild/places/one_rank_left_the_evaluation_out.txt", {"rank 2 continued without it", "score_epoch"}, {}},
    {"tests/users/fifth/21",
     {"is larger than the whole GPU (139.80 GiB)", "(it may use only 6.99 GiB)", "should this tensor really be that"},
     {"or recompute activations"}},
    {"tests/wild/healthy/steady_steps.txt", {"6120 tokens per second on each GPU"}, {}},
    // What the input shows plainly is said: the host, the operation, how many GPUs.
    {"tests/wild/frameworks2/u_srun_exit.txt",
     {"the output of rank 5 (on cn0317)", "srun --output=%t.log", "dmesg -T) of cn0317"},
     {"@record on the main function"}},
    {"tests/wild/pasted/wrong_sums_in_a_sentence.txt", {"The results of all_reduce"}, {"operation not shown"}},
    {"tests/wild/threads/ray_actor_is_not_placed.txt", {"Ray to reserve 8 GPUs"}, {"its resources"}},
    {"tests/wild/reader/straggler.txt", {"ECC on h100-29"}, {"on its host"}},
    {"tests/wild/launcher_summary/srun_node_failure.txt",
     {"Node bn022 failed", "reported by the scheduler or the launcher :2"},
     {}},
    {"tests/wild/infrastructure/perfquery_symbol_errors.txt", {"perfquery -R 118 1", "nodedesc 118"}, {"LID PORT"}},
    // Each file system has its own tools, and only MPI's processes read MPI's settings.
    {"tests/wild/kernel/nfs_gone_while_saving", {"On wk3: df -h", "nfsstat -m"}, {"lfs check", "lctl ping"}},
    {"tests/wild/reader/lustre_hang", {"On gpu208: df -h", "lfs check servers", "lctl ping"}, {"nfsstat"}},
    {"tests/wild/setup/docker_bridge_on_two_hosts.txt", {"Processes 700 and 701 on 2 hosts"}, {"Open MPI"}},
    // Who pasted the log has run the test already.
    {"tests/wild/infrastructure/p2p_hang_4090_iommu.txt", {"as the text around the log says"}, {"Test: run with"}},
    // The line of code below Python's warning is not the program's output.
    {"tests/users/eighth/15", {"in a barrier, as its last line shows"}, {"return func(*args"}},
    {"tests/wild/fragments/summary_quoted_as_failed.txt", {"The results of all_reduce"}, {"operation not shown"}},
    {"tests/wild/fragments/direct_access_is_slower.txt", {"with direct access :7", "without it :1"}, {}},
    {"tests/wild/infrastructure/nvls_multicast_bind_fails.txt",
     {"rank 2 (most likely the process on hgxh100-19)", "the memory could not be bound :"},
     {"a process on hgxh100-19:", "is not ready :"}},
    {"tests/wild/mpi/completion_queue_refused.txt", {"raise ulimit -l"}, {"has no such adapter"}},
    {"tests/wild/frameworks2/tqdm_slow.txt", {"the pace at the end :1"}, {"the pace before that"}},
    {"tests/wild/setup/gdr_off.txt", {"\nLoad nvidia_peermem"}, {"No GDRDMA:"}},
    {"tests/wild/frameworks/mindspore_several_nodes_timed_out.txt", {"ranks 0-3 stopped sending heartbeats"}, {}},
    {"tests/users/fourth/proto_files", {"Print env | grep NCCL"}, {"Use one image"}},
    {"tests/users/recorded/limit_healthy", {"is less than 1 s older"}, {}},
    // Ranks without a GPU never joined for that reason, not the other way round.
    {"tests/users/fifth/24", {"application-exception\nThe process sees no GPU: ranks 1 and 2"}, {}},
    {"tests/wild/frameworks/gdb_py_bt_in_a_queue.txt",
     {"waits for its workers (get, queues.py:131); its main thread is not shown"},
     {}},
    // One stack in the program's own code says more than advice on workers; one in a loader's wait does not.
    {"tests/wild/gloo/slow_rank_at_work_in_its_own_code.txt",
     {"a stack shows rank 1 in mel_spectrogram (train.py:30)"},
     {"Take stacks of its DataLoader workers"}},
    {"tests/wild/gloo/slow_rank_waits_for_its_loader.txt",
     {"Take stacks of its DataLoader workers"},
     {"a stack shows"}},
    {"tests/wild/gloo/slow_rank_and_another_at_one_place.txt", {}, {"a stack shows"}},
    // An error that a rank caught is why its calls differ, and no consequence of that.
    {"tests/users/fourteenth/26",
     {"Rank 1 raised ValueError in read_rows (train_eval.py:996)", "It continued with other calls than its peers"},
     {"application-exception"}},
    {"tests/users/fourteenth/38",
     {"that ended only this thread", "Rank 2 most likely raised"},
     {"does not show which"}},
    // Twice the bytes may be twice the width; which side is wrong it does not show.
    {"tests/users/fourteenth/27", {"1750 bytes on rank 1, 3500 bytes on another rank", "compare the data types"}, {}},
    {"tests/users/fourteenth/11", {"which were in the backward pass"}, {"Which rank is the odd one"}},
};

INSTANTIATE_TEST_SUITE_P(All, WildWords, testing::ValuesIn(kSaid));

}  // namespace
}  // namespace tacet
