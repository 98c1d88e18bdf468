// SPDX-License-Identifier: Apache-2.0
#include "plugin/output/prom_textfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "plugin/box_file.h"
#include "plugin/output/text_buffer.h"
#include "plugin/record/tick_clock.h"

namespace tacet::plugin {
namespace {

// Inspector's size classes are one unit wide: "4-5MB".
uint64_t SizeClass(uint64_t bytes, char* label, size_t room) {
  static const char* const kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  int unit = 0;
  uint64_t value = bytes;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  const unsigned long long from = value;
  if (label != nullptr && bytes == 0)
    snprintf(label, room, "0B");
  else if (label != nullptr)
    snprintf(label, room, "%llu-%llu%s", from, from + 1, kUnits[unit]);
  return value << (10 * unit);
}

// Files of processes of this host that are gone and could not remove them.
void SweepDead(const char* dir, const char* host) {
  DIR* files = opendir(dir);
  if (files == nullptr) return;
  char prefix[96];
  const int length = snprintf(prefix, sizeof prefix, "tacet-%s-", host);
  while (const dirent* entry = readdir(files)) {
    if (strncmp(entry->d_name, prefix, static_cast<size_t>(length)) != 0) continue;
    char* end = nullptr;
    const long pid = strtol(entry->d_name + length, &end, 10);
    const bool ours = strcmp(end, ".prom") == 0 || strcmp(end, ".prom.tmp") == 0;
    if (ours && pid > 0 && kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
      unlinkat(dirfd(files), entry->d_name, 0);
  }
  closedir(files);
}

}  // namespace

void PromTextfile::Open(const OpenBox& box, const Settings& settings) {
  path_[0] = 0;
  buckets_used_ = 0;
  finished_ = 0;
  if (settings.prom_dir[0] == 0) return;
  char host[64];
  CopyFileName(host, sizeof host, box.header->host);
  CopyText(dir_, sizeof dir_, settings.prom_dir);
  snprintf(path_, sizeof path_, "%s/tacet-%s-%d.prom", settings.prom_dir, host, box.pid);
  snprintf(temporary_, sizeof temporary_, "%s.tmp", path_);
  interval_ns_ = int64_t{settings.prom_interval_ms} * 1'000'000;
  next_ns_ = MonotonicNs() + interval_ns_;
}

void PromTextfile::Prepare(const OpenBox& box, const Settings& settings) {
  if (!asked()) return;
  char host[64];
  CopyFileName(host, sizeof host, box.header->host);
  MakeFolders(settings.prom_dir);
  SweepDead(settings.prom_dir, host);
}

PromTextfile::Bucket* PromTextfile::FindBucket(OpenBox& box, const FinishedOp& finished) {
  const uint64_t size_from = SizeClass(finished.bytes, nullptr, 0);
  for (int i = 0; i < buckets_used_; ++i) {
    Bucket& b = buckets_[i];
    if (b.kind == finished.op.kind && b.size_from == size_from && b.ranks == finished.size &&
        b.nodes == finished.nodes && b.device == finished.device && b.algorithm == finished.op.algorithm &&
        b.protocol == finished.op.protocol && strcmp(b.comm_name, finished.comm_name) == 0)
      return &b;
  }
  if (buckets_used_ == kBuckets) {
    CountDrop(box, box::Drop::output_lost);
    return nullptr;
  }
  Bucket& fresh = buckets_[buckets_used_++];
  fresh = Bucket{};
  fresh.size_from = size_from;
  fresh.ranks = finished.size;
  fresh.nodes = finished.nodes;
  fresh.device = finished.device;
  fresh.kind = finished.op.kind;
  fresh.algorithm = finished.op.algorithm;
  fresh.protocol = finished.op.protocol;
  fresh.transfer = finished.transfer;
  CopyText(fresh.comm_name, sizeof fresh.comm_name, finished.comm_name);
  return &fresh;
}

void PromTextfile::Add(OpenBox& box, const FinishedOp& finished) {
  ++finished_;
  Bucket* bucket = FindBucket(box, finished);
  if (bucket == nullptr) return;
  ++bucket->count;
  bucket->duration_us_sum += static_cast<double>(finished.duration_ns) / 1000;
  if (finished.bus_gbs <= 0) return;
  bucket->bus_log_sum += std::log(finished.bus_gbs);
  ++bucket->bus_count;
}

// Puts the families together, each with its HELP and TYPE and all its samples in one place, as the format wants it.
class PromText {
 public:
  PromText(const PromTextfile& file, OpenBox& box, TextBuffer& out)
      : file_(file), box_(box), header_(*box.header), out_(out) {}

