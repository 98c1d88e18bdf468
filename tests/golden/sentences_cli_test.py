#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the answers say, beside status, cause and ranks: sentences_cli_test.py TACET [unittest arguments]"""
import pathlib
import re
import subprocess
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
TACET = ""


def ask(command, path):
    done = subprocess.run([TACET, command, str(TESTS / path)], capture_output=True, text=True, check=False)
    return re.sub(r"\s+", " ", done.stdout)


class Sentences(unittest.TestCase):
    def says(self, path, *parts, command="diagnose"):
        text = ask(command, path)
        for part in parts:
            self.assertIn(part, text)

    def never_says(self, path, *parts, command="diagnose"):
        text = ask(command, path)
        for part in parts:
            self.assertNotIn(part, text)

    def test_a_finished_job_keeps_the_errors_it_survived_as_a_note(self):
        path = "users/fourth/retries_output"
        self.says(path, "HEALTHY", "The loss went from 2.500 to 2.506.", "The output ends with 'INFO trainer: done'.")
        self.says(path, ", healthy", "ConnectionResetError was printed, and the job continued (4 times)",
                  command="postmortem")
        self.never_says(path, "Validation", "Did the job finish?", command="postmortem")
        self.says("wild/reader/save_failed_then_done.txt", "could not write /ckpt/final.pt: quota exceeded")
        self.never_says("wild/reader/save_failed_then_done.txt", "HEALTHY", "No line after the last step", "o line reports a fault")

    def test_a_postmortem_without_a_fault_asks_for_no_fix(self):
        path = "wild/reader/evaluation_done_is_no_end.txt"
        self.says(path, ", no fault found", "| Status | no fault found |", command="postmortem")
        self.never_says(path, "Confidence", "Validation", "Root cause", command="postmortem")

    def test_a_postmortem_tells_of_what_is_over(self):
        path = "golden/rank_stuck_in_data_loader/input"
        self.says(path, "was stuck on the host", "had not issued", "waited for it", command="postmortem")

    def test_a_raised_timeout_is_a_hang(self):
        self.says("wild/clones/gaudi_watchdog.txt", "HANG", "rank 0 timed out in all_reduce after 10 min")
        self.never_says("wild/clones/collective_call_timed_out_retried.txt", "HANG", "CRASH")

    def test_the_limit_of_locked_memory_is_quoted_where_it_is_told(self):
        self.says("wild/clones/ucx_memlock.txt", "too low, 64 KiB", "rdma-broken (certain)")
        self.says("wild/warn_only/memlock_limit_told.txt", "too low, 64 KiB", "rdma-broken (certain)")
        self.says("wild/warn_only/memlock_too_small.txt", "probably too low (rank 2 on r4n12)", "rdma-broken (likely)")

    def test_a_blanked_pid_hides_neither_host_nor_adapter(self):
        self.says("wild/warn_only/redacted_pid.txt", "fails on node-01.example.com (mlx5_4:1)")

    def test_a_buffer_that_cannot_be_shared_proves_no_broken_link(self):
        self.says("wild/clones/rccl_hip_ipc.txt", "p2p-broken (likely)",
                  "a GPU buffer could not be shared with another process")

    def test_a_hang_cites_its_timeout_and_lists_all_ranks(self):
        self.says("wild/clones/rccl_watchdog.txt", "rank 3 timed out in all_gather #22", "2. the timeout",
                  "0-2,4-7 not seen", "Which rank used this GPU?")

    def test_a_service_that_the_kernel_killed_is_named(self):
        self.says("wild/kernel/service_killed_healthy.txt", "killed java (process 9120) for lack of memory in its cgroup",
                  "nothing shows that it belonged to a job")
        self.says("wild/kernel/service_killed_beside_a_job.txt", "killed mysqld (process 3311) for lack of host memory")

    def test_processes_that_a_launcher_closes_count_as_ranks(self):
        self.says("wild/last_lines/launcher_closes_seven.txt", "Ranks (at least 8)")
        self.says("wild/last_lines/sigkill_no_reason.txt", "Ranks (at least 4)")

    def test_last_seen_is_not_older_than_the_operation(self):
        self.says("users/fourth/reduction_info", "all_reduce #78")
        self.never_says("users/fourth/reduction_info", "LAST SEEN")

    def test_the_cpu_does_not_always_tell_the_value(self):
        self.never_says("wild/clones/hip_assertion_in_an_index.txt", "with the value")

    def test_who_else_holds_the_memory_of_a_gpu_is_named(self):
        self.says("wild/exam/13_oom_device3_shared.log",
                  "ran out of memory on GPU 3 in main (sft.py:198): another process (51833) holds 41.08 of the 79.15 GiB there",
                  "Find out what process 51833 is")
        self.never_says("wild/exam/13_oom_device3_shared.log", "Lower the batch size")
        self.says("wild/frameworks/oom_beside_another_process.txt", "another process (9120) holds 27.10 of the 39.39 GiB of GPU 2")
        # In a container the process itself is listed by its number on the host.
        self.says("wild/exam/19_ray_oom_gpu0.log", "Process 118848 on 10.130.71.7 ran out of GPU memory")
        self.never_says("wild/exam/19_ray_oom_gpu0.log", "another process")
        self.says("wild/exam/20_oom_all_deepspeed.log", "Several ranks ran out of memory")
        self.never_says("wild/exam/20_oom_all_deepspeed.log", "If only one rank")

    def test_the_systems_error_tells_refused_from_no_answer(self):
        self.says("wild/exam/21_rdzv_wrong_address.log", "the address does not answer", "firewall")
        self.never_says("wild/exam/21_rdzv_wrong_address.log", "is refused", "NCCL_SOCKET_IFNAME")
        self.says("wild/setup/store_tries_refused.txt", "the connection is refused, so nothing listens there")
        self.never_says("wild/setup/store_tries_refused.txt", "firewall", "NCCL_SOCKET_IFNAME")
        self.says("wild/setup/store_tries_no_route.txt", "a firewall rejects the connection", "ip route get")

    def test_an_engine_that_gives_up_on_its_workers_is_quoted_without_its_loggers_head(self):
        path = "wild/frameworks/vllm_rpc_timeout_alone.txt"
        self.says(path, "process 911 waits for its workers, which did not answer sample_tokens", "The job is gone")
        self.never_says(path, "direct cause of", "Fix the error")

    def test_places_of_the_failed_collective_are_compared(self):
        self.says("wild/watchdog/stacks_at_different_places.txt",
                  "rank 0 issued it in reduce_metrics (metrics.py:31), rank 1 in vote_to_stop (early_stop.py:58)",
                  "the ranks run different code")
        self.says("wild/exam/05_first_allreduce_cri.log", "issued in sanity_check (train.py:44)")
        self.never_says("wild/exam/05_first_allreduce_cri.log", "barrier")

    def test_what_the_lines_tell_is_not_asked_for(self):
        self.says("wild/exam/23_nccl_versions.log", "Rank 0 runs NCCL 2.21.5 and rank 8 runs 2.19.3")
        self.says("wild/exam/28_roce_gid0.log", "GID index 0 is a link-local address", "ibv_modify_qp fails on rank 10 (")
        self.says("wild/exam/32_xid31_mmu.log", "Xid 31 in the kernel log points to the program")
        self.never_says("wild/exam/32_xid31_mmu.log", "Look for Xid lines")
        self.says("wild/exam/11_ray_verl_repeated.log", "Ray left out 6 lines like these")
        self.never_says("wild/exam/11_ray_verl_repeated.log", "is not in these files: add it")
        self.says("wild/exam/39_summary_only.log", "Find the output of rank 6 (on n-02)")
        self.says("wild/exam/36_flash_attn_import.log", "was built for a different release of PyTorch", "Reinstall the package")
        self.never_says("wild/exam/37_json_in_worker_rich.log", "x1b")

    def test_sizes_far_apart_are_different_calls_and_pipelines_wait_for_stages(self):
        self.never_says("wild/exam/02_torch21_sizes_bar.log", "last batch")
        self.says("wild/exam/07_megatron_pp_recv.log", "ranks 0-3 timed out in recv #4413 after 10 min, each in a group of its own",
                  "the next or the previous stage")
        self.never_says("wild/exam/07_megatron_pp_recv.log", "compare the order", "in others")

    def test_a_gpu_that_heat_slows_down_is_named(self):
        self.says("wild/exam/33_thermal_slow", "GPU 5 is throttled (a hardware thermal slowdown, 88 \u00b0C): 855 MHz")
        self.never_says("wild/numbers/all_gpus_alike", "slowed down")

    def test_a_stop_of_all_ranks_names_none(self):
        self.says("wild/numbers/loss_nan_and_stop.txt", "The program stopped because a loss or a gradient is NaN")
        self.never_says("wild/numbers/loss_nan_and_stop.txt", "Only rank 0")

    def test_processes_of_a_restart_are_no_further_ranks(self):
        self.never_says("wild/beside/restart_fails_otherwise.txt", "Ranks (at least 8)")

    def test_a_refused_command_line_is_told_as_one(self):
        self.says("users/recorded/badflag_output", "Ranks 0 and 1 rejected their command line: unrecognized arguments:",
                  "Correct the arguments in the launch command")
        self.never_says("users/recorded/badflag_output", "Which rank was it", "traceback", "data shard")
        self.says("wild/setup/click_unknown_option.txt", "2 processes rejected their command line: No such option: --warmup-step")
        self.says("wild/setup/absl_unknown_flag.txt", "The program rejected its command line: Unknown command line flag 'num_steps'")
        self.says("wild/setup/torchrun_without_script.txt", "rejected its command line: torchrun: error: the following arguments")

    def test_the_frame_in_the_users_own_code_is_named(self):
        self.says("wild/last_lines/shape_error_before_summary.txt", "RuntimeError in forward (patch.py:61)",
                  "The error is raised in forward (patch.py:61), the last frame in the program's own code")

    def test_advice_fits_the_component_and_the_library(self):
        self.says("wild/old_nccl/n212_nvlink_error.txt", "nvidia-smi nvlink -e", "Restart the job without sx2")
        self.never_says("wild/old_nccl/n212_nvlink_error.txt", "CUDA_LAUNCH_BLOCKING", "that node")
        self.says("wild/last_lines/deepep_two_lines.txt", "torch.cuda.can_device_access_peer")
        self.never_says("wild/last_lines/deepep_two_lines.txt", "NCCL_P2P_DISABLE")

    def test_the_rank_that_torchrun_names_is_where_to_look_first(self):
        for path in ("wild/launcher_summary/cleanup_with_root_cause.txt", "users/fourth/setorder_detail"):
            self.says(path, "which torchrun names as the first to fail")
            self.never_says(path, "Read the output before the cited line", "Look for the rank that ended first")

    def test_the_steps_fit_the_library(self):
        self.says("wild/frameworks/jax_coordinator_refused.txt", "JAX_COORDINATOR_ADDRESS")
        self.says("wild/clones/xccl_oneccl.txt", "fi_info", "FI_PROVIDER_PATH")
        self.says("wild/clones/hccl_device_synchronize.txt", "ACL_DEVICE_SYNC_TIMEOUT")
        self.says("wild/reader/megatron_ckpt_shape.txt", "the model: embedding.word_embeddings.weight is [128256, 4096] in the checkpoint")
        self.says("wild/watchdog/ras_one_answer_in_two_files", "a second RAS report", "Does rank 2 make progress?")

    def test_a_known_scheduler_has_its_own_commands(self):
        self.says("wild/last_lines/pbs_preempted_mail.txt", "tracejob JOB", "qsub -r y")
        self.never_says("wild/last_lines/pbs_preempted_mail.txt", "sacct", "kubectl", "--requeue")
        self.says("wild/last_lines/moab_wallclock.txt", "qsub -l walltime")
        self.never_says("wild/last_lines/moab_wallclock.txt", "activeDeadlineSeconds")

    def test_the_one_assumption_that_was_made_is_named(self):
        for path, rank in (("wild/last_lines/spawn_before_1_6.txt", 1), ("wild/launcher_summary/deepspeed_only_process_killed.txt", 0)):
            self.says(path, f"rank {rank} is taken from the local rank; in a multi-node job the real rank may differ")
            self.never_says(path, "a label in front", "[Rank N]")

    def test_what_ran_before_in_the_same_text_is_named(self):
        self.says("wild/reader/elastic_restart_ok.txt", "HEALTHY",
                  "after one restart by torchrun (local rank 2 had been ended by SIGSEGV, line 2)")
        self.says("wild/last_lines/run_complete_then_more_steps.txt", "Steps up to 23 ended with 'fit INFO: run complete' (line 26)")
        self.never_says("wild/exam/58_resume_then_done.log", "begin again")

    def test_survivors_that_raise_at_once_make_a_crash(self):
        self.says("corpus/lab_killed_ring_r1_w4", "CRASH rank 1", "ranks 0, 2 and 3 failed when the connection closed")
        self.never_says("corpus/lab_killed_ring_r1_w4", "wait in all_reduce")

    def test_a_postmortem_is_of_a_job_that_is_over(self):
        path = "users/recorded/evaluates_records"
        self.says(path, "Next time, before the job is ended, check what rank 0 does", "What was rank 0 doing on the host?",
                  command="postmortem")
        self.never_says(path, "Kill and restart", command="postmortem")
        done = subprocess.run([TACET, "postmortem", str(TESTS / path), "-b", str(TESTS / "corpus/lab_healthy_ddp_w3")],
                              capture_output=True, text=True, check=False)
        self.assertIn("| unknown | lo |", done.stdout)
        self.assertNotIn("not set", done.stdout)
        self.assertNotIn("run.py:851] \n", done.stdout)

    def test_general_words_are_of_the_maker_of_the_gpu(self):
        self.says("wild/reader/rocm_fault.txt", "| Ranks | at least 12 |", "RAS counters", command="postmortem")
        self.never_says("wild/reader/rocm_fault.txt", "Xid", "DCGM", "CUDA", command="postmortem")

    def test_a_quote_holds_the_decisive_words(self):
        self.says("wild/numbers/gradient_nan_and_no_step_skipped.txt", "grad norm: nan")
        self.says("wild/launcher_summary/deepspeed_only_process_killed.txt", "exits with return code = -9")

    def test_the_commands_list_of_gpus_is_the_jobs(self):
        self.says("wild/exam/24_invalid_ordinal.log", "CUDA_VISIBLE_DEVICES=0,1,2,3 shows 4 GPUs, and more processes were started",
                  "--nproc-per-node 4")

    def test_a_plain_table_of_nvidia_smi_is_judged(self):
        self.says("wild/cluster/smi_one_gpu_hot.txt", "GPU 2 is at 87 \u00b0C", "draws 312 W where the others draw 648 W or more")
        self.says("wild/cluster/smi_gpu_with_errors.txt", "cannot reach the GPU at PCI 0000:0b:00")

    def test_a_pod_is_no_host(self):
        self.says("wild/launcher_summary/kubectl_master_crash_loop.txt", "A container of pod bert-run7-master-0 failed: CrashLoopBackOff")

    def test_what_was_reported_and_passed_is_told(self):
        self.says("wild/healthy/port_down_and_up_again.txt",
                  "Port mlx5_3:1 of h200-a3 went down and came back up; no other line reports a fault.")
        self.says("wild/setup/store_refused_at_first.txt", "HEALTHY",
                  "2 attempts to connect to the store at 172.20.4.9:29512 failed, which is normal while it starts; no "
                  "other line reports a fault")
        self.says("wild/healthy/connect_retry_then_ok.txt",
                  "2 attempts by NCCL to connect to a peer failed and were retried")
        self.never_says("wild/healthy/steady_steps.txt", "attempt", "no other line")

    def test_a_hang_of_a_group_asks_for_its_members_only(self):
        path = "wild/frameworks2/ddp_gradckpt_hang.txt"
        self.says(path, "If EXPERT_MODEL_PARALLEL_GROUP has members beside ranks 4 and 5: add their output",
                  "flight records of all members of EXPERT_MODEL_PARALLEL_GROUP")
        self.never_says(path, "The output of ranks 0-3", "of all ranks")

    def test_whom_the_launcher_names_as_the_first_is_not_looked_for(self):
        path = "wild/frameworks2/u_horovodrun_134.txt"
        self.says(path, "the launcher names it as the first to fail, and the reason is not in these files",
                  "Why did rank 1 end?", "horovodrun --output-filename")
        self.never_says(path, "Look for the rank that ended first", "What ended the job first?", "torchrun")
        self.never_says("wild/launcher_summary/torchrun_four_sigabrt.txt", "names it as the first")

    def test_a_wait_that_failed_before_the_interruption_is_what_to_look_at(self):
        path = "wild/last_lines/interrupted_after_a_rank_had_failed.txt"
        self.says(path, "Rank 0 was in main (pretrain.py:140) when the job was ended", "What did rank 0 do?")
        self.never_says(path, "Look for the rank that ended first")

    def test_a_count_of_a_ras_report_is_cited_with_its_line(self):
        path = "wild/watchdog/ras_two_files_same_counts"
        self.says(path, 'ras_1403.json:75 "AllReduce": 880')
        self.never_says(path, "ras_1403.json:57 {")

    def test_a_checkpoint_that_does_not_fit_says_what_then_who(self):
        self.says("wild/setup/checkpoint_has_another_vocabulary.txt",
                  "The checkpoint does not match the model: model.embed_tokens.weight is [32000, 5120] in the checkpoint "
                  "and [32064, 5120] in the model; ranks 0 and 3 raised RuntimeError in build (load.py:57)",
                  "1. the exception of ranks 0 and 3 ")
        path = "wild/frameworks2/size_mismatch_zero3.txt"
        self.says(path, "parameters are partitioned: model.embed_tokens.weight is [128266, 4096] in the checkpoint and "
                        "[0] in the model; ranks 0 and 1 raised RuntimeError", "GatheredParameters")
        self.never_says(path, "RuntimeError: Error(s) in loading state_dict for LlamaForCausalLM: RuntimeError")

    def test_a_failed_test_of_dcgm_names_the_gpu(self):
        path = "wild/infrastructure/dcgm_diag_memory_fail.txt"
        self.says(path, "GPU 6 failed the Page Retirement/Row Remap and GPU Memory tests of dcgmi diag", "gpu-fault",
                  "nvidia-smi --gpu-reset -i 6")
        self.never_says(path, "Did the job finish?", "that Tacet does not know")
        self.says("wild/infrastructure/ok_dcgm_diag_passes.txt", "NO FAULT FOUND",
                  "No test of dcgmi diag failed (6 passed)")

    def test_retries_of_the_allocator_are_memory_pressure(self):
        self.says("wild/healthy/memory_summary_tells_of_retries.txt",
                  "GPU memory was nearly full: PyTorch's allocator freed its cache and retried 7 times")
        self.says("wild/frameworks2/ds_cache_flush.txt", "retried 7 times, which slows steps down")

    def test_attempts_of_torchrun_are_told_apart(self):
        path = "wild/infrastructure/two_attempts"
        self.says(path, "HEALTHY", "after one restart by torchrun (rank 2 had raised torch.OutOfMemoryError in attempt 0)")
        self.never_says(path, "CRASH")

    def test_a_start_of_dgl_that_hangs_says_where(self):
        self.says("wild/frameworks2/u_dgl_wait.txt",
                  "hangs while DGL's clients connect to its servers (10.3.1.7:30050, 10.3.1.8:30050)")
        self.never_says("wild/healthy/dgl_servers_start_and_clients_train.txt", "hang", "HANG")

    def test_a_short_text_of_a_job_is_one(self):
        for name in ("exam_kernel/server_answers_no_other_line", "frameworks2/h_best_inf",
                     "healthy/kubeflow_pods_succeed", "healthy/no_ipv6_warning"):
            self.never_says(f"wild/{name}.txt", "No recognizable job data")
        self.says("wild/healthy/question_without_log.txt", "No recognizable job data")
        self.says("wild/healthy/log_of_a_web_server.txt", "No recognizable job data")


if __name__ == "__main__":
    TACET = sys.argv.pop(1)
    unittest.main()
