// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "live/history/clickhouse_client.h"
#include "render/report/prometheus_render.h"

namespace tacet {

struct HistoryOptions {
  ClickHouseAddress address;
  size_t batch_rows = 20000, batch_bytes = size_t{4} << 20;
  size_t most_batches = 16;       // waiting, so at most 64 MiB, and one under way
  int64_t gather_ms = 1000;       // a batch that is not full goes after so long
  int64_t first_retry_ms = 1000;  // doubled up to most_retry_ms
  int64_t most_retry_ms = 60000;
  // Refusals in a row by a server that answers and may take it later: then this batch is given up, so that one that is
  // never taken does not hold up all that come after it.
  int most_refusals = 5;
  HttpLimits limits{2000, 10000, 1 << 20};
  std::function<void(const std::string&)> say = [](const std::string&) {};  // on every change between well and not
};

// Sends finished operations to ClickHouse from a thread of its own. Add never waits for the network: when the queue is
// full, the operation is dropped and counted. A failing server is asked again, ever more rarely, with the same batch.
class HistorySink {
 public:
  explicit HistorySink(HistoryOptions options);
  ~HistorySink();  // sends what is left, as far as the server takes it within three seconds
  void Add(const FinishedOperation& finished, std::string_view host);
  void AppendTo(std::vector<MetricFamily>& families) const;

  struct Counts {
    uint64_t stored = 0, refused = 0, queue_full = 0, queued = 0;
    bool well = false;  // the last exchange with the server worked
  };
  Counts counts() const;

 private:
  struct Batch {
    std::string rows;
    uint64_t count = 0;
    int64_t began_ns = 0;
  };
  bool IsFull(const Batch& batch) const;
  void Run();
  bool TakeBatch(Batch& batch);  // waits for one; false when it is time to end
  bool Pause();                  // before the next attempt; false when it is time to end
  void Settle(const ClickHouseAnswer& answer, Batch& batch);
  void Tell(const ClickHouseAnswer& answer);

  HistoryOptions options_;
  ClickHouseClient client_;
  mutable std::mutex lock_;
  std::condition_variable wake_;
  std::deque<Batch> batches_;
  Counts counts_;
  int64_t stop_before_ns_ = 0;  // 0: goes on
  int refusals_ = 0;            // of the present batch; the sending thread's own, as are the next two
  int64_t retry_ms_ = 0;
  std::string told_ = "nothing yet";
  std::thread thread_;
};

}  // namespace tacet
