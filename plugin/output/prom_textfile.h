// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/output/finished_op.h"
#include "plugin/settings.h"

// TACET_PROM_DIR: <dir>/tacet-<host>-<pid>.prom for node_exporter's textfile collector: NCCL Inspector's metrics and
// labels for what finished in the last interval, and a few of our own. Replaced as a whole by rename, so that a scrape
// never sees half of it; removed at exit. At most kBuckets label sets; what goes beyond is counted and left out.
namespace tacet::plugin {

class PromTextfile {
 public:
  void Open(const OpenBox& box, const Settings& settings);     // before there is a thread
  void Prepare(const OpenBox& box, const Settings& settings);  // folders and left-overs
  bool asked() const { return path_[0] != 0; }
  void Add(OpenBox& box, const FinishedOp& finished);
  // Writes when the interval is over, or at once.
  void Write(OpenBox& box, bool at_once);
  void Remove();

 private:
  static constexpr int kBuckets = 512;
  struct Bucket {
    uint64_t count;
    double duration_us_sum, bus_log_sum;
    uint64_t bus_count;
    uint64_t size_from;  // lower end of the size class
    int32_t ranks, nodes, device;
    box::Kind kind;
    box::Algorithm algorithm;
    box::Protocol protocol;
    bool transfer;
    char comm_name[64];
  };
  Bucket* FindBucket(OpenBox& box, const FinishedOp& finished);
  bool WriteFile(OpenBox& box);

  char path_[768] = {}, temporary_[776] = {}, dir_[512] = {};
  int64_t next_ns_ = 0, interval_ns_ = 0;
  uint64_t finished_ = 0;
  int buckets_used_ = 0;
  Bucket buckets_[kBuckets];
  char text_[512 * 1024];

  friend class PromText;
};

}  // namespace tacet::plugin
