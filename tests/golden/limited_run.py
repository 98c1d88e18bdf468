# SPDX-License-Identifier: Apache-2.0
"""Runs a command and tells what it cost: exit code or signal, peak memory, processor time."""
import os
import resource
import signal
import tempfile
from dataclasses import dataclass

# Memory of any command: this much, and so many bytes for each byte of text it reads.
FREE_BYTES, BYTES_PER_BYTE = 64 << 20, 8
MOST_MEMORY = 6 << 30  # of address space, so that a mistake hurts nobody else on the machine


@dataclass
class Cost:
    code: int  # negative: the signal
    peak_bytes: int
    cpu_seconds: float
    out: bytes
    error: str

    def within(self, input_bytes):
        return self.peak_bytes <= FREE_BYTES + BYTES_PER_BYTE * input_bytes


def run_measured(command, seconds=60):
    """A command that takes longer than that on the clock is ended (SIGKILL)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        streams = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, error.fileno(), 2)]
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))
        try:
            child = os.posix_spawn(command[0], command, os.environ, file_actions=streams)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        before = signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            _, status, usage = os.wait4(child, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        out.seek(0)
        error.seek(0)
        return Cost(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime,
                    out.read(), error.read().decode(errors="replace"))
