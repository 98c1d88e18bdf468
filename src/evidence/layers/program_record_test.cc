// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/program_record.h"

#include <gtest/gtest.h>

#include "evidence/layers/log_envelope.h"

namespace tacet {
namespace {

std::string TextOf(std::string_view json) {
  std::string text;
  return ReadProgramRecord(json, &text) ? text : "none";
}

TEST(ProgramRecord, BecomesTheLineOfAProgramWithoutJson) {
  EXPECT_EQ(TextOf(R"({"ts": "2026-11-15T00:20:00.123", "rank": 3, "event": "step", "step": 21, "data_s": 0.55})"),
            "[rank3]: step, rank: 3, step: 21, data_time: 0.55");
  EXPECT_EQ(TextOf(R"({"rank": 0, "step": 4, "load_ms": 250})"), "[rank0]: rank: 0, step: 4, load_time: 0.25");
  EXPECT_EQ(TextOf(R"({"global_rank": 7, "level": "error", "message": "disk is full", "error": "OSError: 28"})"),
            "[rank7]: error disk is full, error: OSError: 28, rank: 7");
}

TEST(ProgramRecord, OfATracebackTheLastErrorIsKeptWithItsFrames) {
  EXPECT_EQ(
      TextOf(R"({"rank": 1, "event": "fatal", "traceback": "Traceback (most recent call last):\n  File \"a.py\", )"
             R"(line 3, in f\n    g()\nSampleError: sample 40123 is damaged\n"})"),
      "[rank1]: Traceback (most recent call last):\r[rank1]:   File \"a.py\", line 3, in f\r[rank1]:     "
      "g()\r[rank1]: SampleError: sample 40123 is damaged");
}

TEST(ProgramRecord, OtherObjectsAreNone) {
  EXPECT_EQ(TextOf(R"({"ts": 12.5, "name": "all_reduce", "dur": 3, "args": {"rank": 1}})"), "none");
  EXPECT_EQ(TextOf(R"({"rank": 1})"), "none");
  EXPECT_EQ(TextOf(R"({"rank": -1, "step": 3})"), "none");
  EXPECT_EQ(TextOf(R"({"rank": 1, "step": 3)"), "none") << "cut";
  EXPECT_EQ(TextOf("{\"rank\": 1, \"step\": " + std::string(70'000, '1') + "}"), "none") << "huge";
}

TEST(ProgramRecord, LinesBesideThemStayAsTheyAre) {
  const std::string log =
      "W1115 00:20:00.000 77 torch/distributed/run.py:851] a warning\n"
      "{\"rank\": 0, \"step\": 0, \"loss\": 2.5}\n{\"rank\": 1, \"step\": 0, \"loss\": 2.5}\n"
      "{\"rank\": 0, \"step\": 1, \"loss\": 2.4}\nConnection closed by remote peer\n";
  ASSERT_EQ(FindEnvelope(log), Envelope::program_records);
  EXPECT_EQ(TakeOutOfEnvelope(log, Envelope::program_records, 1 << 20).text,
            "W1115 00:20:00.000 77 torch/distributed/run.py:851] a warning\n"
            "[rank0]: rank: 0, step: 0, loss: 2.5\n[rank1]: rank: 1, step: 0, loss: 2.5\n"
            "[rank0]: rank: 0, step: 1, loss: 2.4\nConnection closed by remote peer\n");
  EXPECT_EQ(FindEnvelope("{\"rank\": 0, \"step\": 0}\na\nb\nc\nd\ne\nf\n"), Envelope::none) << "one record is none";
}

}  // namespace
}  // namespace tacet