  void PrintAll() {
    Family("nccl_bus_bandwidth_gbs", "gauge",
           "Bus bandwidth of collectives finished in the last interval, geometric mean, GB/s");
    PrintBuckets("nccl_bus_bandwidth_gbs", false, true);
    Family("nccl_collective_exec_time_microseconds", "gauge",
           "Time of collectives finished in the last interval, mean");
    PrintBuckets("nccl_collective_exec_time_microseconds", false, false);
    Family("nccl_p2p_bus_bandwidth_gbs", "gauge",
           "Bus bandwidth of sends and receives of the last interval, geometric mean, GB/s");
    PrintBuckets("nccl_p2p_bus_bandwidth_gbs", true, true);
    Family("nccl_p2p_exec_time_microseconds", "gauge",
           "Time of sends and receives finished in the last interval, mean");
    PrintBuckets("nccl_p2p_exec_time_microseconds", true, false);
    PrintOwn();
  }

 private:
  void Family(const char* name, const char* type, const char* help) {
    out_.Print("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
  }

  void Label(const char* name, const char* value, bool first = false) {
    out_.Print("%s%s=\"", first ? "" : ",", name);
    out_.PrintEscaped(value[0] != 0 ? value : "unknown", false);
    out_.Print("\"");
  }

  // Inspector has no rank label; without one, ranks that share a GPU would collide.
  void RankLabel() {
    if (header_.rank >= 0)
      out_.Print(",rank=\"%d\"", header_.rank);
    else
      out_.Print(",rank=\"pid%d\"", header_.pid);
  }

  void GpuLabel(int32_t device) {
    if (device >= 0)
      out_.Print(",gpu=\"GPU%d\"", device);
    else
      out_.Print(",gpu=\"unknown\"");
  }

  void PrintBuckets(const char* metric, bool transfers, bool bandwidth) {
    for (int i = 0; i < file_.buckets_used_; ++i) {
      const PromTextfile::Bucket& b = file_.buckets_[i];
      if (b.transfer != transfers) continue;
      out_.Print("%s{", metric);
      Label("version", "v5.1", true);
      Label("slurm_job_id", header_.slurm_job_id);
      Label("node", header_.host);
      GpuLabel(b.device);
      Label("comm_name", b.comm_name);
      out_.Print(",n_nodes=\"%d\",nranks=\"%d\"", b.nodes, b.ranks);
      Label(transfers ? "p2p_operation" : "collective", NameOf(b.kind));
      char size[48];
      SizeClass(b.size_from, size, sizeof size);
      Label("message_size", size);
      if (!transfers) out_.Print(",algo_proto=\"%s_%s\"", NameOf(b.algorithm), NameOf(b.protocol));
      RankLabel();
      const double bus = b.bus_count > 0 ? std::exp(b.bus_log_sum / static_cast<double>(b.bus_count)) : 0;
      out_.Print("} %.6g\n", bandwidth ? bus : b.duration_us_sum / static_cast<double>(b.count));
    }
  }

  void Own(const char* name, const char* extra_label, const char* extra_value, double value) {
    out_.Print("%s{", name);
    Label("slurm_job_id", header_.slurm_job_id, true);
    Label("node", header_.host);
    RankLabel();
    if (extra_label != nullptr) Label(extra_label, extra_value);
    out_.Print("} %.9g\n", value);
  }

  void PrintOwn() {
    uint32_t in_flight = 0;
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i <= box_.op_mask; ++i) {
      if ((Load(box_.ops[i].word) & box::kWordLive) == 0) continue;
      ++in_flight;
      if (const uint64_t issued = Load(box_.ops[i].op.issue_ticks); issued < oldest) oldest = issued;
    }
    const uint64_t now = Ticks();
    const double hz = static_cast<double>(header_.tick_hz);
    Family("tacet_operations_finished_total", "counter", "Operations whose end was seen");
    Own("tacet_operations_finished_total", nullptr, nullptr, static_cast<double>(file_.finished_));
    Family("tacet_operations_in_flight", "gauge", "Operations issued and not seen to end");
    Own("tacet_operations_in_flight", nullptr, nullptr, in_flight);
    Family("tacet_oldest_operation_age_seconds", "gauge", "Age of the oldest operation in flight, 0 without any");
    Own("tacet_oldest_operation_age_seconds", nullptr, nullptr,
        in_flight > 0 && now > oldest ? static_cast<double>(now - oldest) / hz : 0);
    Family("tacet_network_wait_seconds_total", "counter", "Time network steps waited, by cause, summed over steps");
    static const char* const kCauseNames[] = {"own_gpu", "peer_credit", "network", "data"};
    double waits[box::kCauses] = {};
    for (uint32_t i = 0; i <= box_.peer_mask; ++i)
      for (int w = 0; w < box::kWaits; ++w)
        waits[static_cast<int>(box::CauseOf(static_cast<box::Wait>(w)))] +=
            static_cast<double>(Load(box_.peers[i].wait_ticks[w]));
    for (int c = 0; c < box::kCauses; ++c)
      Own("tacet_network_wait_seconds_total", "cause", kCauseNames[c], waits[c] / hz);
    Family("tacet_events_dropped_total", "counter", "What could not be recorded, by reason");
    static const char* const kDropNames[] = {"op_table_full", "proxy_table_full", "comm_table_full", "peer_table_full",
                                             "ring_busy",     "stale_handle",     "unknown_context", "contended",
                                             "output_lost",   "output_lapped"};
    for (int d = 0; d < static_cast<int>(sizeof kDropNames / sizeof kDropNames[0]); ++d)
      Own("tacet_events_dropped_total", "reason", kDropNames[d], static_cast<double>(Load(header_.drops[d])));
  }

