// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_mpi_help.h"

#include <string>
#include <string_view>

#include "base/text_scan.h"
#include "model/nccl_warnings.h"

namespace tacet {
namespace {

constexpr int kMostRows = 14;

// "  Local host:              gpu02" -> "gpu02"; empty where the row is another one
std::string_view ValueOf(std::string_view text, std::string_view key) {
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

LineUse MpiHelpReader::Begin(const LogLine& line, Topic topic, RecordList& out) {
  const std::string_view text = Trim(line.text);
  topic_ = topic;
  lines_left_ = kMostRows;
  switch (topic) {
    case Topic::tcp:
    case Topic::unreachable: open_ = out.AddOnce(TorchLogKind::connect_failed, line, "mpi help").first; break;
    case Topic::refused:
      open_ = out.AddOnce(TorchLogKind::exception, line, "mpi help").first;
      open_->subject = "an error of mpirun";
      open_->value2 = out.highest_step();
      break;
    default: {
      const std::string_view id = topic == Topic::memory ? "mpi-memory-limited" : "mpi-network-unused";
      open_ = out.AddOnce(TorchLogKind::nccl_warning, line, id).first;
      open_->subject = id;
      open_->value2 = static_cast<int64_t>(NcclWarningRole::notice);
    }
  }
  open_->repeats = 1;  // each process prints it
  if (open_->text.empty()) open_->text = Capped(text.substr(0, text.find(", and therefore")), 600);
  return LineUse::understood;
}

LineUse MpiHelpReader::ReadRow(std::string_view text) {
  for (const std::string_view key : {"Local host:", "Hostname:", "Host:", "Node:"})
    if (std::string_view host = ValueOf(text, key); !host.empty()) {
      if (open_->host.empty()) open_->host = Capped(TakeWord(host), 200);
      return LineUse::understood;
    }
  switch (topic_) {
    case Topic::unused:
    case Topic::queue:
      for (const std::string_view key : {"Local device:", "Local adapter:", "Module:", "Error:"})
        if (const std::string_view value = ValueOf(text, key); !value.empty()) {
          if (!open_->object.empty()) AppendCapped(open_->object, ": ", 200);
          AppendCapped(open_->object, value, 200);
          return LineUse::understood;
        }
      break;
    case Topic::memory:
      // Registerable memory:     4096 MiB
      // Total memory:            65507 MiB
      for (const std::string_view key : {"Registerable memory:", "Total memory:"})
        if (const std::string_view value = ValueOf(text, key); !value.empty()) {
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
      if (const std::string_view tried = ValueOf(text, "BTLs attempted:"); !tried.empty()) {
        open_->subject = "BTLs attempted: " + Capped(tried, 100);
        return LineUse::understood;
      }
      break;
    case Topic::refused:
      if (const std::string_view file = ValueOf(text, "Executable:"); !file.empty()) {
        AppendCapped(open_->text, " (" + Capped(file, 200) + ")", 600);
        return LineUse::understood;
      }
      break;
    case Topic::tcp:
      if (const std::string_view host = ValueOf(text, "Remote host:"); !host.empty()) {
        open_->object = Capped(TakeWordOf(host), 200);
        return LineUse::understood;
      }
      break;
    case Topic::none: break;
  }
  return LineUse::not_understood;
}

LineUse MpiHelpReader::Read(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (line.has(Keyword::mpi_help)) {
    if (ContainsAny(text, {"unable to find any relevant network interfaces",
                           "No OpenFabrics connection schemes reported", "initializing an OpenFabrics device"}))
      return Begin(line, Topic::unused, out);
    if (Contains(text, "Failed to create a completion queue (CQ)")) return Begin(line, Topic::queue, out);
    if (Contains(text, "OpenFabrics subsystem is configured to only")) return Begin(line, Topic::memory, out);
    // A process or daemon was unable to complete a TCP connection
    // to another process:
    //   Local host:    gpu01
    //   Remote host:   gpu02
    if (Contains(text, "unable to complete a TCP connection")) return Begin(line, Topic::tcp, out);
    if (Contains(text, "MPI processes are unable to reach each other")) return Begin(line, Topic::unreachable, out);
    if (ContainsAny(text, {"was unable to find the specified executable file", "detected an attempt to run as root",
                           "that would result in binding more"}))
      return Begin(line, Topic::refused, out);
  }
  if (open_ == nullptr || text.empty()) return LineUse::not_understood;
  if (--lines_left_ <= 0) {
    open_ = nullptr;
    return LineUse::not_understood;
  }
  return ReadRow(text);
}

}  // namespace tacet
