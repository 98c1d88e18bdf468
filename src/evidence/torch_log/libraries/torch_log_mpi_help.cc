// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_mpi_help.h"

#include <string>
#include <string_view>

#include "base/text_scan.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

constexpr int kMostRows = 14;

// "  Local host:              gpu02" -> "gpu02"; empty where the row is another one
std::string_view HelpValueOf(std::string_view text, std::string_view key) {
  if (!text.starts_with(key)) return {};
  return Trim(text.substr(key.size()));
}

std::string_view TakeWordOf(std::string_view text) { return TakeWord(text); }

// "Process 2 ([[11275,1],1]) is on host: node026"
std::string_view HostOfProcess(std::string_view text, std::string_view process) {
  if (!text.starts_with(process)) return {};
  auto host = After(text, " is on host: ");
  return host ? TakeWord(*host) : std::string_view();
}

}  // namespace

// Whoever adds a note adds its words to the keywords of mpi_help, too.
const MpiHelpReader::Note MpiHelpReader::kNotes[] = {
    {"unable to find any relevant network interfaces", Topic::unused, "mpi-network-unused"},
    {"No OpenFabrics connection schemes reported", Topic::unused, "mpi-network-unused"},
    {"initializing an OpenFabrics device", Topic::unused, "mpi-network-unused"},
    {"Failed to create a completion queue (CQ)", Topic::queue, "mpi-network-unused"},
    {"OpenFabrics subsystem is configured to only", Topic::memory, "mpi-memory-limited"},
    // A process or daemon was unable to complete a TCP connection
    // to another process:
    //   Local host:    gpu01
    //   Remote host:   gpu02
    {"unable to complete a TCP connection", Topic::tcp},
    {"MPI processes are unable to reach each other", Topic::unreachable},
    {"at least one MPI process is unreachable", Topic::unreachable},
    {"was unable to find the specified executable file", Topic::refused},
    {"detected an attempt to run as root", Topic::refused},
    {"that would result in binding more", Topic::refused},
    {"tried to fork a new process via the \"execve\"", Topic::refused, "execve failed"},
    {"Your job failed to map", Topic::refused, "the job failed to map"},
    {"accept(3) system call failed on a TCP socket", Topic::warning, "mpi-ports-refused"},
    {"not able to find endpoint information for a remote", Topic::warning, "mpi-endpoint-missing"},
    {"detected a mismatch in versions between two processes", Topic::warning, "mpi-versions-differ"},
    {"No nodes are available for this job", Topic::failed,
     "Look at the allocation: the nodes of the hostfile or of the scheduler (scontrol show hostnames, qstat -f) must "
     "be "
     "up and belong to this job."},
    {"No usable network interfaces were found on this host", Topic::failed,
     "Correct prte_if_include and prte_if_exclude (oob_tcp_if_include in Open MPI 4), or unset them; ip -br addr shows "
     "what that host has."},
    {"PMIx_Init failed for the following reason", Topic::failed,
     "Start the program with mpirun, or with srun --mpi=pmix: srun --mpi=list shows what this Slurm has."},
    {"failed an OFI Libfabric library call", Topic::failed,
     "See what libfabric finds there: fi_info -l in the container; --mca pml ob1 --mca mtl ^ofi goes without it as a "
     "test."},
    // The library attempted to open the following supporting CUDA libraries, but each of them failed: MPI goes on
    // without them.
    {"the following supporting CUDA libraries", Topic::note},
};

LineUse MpiHelpReader::Begin(const LogLine& line, const Note& note, RecordList& out) {
  const std::string_view text = Trim(line.text);
  topic_ = note.topic;
  lines_left_ = kMostRows;
  switch (topic_) {
    case Topic::note: open_ = &spare_; return LineUse::understood;
    case Topic::tcp:
    case Topic::unreachable: open_ = out.AddOnce(TorchLogKind::connect_failed, line, "mpi help").first; break;
    case Topic::refused:
      open_ = out.AddOnce(TorchLogKind::exception, line, "mpi help").first;
      open_->subject = "an error of mpirun";
      open_->text = note.what;
      open_->value2 = out.highest_step();
      break;
    case Topic::failed:
      open_ = out.AddOnce(TorchLogKind::nccl_error, line, "mpi help").first;
      open_->value = 2;
      open_->subject = "an error of Open MPI";
      open_->object = Capped(text, 300);
      open_->cure = note.what;
      break;
    default: {
      open_ = out.AddOnce(TorchLogKind::nccl_warning, line, note.what).first;
      open_->subject = note.what;
      const NcclWarning* known = FindNcclWarning(note.what);
      open_->value2 = static_cast<int64_t>(known ? known->role : NcclWarningRole::notice);
    }
  }
  open_->repeats = 1;  // each process prints it
  if (open_->text.empty()) open_->text = Capped(text.substr(0, text.find(", and therefore")), 600);
  return LineUse::understood;
}

