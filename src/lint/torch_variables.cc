// SPDX-License-Identifier: Apache-2.0
#include "lint/variable_rows.h"

namespace tacet {

// Names and defaults of PyTorch 1.13 to 2.11; "since" and "until" are its releases.
std::string_view TorchVariableRows() {
  static constexpr std::string_view kRows =
      R"rows(NCCL_ASYNC_ERROR_HANDLING|torch_integer||||should|TORCH_NCCL_ASYNC_ERROR_HANDLING|what happens to an operation that fails or times out (PyTorch's name before 2.2)
NCCL_BLOCKING_WAIT|torch_flag||||should|TORCH_NCCL_BLOCKING_WAIT|1 lets wait() block the host (PyTorch's name before 2.2)
NCCL_DESYNC_DEBUG|torch_flag||||should|TORCH_NCCL_DESYNC_DEBUG|1 reports where each rank is when a timeout occurs (PyTorch's name before 2.2)
NCCL_ENABLE_TIMING|torch_flag||||should|TORCH_NCCL_ENABLE_TIMING|1 records when an operation starts (PyTorch's name before 2.2)
NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK|torch_flag||||should|TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK|1 registers tensors with NCCL (PyTorch's name before 2.2)
TORCH_NCCL_ASYNC_ERROR_HANDLING|torch_integer|3|2.2||should||what happens to an operation that fails or times out: 0 nothing, 1 tear down, 2 clean up, 3 tear down without cleanup
TORCH_NCCL_AVOID_RECORD_STREAMS|torch_flag||2.1||should||1 keeps tensors alive by reference; the default since 2.8
TORCH_NCCL_BCAST_UNIQUEID|torch_flag|1|2.7||should||1 passes the id of a communicator from one rank to all
TORCH_NCCL_BLOCKING_WAIT|torch_flag|0|2.2||should||1 lets wait() block the host, and runs without the watchdog
TORCH_NCCL_COORD_CHECK_MILSEC|torch_integer|1000|2.2||should||ms between checks for a dump signal of another rank
TORCH_NCCL_CUDA_EVENT_CACHE|torch_flag||2.5||should||1 keeps CUDA events for later calls
TORCH_NCCL_DEBUG_INFO_PIPE_FILE|text||2.3||may||prefix of the pipes that ask for a flight record; needs a buffer size above 0
TORCH_NCCL_DEBUG_INFO_TEMP_FILE|text||2.2||may||prefix of the flight records; the rank is appended
TORCH_NCCL_DESYNC_DEBUG|torch_flag|0|2.2||should||1 reports where each rank is when a timeout occurs
TORCH_NCCL_DUMP_ON_TIMEOUT|torch_flag|1|2.2||should||1 writes flight records on a timeout; the default since 2.7
TORCH_NCCL_ENABLE_MONITORING|torch_flag|1|2.2||should||1 ends a process whose watchdog is stuck
TORCH_NCCL_ENABLE_TIMING|torch_flag|0|2.2||should||1 records when an operation starts
TORCH_NCCL_EXTRA_DUMP_ON_EXEC|torch_flag|0|2.9||should||1 writes a flight record without stacks when a group is aborted
TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC|torch_integer|480|2.2||should||seconds after which a stuck watchdog ends the process
TORCH_NCCL_HIGH_PRIORITY|torch_flag|0|2.2||should||1 runs collectives on streams of high priority
TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN|torch_flag|1|2.5||should||1 prints C++ stacks when a process is ended
TORCH_NCCL_NAN_CHECK|torch_flag|0|2.4||should||1 looks for NaN in every buffer
TORCH_NCCL_NONBLOCKING_TIMEOUT|torch_integer||2.3||should||seconds to wait for a non-blocking call
TORCH_NCCL_PROPAGATE_ERROR|torch_flag|0|2.7||should||1 reports an error to all ranks
TORCH_NCCL_RANKS_PER_ROOT|torch_integer|128|2.7||should||ranks per root when a communicator is created
TORCH_NCCL_RETHROW_CUDA_ERRORS|torch_flag|1|2.4||should||1 raises CUDA errors that the watchdog sees
TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING|torch_flag|0|2.5||should||1 warns that sends run one after another
TORCH_NCCL_TRACE_BUFFER_SIZE|torch_integer||2.2||should||operations that the flight recorder keeps; 0 is off
TORCH_NCCL_TRACE_CPP_STACK|torch_flag|0|2.2||should||1 keeps C++ stacks
TORCH_NCCL_USE_COMM_NONBLOCKING|torch_flag|0|2.1||should||1 makes communicators without blocking
TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK|torch_flag|0|2.2||should||1 registers tensors with NCCL
TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC|torch_integer|15000|2.2||should||ms that a process waits for its flight record before it exits
TORCH_FR_BUFFER_SIZE|torch_integer||2.8||should||operations that the flight recorder keeps; 0 is off
TORCH_FR_CPP_STACK|torch_flag|0|2.8||should||1 keeps C++ stacks
TORCH_FR_DEBUG_INFO_PIPE_FILE|text||2.8||may||prefix of the pipes that ask for a flight record (XCCL)
TORCH_FR_DUMP_DYNAMIC_FILE_NAME|torch_flag||2.9||may||1 reads the name of the flight record again for each one
TORCH_FR_DUMP_ON_TIMEOUT|torch_flag|1|2.9||should||1 writes flight records on a timeout
TORCH_FR_DUMP_TEMP_FILE|text||2.8||may||prefix of the flight records; the rank is appended
TORCH_INCLUDE_STACK_TRACE|torch_flag|1|2.9||should||1 keeps Python stacks in flight records
TORCH_INCLUDE_ONLY_ACTIVE|torch_flag|0|2.9||should||1 writes only what is not finished
TORCH_DIST_USE_NCCL2|torch_flag||2.15||should||1 uses the new NCCL backend
TORCH_DISTRIBUTED_DEBUG|choice|OFF|1.9||should||OFF, INFO or DETAIL: what is checked before a collective runs
TORCH_DISTRIBUTED_USE_DTENSOR|text||||should||old switch of tensor parallelism
TORCH_CPP_LOG_LEVEL|choice|WARNING|1.9||may||INFO, WARNING, ERROR or FATAL: what the C++ part logs
TORCH_SHOW_CPP_STACKTRACES|text|0|||should||1 adds C++ stacks to exceptions
)rows";
  return kRows;
}

}  // namespace tacet