  const PromTextfile& file_;
  OpenBox& box_;
  const box::Header& header_;
  TextBuffer& out_;
};

bool PromTextfile::WriteFile(OpenBox& box) {
  TextBuffer out(text_, sizeof text_);
  PromText(*this, box, out).PrintAll();
  if (!out.fits()) return false;
  unlink(temporary_);
  const auto make = [&] { return open(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644); };
  int fd = make();
  if (fd < 0 && errno == ENOENT) {  // somebody has removed the folder
    MakeFolders(dir_);
    fd = make();
  }
  if (fd < 0) return false;
  fchmod(fd, 0644);  // node_exporter runs as another user, whatever the job's umask
  const bool whole = write(fd, text_, out.size()) == static_cast<ssize_t>(out.size());
  if (close(fd) == 0 && whole && rename(temporary_, path_) == 0) return true;
  unlink(temporary_);
  return false;
}

void PromTextfile::Write(OpenBox& box, bool at_once) {
  const int64_t now = MonotonicNs();
  if (!at_once && now < next_ns_) return;
  next_ns_ = now + interval_ns_;
  if (!WriteFile(box)) CountDrop(box, box::Drop::output_lost);
  buckets_used_ = 0;
}

void PromTextfile::Remove() {
  if (path_[0] != 0) unlink(path_);
}

}  // namespace tacet::plugin