LineUse MpiHelpReader::ReadRow(std::string_view text) {
  for (const std::string_view key : {"Local host:", "Hostname:", "Host:", "Node:"})
    if (std::string_view host = HelpValueOf(text, key); !host.empty()) {
      if (open_->host.empty()) open_->host = Capped(TakeWord(host), 200);
      return LineUse::understood;
    }
  switch (topic_) {
    case Topic::unused:
    case Topic::queue:
      for (const std::string_view key : {"Local device:", "Local adapter:", "Module:", "Error:"})
        if (const std::string_view value = HelpValueOf(text, key); !value.empty()) {
          if (!open_->object.empty()) AppendCapped(open_->object, ": ", 200);
          AppendCapped(open_->object, value, 200);
          return LineUse::understood;
        }
      break;
    case Topic::memory:
      // Registerable memory:     4096 MiB
      // Total memory:            65507 MiB
      for (const std::string_view key : {"Registerable memory:", "Total memory:"})
        if (const std::string_view value = HelpValueOf(text, key); !value.empty()) {
          if (!open_->object.empty()) AppendCapped(open_->object, " of ", 200);
          AppendCapped(open_->object, value, 200);
          return LineUse::understood;
        }
      break;
    case Topic::unreachable:
      if (const std::string_view host = HostOfProcess(text, "Process 1 "); !host.empty()) {
        open_->host = Capped(host, 200);
        return LineUse::understood;
      }
      if (const std::string_view host = HostOfProcess(text, "Process 2 "); !host.empty()) {
        open_->object = Capped(host, 200);
        return LineUse::understood;
      }
      if (const std::string_view tried = HelpValueOf(text, "BTLs attempted:"); !tried.empty()) {
        open_->subject = "BTLs attempted: " + Capped(tried, 100);
        return LineUse::understood;
      }
      break;
    case Topic::refused:
      for (const std::string_view key : {"Executable:", "Application name:", "Error:", "Mapping policy:"})
        if (const std::string_view value = HelpValueOf(text, key); !value.empty()) {
          AppendCapped(open_->text, " (" + Capped(value, 200) + ")", 600);
          return LineUse::understood;
        }
      break;
    case Topic::tcp:
      if (const std::string_view host = HelpValueOf(text, "Remote host:"); !host.empty()) {
        open_->object = Capped(TakeWordOf(host), 200);
        return LineUse::understood;
      }
      break;
    case Topic::warning:
      for (const std::string_view key : {"Remote host:", "Peer host:"})
        if (const std::string_view host = HelpValueOf(text, key); !host.empty()) {
          open_->object = Capped(TakeWordOf(host), 200);
          return LineUse::understood;
        }
      break;
    case Topic::failed:
      for (const std::string_view key : {"Error:", "Location:"})
        if (const std::string_view value = HelpValueOf(text, key); !value.empty()) {
          AppendCapped(open_->object, " (" + Capped(value, 100) + ")", 300);
          return LineUse::understood;
        }
      break;
    case Topic::note: return LineUse::ignored;
    case Topic::none: break;
  }
  return LineUse::not_understood;
}

LineUse MpiHelpReader::Read(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (line.has(Keyword::mpi_help)) {
    for (const Note& note : kNotes)
      if (Contains(text, note.words)) return Begin(line, note, out);
  }
  if (open_ == nullptr || text.empty()) return LineUse::not_understood;
  if (--lines_left_ <= 0 || text.starts_with("----")) {
    open_ = nullptr;
    return LineUse::not_understood;
  }
  return ReadRow(text);
}

}  // namespace tacet
