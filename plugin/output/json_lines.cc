// SPDX-License-Identifier: Apache-2.0
#include "plugin/output/json_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "plugin/box_file.h"
#include "plugin/output/text_buffer.h"
#include "plugin/record/tick_clock.h"

namespace tacet::plugin {

static uint64_t WallMicros() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

static long long WallMicrosAt(const box::ClockPair& clocks, uint64_t tick_hz, uint64_t ticks) {
  const auto since = static_cast<double>(static_cast<int64_t>(ticks - clocks.ticks));
  return (clocks.wall_ns + static_cast<int64_t>(since * 1e9 / static_cast<double>(tick_hz))) / 1000;
}

// "event_trace_ts":{"coll_start_ts":1752867229235059,"coll_stop_ts":1752867229235064,"kernel_events":[{...}]}
static void PrintTimes(TextBuffer& out, const box::Header& header, const box::ClockPair& clocks, const char* p,
                       const box::Op& op) {
  const auto at = [&](uint64_t ticks) { return WallMicrosAt(clocks, header.tick_hz, ticks); };
  out.Print(",\"event_trace_ts\":{\"%s_start_ts\":%lld,\"%s_stop_ts\":%lld,\"kernel_events\":[", p, at(op.issue_ticks),
            p, at(op.enqueue_ticks != 0 ? op.enqueue_ticks : op.issue_ticks));
  if (op.start_ticks != 0 && op.finish_ticks != 0)
    out.Print("{\"channel_id\":0,\"kernel_start_ts\":%lld,\"kernel_stop_ts\":%lld,\"kernel_record_ts\":%lld}",
              at(op.start_ticks), at(op.finish_ticks), at(op.finish_ticks));
  out.Print("]}");
}

void JsonLines::Open(const OpenBox& box, const Settings& settings) {
  path_[0] = 0;
  fd_ = -1;
  used_ = lines_ = 0;
  if (settings.json_dir[0] == 0) return;
  char host[64];
  CopyFileName(host, sizeof host, box.header->host);
  snprintf(path_, sizeof path_, "%s/%s-pid%d", settings.json_dir, host, box.pid);
  CopyText(dir_, sizeof dir_, settings.json_dir);
  min_bytes_ = settings.json_min_bytes;
}

// {"header":{"id":"0x7f8c496ae9f661","comm_name":"default_pg","rank":2,"n_ranks":8,"nnodes":1},"metadata":{...},
//  "coll_perf":{"coll":"ReduceScatter","coll_sn":1231,"coll_msg_size_bytes":2147483648,"coll_exec_time_us":41057,...,
//  "event_trace_ts":{...}}}
static void PrintLine(TextBuffer& out, const box::Header& header, const box::ClockPair& clocks,
                      const FinishedOp& done) {
  out.Print("{\"header\":{\"id\":\"0x%llx\",\"comm_name\":\"", static_cast<unsigned long long>(done.op.comm_id));
  out.PrintEscaped(done.comm_name, true);
  out.Print("\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":%d},", done.rank, done.size, done.nodes);
  out.Print("\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"tacet-%s\",",
            header.plugin_version);
  out.Print("\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":%llu,\"hostname\":\"",
            static_cast<unsigned long long>(WallMicros()));
  out.PrintEscaped(header.host, true);
  out.Print("\",\"pid\":%d},", header.pid);
  const char* p = done.transfer ? "p2p" : "coll";
  out.Print("\"%s_perf\":{\"%s\":\"%s\",\"%s_sn\":%llu,", p, p, done.function, p,
            static_cast<unsigned long long>(done.transfer ? done.op.seq : done.op.func_seq));
  if (done.transfer) out.Print("\"p2p_peer\":%d,", done.op.peer);
  out.Print("\"%s_msg_size_bytes\":%llu,\"%s_exec_time_us\":%llu,\"%s_timing_source\":\"%s\",", p,
            static_cast<unsigned long long>(done.bytes), p, static_cast<unsigned long long>(done.duration_ns / 1000), p,
            done.timing_source);
  out.Print("\"%s_algobw_gbs\":%f,\"%s_busbw_gbs\":%f", p, done.algorithm_gbs, p, done.bus_gbs);
  if (done.op.issue_ticks != 0) PrintTimes(out, header, clocks, p, done.op);
  out.Print("}}\n");
}

void JsonLines::Add(OpenBox& box, const FinishedOp& finished) {
  if (finished.bytes < min_bytes_) return;
  if (sizeof buffer_ - used_ < 2048) Flush(box);
  if (used_ == 0) clocks_ = ReadClocks();
  TextBuffer line(buffer_ + used_, sizeof buffer_ - used_);
  PrintLine(line, *box.header, clocks_, finished);
  if (!line.fits()) return CountDrop(box, box::Drop::output_lost);
  used_ += static_cast<uint32_t>(line.size());
  ++lines_;
}

// A file of our own, for our own eyes: what others put there in its place (a link, a file that they can read or write)
// is passed by. One of an earlier process with this pid is continued.
int JsonLines::OpenOwn() {
  constexpr int kNames = 8;
  for (int i = 0; i < kNames; ++i) {
    char name[sizeof path_ + 16];
    snprintf(name, sizeof name, i == 0 ? "%s.log" : "%s-%d.log", path_, i);
    constexpr int kFlags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = open(name, kFlags | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
    fd = open(name, kFlags);
    struct stat seen {};
    const bool own = fd >= 0 && fstat(fd, &seen) == 0 && S_ISREG(seen.st_mode) && seen.st_uid == geteuid() &&
                     seen.st_nlink == 1 && (seen.st_mode & 022) == 0;
    if (own) return fd;
    if (fd >= 0) close(fd);
  }
  errno = EEXIST;
  return -1;
}

// What is written into a file that somebody has removed is lost without a word.
bool JsonLines::Reopen(struct stat* seen) {
  const auto is_there = [&] { return fd_ >= 0 && fstat(fd_, seen) == 0 && seen->st_nlink > 0; };
  for (int attempt = 0; !is_there() && attempt < 2; ++attempt) {
    if (fd_ >= 0) close(fd_);
    if (attempt == 1) MakeFolders(dir_);
    fd_ = OpenOwn();
  }
  return is_there() && S_ISREG(seen->st_mode);
}

void JsonLines::Flush(OpenBox& box) {
  if (used_ == 0) return;
  struct stat before {};
  const bool known = Reopen(&before);
  const ssize_t wrote = known ? write(fd_, buffer_, used_) : -1;
  if (wrote != static_cast<ssize_t>(used_)) {
    plugin::Add(box.header->drops[static_cast<int>(box::Drop::output_lost)], lines_);
    if (wrote > 0) static_cast<void>(!ftruncate(fd_, before.st_size));  // no half lines
    if (fd_ >= 0) close(fd_);
    fd_ = -1;  // tried again with the next lines
  }
  used_ = lines_ = 0;
}

}  // namespace tacet::plugin
