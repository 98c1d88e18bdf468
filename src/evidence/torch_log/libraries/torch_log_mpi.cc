// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_mpi.h"

#include <algorithm>
#include <utility>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launch_failure.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"

namespace tacet {
namespace {

constexpr size_t kMostNotices = 65536;

// "[[56171,1],6]" and "[prterun-node7-12345@1,6]": the rank stands last. "[[56171,0],6]" is a daemon of the launcher.
int32_t RankOfName(std::string_view name) {
  if (ContainsAny(name, {",0],", "@0,"})) return -1;
  const size_t end = name.rfind(']'), comma = name.rfind(',');
  if (end == std::string_view::npos || comma == std::string_view::npos || comma > end) return -1;
  std::string_view digits = name.substr(comma + 1, end - comma - 1);
  int32_t rank = -1;
  return TakeNumber(digits, &rank) && digits.empty() && rank >= 0 ? rank : -1;
}

}  // namespace

void MpiNoticeReader::Add(const Notice& notice, RecordList& out) {
  LogLine line = notice.line;
  line.text = notice.text;
  TorchLogRecord& record = out.Add(TorchLogKind::process_exited, line);
  record.value = notice.code;
  if (notice.code < 0) record.subject = std::string(SignalName(-notice.code));
  record.rank = notice.rank;
  record.pid = notice.pid > 0 ? notice.pid : -1;
  record.host = notice.host;
  record.named_first = notice.first;
  record.text = notice.text;
}

LineUse MpiNoticeReader::Begin(const LogLine& line, Notice notice) {
  open_ = std::move(notice);
  open_.line = line;
  open_.line.text = {};  // it does not outlive the line
  open_.text = Capped(Trim(line.text), 600);
  lines_left_ = 3;
  return LineUse::understood;
}

LineUse MpiNoticeReader::ReadEnd(const LogLine& line, RecordList& out) {
  --lines_left_;
  const std::string_view text = Trim(line.text);
  int64_t code = 0;
  if (const auto number = IntAfter(text, hydra_ ? "KILLED BY SIGNAL: " : "signal "); number && *number > 0)
    code = -*number;
  else if (const auto exit = IntAfter(text, hydra_ ? "EXIT CODE: " : "Exit code: "))
    code = *exit;
  else if (auto padded = After(text, "Exit code:"))
    SkipBlanks(*padded), TakeNumber(*padded, &code);
  // Hydra prints the status as the system gives it: the signal, or 256 times the code.
  if (hydra_ && (code == 4 || code == 6 || code == 7 || code == 8 || code == 9 || code == 11 || code == 15))
    code = -code;
  if (hydra_ && code > 255 && code % 256 == 0) code /= 256;
  if (code == 0 || code < -64 || code > 255) return LineUse::not_understood;
  open_.code = code > 128 && code < 160 ? 128 - code : code;
  AppendCapped(open_.text, " ", 600);
  AppendCapped(open_.text, text, 600);
  lines_left_ = 0;
  if (!hydra_)
    Add(open_, out);
  else if (hydras_.size() < kMostNotices)
    hydras_.push_back(open_);
  return LineUse::understood;
}

// "worker-2[0]", the host and the number there, of horovodrun's elastic jobs; "3", the rank, of all others.
LineUse MpiNoticeReader::ReadHorovodName(std::string_view name, const LogLine& line) {
  Notice notice;
  std::string_view digits = name;
  int32_t rank = -1;
  const size_t open = name.rfind('[');
  if (TakeNumber(digits, &rank) && digits.empty() && rank >= 0)
    notice.rank = rank;
  else if (open != std::string_view::npos && open > 0 && name.ends_with(']') &&
           name.find(' ') == std::string_view::npos)
    notice.host = Capped(name.substr(0, open), 200);
  else
    return LineUse::not_understood;
  hydra_ = false;
  notice.first = true;
  return Begin(line, std::move(notice));
}

LineUse MpiNoticeReader::ReadLoss(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (line.has(Keyword::mpi_noticed)) {
    if (ContainsAny(text, {"was unable to reliably start one or more daemons",
                           "daemon has unexpectedly failed after launch"})) {
      AddLaunchFailure(line, LaunchProblem::daemons, "", "", out);
      return LineUse::understood;
    }
    if (!ContainsAny(text, {"has lost communication with ", "peer process has unexpectedly"}))
      return LineUse::not_understood;
    loss_ = &out.Add(TorchLogKind::connection_lost, line);
    loss_->text = Capped(text, 600);
    if (Contains(text, "remote daemon")) loss_->object = kRemoteDaemon;
    loss_lines_ = 14;
    return LineUse::understood;
  }
  if (loss_ == nullptr || loss_lines_-- <= 0) return LineUse::not_understood;
  std::string_view host;
  if (text.starts_with("Remote daemon:"))
    host = After(text, " on node ").value_or("");
  else if (text.starts_with("hostname:"))
    host = text.substr(9);
  else if (text.starts_with("Peer host:"))
    host = text.substr(10);
  else
    return LineUse::not_understood;
  loss_->subject = Capped(TakeWord(host), 200);
  AppendCapped(loss_->text, " ", 600);
  AppendCapped(loss_->text, text, 600);
  loss_ = nullptr;
  return LineUse::understood;
}

LineUse MpiNoticeReader::ReadConnect(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  const bool block = Contains(text, "Open MPI failed to TCP connect to a peer");
  const bool bare = Contains(text, "mca_btl_tcp_endpoint_") && Contains(text, "connect() to ");
  if (block || bare) {
    const auto address = After(text, "connect() to ");
    const std::string key = "mpi " + std::string(address ? address->substr(0, address->find(' ')) : "");
    const auto [record, is_new] = out.AddOnce(TorchLogKind::connect_failed, line, key);
    record->repeats = 1;
    if (is_new) record->text = Capped(text, 600);
    connect_ = record;
    connect_lines_ = block ? 12 : 0;
    if (block) return LineUse::understood;
  }
  if (connect_ == nullptr || (!bare && connect_lines_-- <= 0)) return LineUse::not_understood;
  if (text.starts_with("Local host:")) {
    std::string_view host = text.substr(11);
    connect_->host = Capped(TakeWord(host), 200);
    return LineUse::understood;
  }
  if (text.starts_with("PID:")) {
    std::string_view pid = Trim(text.substr(4));
    if (int64_t number = 0; TakeNumber(pid, &number) && number > 0) connect_->pid = number;
    return LineUse::understood;
  }
  if (text.starts_with("Error:")) {
    connect_->subject = Capped(Trim(text.substr(6)), 100);
    connect_ = nullptr;
    return LineUse::understood;
  }
  auto address = After(text, "connect() to ");
  if (!address) return LineUse::not_understood;
  const std::string_view peer = TakeWord(*address);
  connect_->object = Capped(peer, 200);
  // The line that tells the address is the one to cite.
  connect_->source = line.source;
  connect_->text = Capped(text, 600);
  if (bare) {
    if (const auto words = After(*address, "failed: ")) connect_->subject = Capped(Trim(*words), 100);
    connect_ = nullptr;
  }
  return LineUse::understood;
}

LineUse MpiNoticeReader::Read(const LogLine& line, RecordList& out) {
  if (connect_ != nullptr || line.has(Keyword::mpi_noticed))
    if (const LineUse use = ReadConnect(line, out); use != LineUse::not_understood) return use;
  if (loss_ != nullptr || line.has(Keyword::mpi_noticed))
    if (const LineUse use = ReadLoss(line, out); use != LineUse::not_understood) return use;
  if (lines_left_ > 0)
    if (const LineUse use = ReadEnd(line, out); use != LineUse::not_understood) return use;
  const std::string_view text = Trim(line.text);
  // Hydra's second word for the same end: "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"
  if (!hydras_.empty() && Contains(text, "EXIT STRING: "))
    if (const auto signal = IntAfter(text, "(signal "); signal && *signal == hydras_.back().code)
      hydras_.back().code = -*signal;
  if (!line.has(Keyword::mpi_noticed)) return LineUse::not_understood;
  Notice notice;
  if (Contains(text, " noticed that process rank ")) {
    notice.rank = IntAfter<int32_t>(text, "process rank ").value_or(-1);
    notice.pid = IntAfter(text, "with PID ").value_or(-1);
    if (auto host = After(text, "on node ")) notice.host = Capped(TakeWord(*host), 200);
    hydra_ = false;
    const LineUse begun = Begin(line, std::move(notice));
    // Most often all of it stands on one line.
    if (const auto signal = IntAfter(text, "on signal "); signal && *signal > 0 && *signal <= 64) {
      open_.code = -*signal;
      lines_left_ = 0;
      Add(open_, out);
    }
    return begun;
  }
  if (text.starts_with("Process name: ")) {
    const std::string_view name = Trim(text.substr(14));
    if (!name.starts_with('[')) return ReadHorovodName(name, line);
    notice.rank = RankOfName(text);
    if (notice.rank < 0) return LineUse::not_understood;
    hydra_ = false;
    notice.first = true;
    return Begin(line, std::move(notice));
  }
  if (text.starts_with('=')) {
    // =   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES; the older releases tell no more but the code.
    notice.rank = IntAfter<int32_t>(text, "RANK ").value_or(-1);
    notice.pid = IntAfter(text, "PID ").value_or(-1);
    if (auto host = After(text, "RUNNING AT ")) notice.host = Capped(TakeWord(*host), 200);
    hydra_ = true;
    return Begin(line, std::move(notice));
  }
  return LineUse::not_understood;
}

void MpiNoticeReader::Finish(RecordList& out) {
  // SIGKILL and SIGTERM among several are Hydra's own; alone they are the reason.
  const auto by_hydra = [](const Notice& notice) { return notice.code == -9 || notice.code == -15; };
  for (const Notice& notice : hydras_)
    if (hydras_.size() == 1 || !by_hydra(notice)) Add(notice, out);
  // Where all were killed, one may have been so first; which of them these lines do not tell.
  if (hydras_.size() > 1 && std::all_of(hydras_.begin(), hydras_.end(), by_hydra)) {
    Notice one = hydras_.front();
    one.rank = -1;
    one.pid = -1;
    Add(one, out);
  }
}

}  // namespace tacet
