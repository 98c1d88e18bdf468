// SPDX-License-Identifier: Apache-2.0
#include "live/history/history_sink.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/clock.h"

namespace tacet {
namespace {

constexpr int64_t kFarewellNs = 3'000'000'000;

}  // namespace

HistorySink::HistorySink(HistoryOptions options)
    : options_(std::move(options)), client_(options_.address, options_.limits), thread_([this] { Run(); }) {}

HistorySink::~HistorySink() {
  {
    const std::lock_guard lock(lock_);
    stop_before_ns_ = MonotonicNs() + kFarewellNs;
  }
  wake_.notify_all();
  thread_.join();
}

bool HistorySink::IsFull(const Batch& batch) const {
  return batch.count >= options_.batch_rows || batch.rows.size() >= options_.batch_bytes;
}

void HistorySink::Add(const FinishedOperation& finished, std::string_view host) {
  const std::lock_guard lock(lock_);
  if (batches_.empty() || IsFull(batches_.back())) {
    if (batches_.size() >= options_.most_batches) {
      if (finished.duration_ns >= 0) ++counts_.queue_full;
      return;
    }
    batches_.push_back({{}, 0, MonotonicNs()});
  }
  Batch& batch = batches_.back();
  if (!AppendHistoryRow(finished, host, batch.rows)) return;
  ++batch.count;
  ++counts_.queued;
  if (batch.count == 1 || IsFull(batch)) wake_.notify_all();
}

bool HistorySink::TakeBatch(Batch& batch) {
  std::unique_lock held(lock_);
  for (;;) {
    const bool some = !batches_.empty() && batches_.front().count > 0;
    const int64_t now = MonotonicNs();
    if (stop_before_ns_ != 0 && (!some || now >= stop_before_ns_)) return false;
    const int64_t ripe = some ? batches_.front().began_ns + options_.gather_ms * 1'000'000 : INT64_MAX;
    if (some && (now >= ripe || IsFull(batches_.front()) || stop_before_ns_ != 0)) break;
    if (some)
      wake_.wait_for(held, std::chrono::nanoseconds(ripe - now));
    else
      wake_.wait(held);
  }
  batch = std::move(batches_.front());
  batches_.pop_front();
  return true;
}

bool HistorySink::Pause() {
  retry_ms_ = std::clamp(retry_ms_ * 2, options_.first_retry_ms, options_.most_retry_ms);
  std::unique_lock held(lock_);
  return !wake_.wait_for(held, std::chrono::milliseconds(retry_ms_), [&] { return stop_before_ns_ != 0; });
}

void HistorySink::Tell(const ClickHouseAnswer& answer) {
  const bool well = answer.outcome == ClickHouseOutcome::done;
  {
    const std::lock_guard lock(lock_);
    counts_.well = well;
  }
  const std::string trouble = well ? "" : answer.text;
  if (trouble == told_) return;
  told_ = trouble;
  const std::string whom = "history at " + Show(options_.address) + ": ";
  if (!well)
    options_.say(whom + trouble +
                 (answer.outcome == ClickHouseOutcome::refused ? "; operations are dropped"
                                                               : "; retrying, everything else continues"));
  else
    options_.say(whom + "operations are stored" + (client_.note().empty() ? "" : ". " + client_.note()));
}

void HistorySink::Settle(const ClickHouseAnswer& answer, Batch& batch) {
  Tell(answer);
  if (answer.outcome == ClickHouseOutcome::later) {
    if (!answer.may_be_for_ever || ++refusals_ < options_.most_refusals) return;
    options_.say("history at " + Show(options_.address) + ": a batch of " + std::to_string(batch.count) +
                 " operations was refused " + std::to_string(refusals_) + " times and is dropped; the next is tried");
  }
  refusals_ = 0;
  const std::lock_guard lock(lock_);
  (answer.outcome == ClickHouseOutcome::done ? counts_.stored : counts_.refused) += batch.count;
  counts_.queued -= batch.count;
  batch = {};
}

void HistorySink::Run() {
  Batch batch;
  for (bool prepared = false;;) {
    if (!prepared) {
      const ClickHouseAnswer answer = client_.Prepare();
      prepared = answer.outcome == ClickHouseOutcome::done;
      if (!prepared) {
        Tell({ClickHouseOutcome::later, answer.text});  // no row is at fault
        if (!Pause()) return;
        continue;
      }
    }
    if (batch.count == 0 && !TakeBatch(batch)) return;
    const ClickHouseAnswer answer = client_.Insert(batch.rows);
    Settle(answer, batch);
    prepared = answer.outcome == ClickHouseOutcome::done;
    if (prepared)
      retry_ms_ = 0;
    else if (!Pause())
      return;
  }
}

HistorySink::Counts HistorySink::counts() const {
  const std::lock_guard lock(lock_);
  return counts_;
}

void HistorySink::AppendTo(std::vector<MetricFamily>& families) const {
  const Counts counts = this->counts();
  const auto number = [](auto value) { return static_cast<double>(value); };
  families.push_back({"tacet_history_operations_total",
                      MetricType::counter,
                      "Finished operations sent to ClickHouse, by result",
                      {{{{"outcome", "stored"}}, number(counts.stored)},
                       {{{"outcome", "refused"}}, number(counts.refused)},
                       {{{"outcome", "queue_full"}}, number(counts.queue_full)}},
                      {}});
  families.push_back({"tacet_history_queue_operations",
                      MetricType::gauge,
                      "Finished operations that wait to be sent to ClickHouse",
                      {{{}, number(counts.queued)}},
                      {}});
  families.push_back({"tacet_history_up",
                      MetricType::gauge,
                      "1 while ClickHouse accepts data, else 0",
                      {{{}, counts.well ? 1.0 : 0.0}},
                      {}});
}

}  // namespace tacet
