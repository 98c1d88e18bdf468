// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/events/event.h"
#include "model/events/nccl_warnings.h"

namespace tacet {

// What the libraries beside NCCL warn of, as data: UCX, libfabric, MPI. The words by which each is known are in
// evidence/torch_log/libraries/torch_log_library_table.h.
inline constexpr NcclWarning kLibraryWarnings[] = {
    {"ucx-no-transport", NcclWarningRole::cause, "UCX found no transport that both processes can use",
     "compare UCX_TLS, UCX_NET_DEVICES and ucx_info -d on both hosts; unset UCX_TLS and UCX_NET_DEVICES as a test",
     Library::ucx},
    {"ucx-no-device", NcclWarningRole::cause, "UCX_TLS or UCX_NET_DEVICES leave UCX no transport to use",
     "compare them with ucx_info -d on that host, or unset them", Library::ucx},
    {"ucx-not-there", NcclWarningRole::notice,
     "UCX was asked for a device or transport that this host does not have, and uses those that it has",
     "correct UCX_TLS or UCX_NET_DEVICES, or unset them", Library::ucx},
    {"ucx-copy-refused", NcclWarningRole::cause,
     "the kernel does not let a process copy from the memory of another one on its host (CMA)",
     "set UCX_TLS=^cma, or allow it: the capability SYS_PTRACE in the container, kernel.yama.ptrace_scope=0 on the "
     "host",
     Library::ucx},
    {"ucx-path-refused", NcclWarningRole::notice, "UCX cannot use one of its transports, but has others",
     "no action is needed unless the job is slow or ends; then ucx_info -d shows what is left", Library::ucx},
    {"ucx-version", NcclWarningRole::cause,
     "the program found a different version of UCX from the one it was built for",
     "look at LD_LIBRARY_PATH and ldd: one UCX must serve the program and its MPI", Library::ucx},
    {"ucx-too-many-files", NcclWarningRole::cause, "a process reached its limit of open files",
     "raise it where the job starts: ulimit -n 1048576, LimitNOFILE in the unit of slurmd, containerd or docker",
     Library::ucx},
    {"fabric-resources", NcclWarningRole::cause, "the network adapter has no resources left for another endpoint",
     "look for left-over processes that hold the adapter; start fewer processes or endpoints per adapter",
     Library::libfabric},
    {"fabric-queue-full", NcclWarningRole::cause, "an event queue of the network adapter overflowed",
     "raise FI_CXI_DEFAULT_CQ_SIZE (131072), and FI_CXI_RX_MATCH_MODE=software where many messages are unexpected",
     Library::libfabric},
    {"mpi-ports-refused", NcclWarningRole::cause, "MPI could not accept a connection",
     "raise the limit of open files where the job starts: ulimit -n 1048576", Library::mpi},
    {"mpi-endpoint-missing", NcclWarningRole::cause,
     "MPI has no address of a peer: its process could not set up its network, or uses another one",
     "read the output of the peer that is named; compare the versions and settings of MPI, UCX or libfabric on both "
     "hosts",
     Library::mpi},
    {"mpi-fabric-refused", NcclWarningRole::cause, "MPI's libfabric finds no network device that it can open",
     "see what is there: fi_info -l; FI_PROVIDER=tcp (I_MPI_OFI_PROVIDER=tcp) as a test; look at ulimit -l, and "
     "whether "
     "the adapters are visible in the container",
     Library::mpi},
    {"mpi-shared-memory", NcclWarningRole::cause, "MPI could not allocate memory that processes of a host share",
     "look at df -h /dev/shm and ipcs -l on that host; give a container more with --shm-size", Library::mpi},
    {"mpi-too-many-communicators", NcclWarningRole::cause,
     "the program holds more communicators than this MPI can have at a time",
     "free communicators that are no longer used (MPI_Comm_free), and make none in every step", Library::mpi},
    {"mpi-versions-differ", NcclWarningRole::cause, "two hosts run different versions of MPI or of its launcher",
     "compare which mpirun and mpirun --version on all hosts, as a non-interactive shell sees them", Library::mpi},
};

}  // namespace tacet
