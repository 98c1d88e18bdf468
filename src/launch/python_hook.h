// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <string_view>

namespace tacet {

// The signal on which Python processes of a run write their stacks. A real-time signal: programs of this field use
// SIGUSR1 and SIGUSR2 (Lightning, submitit, Slurm's --signal) and launchers forward the others. It is sent only to
// processes that handle it, since its default is to end them.
inline int StackSignal() { return SIGRTMAX - 3; }

// sitecustomize.py of the run folder. Python imports it before the program; it registers faulthandler on StackSignal()
// with a file "stacks/stack_rank_3_pid_4711.txt", and hands on to the sitecustomize that would have been imported
// without it. Whatever goes wrong in it goes wrong in silence: it must never be the reason why a job ends.
std::string_view PythonHook();

}  // namespace tacet
