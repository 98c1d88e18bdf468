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
                  "0-2,4-7 silent", "Which rank used the GPU that reported the fault?")

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


if __name__ == "__main__":
    TACET = sys.argv.pop(1)
    unittest.main()
