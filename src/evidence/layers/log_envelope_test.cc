// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/log_envelope.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/layers/log_entry.h"
#include "evidence/load.h"

namespace tacet {
namespace {

std::string Unwrap(std::string_view text) { return TakeOutOfEnvelope(text, FindEnvelope(text), size_t{1} << 20).text; }

TEST(LogEnvelope, TakesLinesOutOfDockersLog) {
  const std::string log = R"({"log":"step 1\n","stream":"stdout","time":"2026-11-15T00:20:00.123456789Z"})"
                          "\n"
                          R"({"log":"a \"quoted\" word\n","stream":"stdout","time":"2026-11-15T00:20:01Z"})"
                          "\n";
  EXPECT_EQ(FindEnvelope(log), Envelope::docker_json);
  EXPECT_EQ(Unwrap(log), "step 1\na \"quoted\" word\n");
}

std::string DockerRecord(const std::string& text, const std::string& stream) {
  return R"({"log":")" + text + R"(","stream":")" + stream + R"(","time":"2026-11-15T00:20:01Z"})" + "\n";
}

TEST(LogEnvelope, JoinsThePiecesIntoWhichDockerCutsALongLine) {
  const std::string piece(size_t{16} * 1024, 'x');
  EXPECT_EQ(
      Unwrap(DockerRecord("step 1\\n", "stdout") + DockerRecord(piece, "stdout") + DockerRecord("end\\n", "stdout")),
      "step 1\n" + piece + "end\n");
  // Of another stream the next record is another line.
  EXPECT_EQ(Unwrap(DockerRecord(piece, "stdout") + DockerRecord("end\\n", "stderr")), piece + "\nend\n");
}

TEST(LogEnvelope, KeepsLinesApartWhereAShipperTookTheNewlineOff) {
  EXPECT_EQ(Unwrap(DockerRecord("[rank3]: RuntimeError: x", "stderr") + DockerRecord("[rank1]: step 2", "stderr")),
            "[rank3]: RuntimeError: x\n[rank1]: step 2\n");
}

TEST(LogEnvelope, TakesLinesOutOfAContainerRuntimesLog) {
  const std::string log =
      "2016-10-06T00:17:09.669794202Z stdout F log content 1\n"
      "2016-10-06T00:17:09.669794203Z stderr P log \n"
      "2016-10-06T00:17:10.113242941Z stderr F content 2\n"
      "2016-10-06T00:17:11.113242941Z stderr F\n"
      "2016-10-06T00:17:12.113242941+02:00 stderr F last\n";
  EXPECT_EQ(FindEnvelope(log), Envelope::cri);
  EXPECT_EQ(Unwrap(log), "log content 1\nlog content 2\n\n\nlast\n");  // a line keeps its number
}

TEST(LogEnvelope, KeepsHostAndTimeOfTheKernelsLinesInAJournal) {
  const std::string log =
      R"({"__REALTIME_TIMESTAMP":"1794700800123456","_HOSTNAME":"node7","_TRANSPORT":"kernel","MESSAGE":"Out of memory"})"
      "\n"
      R"({"__REALTIME_TIMESTAMP":"1794700800123456","_HOSTNAME":"node7","_TRANSPORT":"stdout","MESSAGE":"step 3"})"
      "\n"
      R"({"__REALTIME_TIMESTAMP":"1794700800123456","_HOSTNAME":"node7","MESSAGE":[104,105,255]})"
      "\n";
  EXPECT_EQ(FindEnvelope(log), Envelope::json_lines);
  EXPECT_EQ(Unwrap(log), "2026-11-15T00:00:00.123456+00:00 node7 kernel: Out of memory\nstep 3\nhi\xff\n");
}

TEST(LogEnvelope, ReadsAJournalsExportWithTextAndBytes) {
  std::string log = "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1794700800123456\n_HOSTNAME=node7\nMESSAGE=step 3\n\n";
  log += "__CURSOR=s=2\n__REALTIME_TIMESTAMP=1794700800123457\nMESSAGE\n";
  log += std::string("\x05\0\0\0\0\0\0\0", 8) + "a\x1b[0m\n\n";
  EXPECT_EQ(FindEnvelope(log), Envelope::journal_export);
  EXPECT_EQ(Unwrap(log), "\n\n\nstep 3\n\n\n\n\na\x1b[0m\n");
  for (size_t size = 0; size < log.size(); ++size)
    TakeOutOfEnvelope(log.substr(0, size), Envelope::journal_export, 1000);
  log.replace(log.find("\x05\0", 0, 2), 8, std::string(8, '\xff'));  // a length beyond the end
  EXPECT_EQ(Unwrap(log), "\n\n\nstep 3\n");
}

TEST(LogEnvelope, TurnsWhatALogStoreGivesNewestFirst) {
  const std::string log = R"([{"line":"second","timestamp":"1794700802000000000","fields":{"pod":"a-0"}},)"
                          R"({"line":"first","timestamp":"1794700801000000000","fields":{"pod":"a-0"}}])";
  EXPECT_EQ(FindEnvelope(log), Envelope::json_document);
  EXPECT_EQ(Unwrap(log), "first\nsecond\n");
}

TEST(LogEnvelope, TellsPodsOfOneExportApart) {
  const std::string log =
      R"({"status":"success","data":{"resultType":"streams","result":[)"
      R"({"stream":{"pod":"a-0"},"values":[["1794700803000000000","third"],["1794700801000000000","first"]]},)"
      R"({"stream":{"pod":"a-1"},"values":[["1794700802000000000","second"]]}]}})";
  EXPECT_EQ(FindEnvelope(log), Envelope::json_document);
  EXPECT_EQ(Unwrap(log), "[pod/a-0/x] first\n[pod/a-1/x] second\n[pod/a-0/x] third\n");
}

TEST(LogEnvelope, LeavesTheKernelsLinesOfASyslogAlone) {
  const std::string log =
      "Nov 15 00:20:00 node7 train.sh[77]: [rank0]: step 1\n"
      "Nov 15 00:20:00 node7 train.sh[77]: [rank0]: step 2\n"
      "Nov 15 00:20:00 node7 train.sh[77]: [rank0]: step 3\n"
      "Nov 15 00:20:00 node7 train.sh[77]: [rank0]: step 4\n"
      "Nov 15 00:20:01 node7 kernel: Out of memory: Killed process 12 (python)\n";
  EXPECT_EQ(FindEnvelope(log), Envelope::syslog);
  EXPECT_TRUE(
      Unwrap(log).ends_with("step 4\nNov 15 00:20:01 node7 kernel: Out of memory: Killed process 12 (python)\n"));
}

TEST(LogEnvelope, TakesASyslogsTimeInEveryForm) {
  for (const std::string head : {"2026-11-15T00:20:00.123456+00:00 ", "2026-11-15 00:20:00 ",
                                 "2026-11-15 00:20:00.123 ", "Sun 2026-11-15 00:20:00 UTC "}) {
    const std::string log = head + "node7 torchrun[77]:   rank      : 22 (local_rank: 6)\n" + head +
                            "node7 torchrun[77]:   exitcode  : -11 (pid: 4498)\n";
    EXPECT_EQ(FindEnvelope(log), Envelope::syslog) << head;
    EXPECT_EQ(Unwrap(log), "  rank      : 22 (local_rank: 6)\n  exitcode  : -11 (pid: 4498)\n") << head;
  }
  // A logger of Python's has its level where a syslog has the host.
  EXPECT_EQ(FindEnvelope("2026-11-15 00:20:00,123 INFO trainer[77]: step 1\n"), Envelope::none);
}

TEST(LogEnvelope, OrdinaryTextHasNone) {
  for (const std::string_view text :
       {"", "\n", "step 1\nstep 2\n", "vm:1:1 [0] NCCL INFO Bootstrap\n", "[2026-11-15 00:20:00] loss 3\n",
        "2026-11-15T00:20:00.123Z step 1\n", "{'loss': 2.5}\n", "{\"loss\": 2.5, \"step\": 3}\n", "[1, 2, 3]",
        "{\"message\": {\"message\": \"x\", \"extraInfo\": {}}}",
        "{\"version\":\"2.10\",\"entries\":[{\"record_id\":1}]}"})
    EXPECT_EQ(FindEnvelope(text), Envelope::none) << text;
}

TEST(LogEnvelope, StopsAtTheLimit) {
  std::string log;
  for (int i = 0; i < 1000; ++i) log += "2016-10-06T00:17:09.669794202Z stdout F log content\n";
  const Unwrapped out = TakeOutOfEnvelope(log, Envelope::cri, 100);
  EXPECT_TRUE(out.limited);
  EXPECT_LE(out.text.size(), 100u);
}

TEST(LogEnvelope, ManyLayersCostLittle) {
  std::string line;
  for (int i = 0; i < 20'000; ++i) line += "2016-10-06T00:17:09.669794202Z stdout F ";
  const Fragment fragment = ReadFragment("rank0.log", line + "step 1\n", {});
  EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, line.size() + 7);
}

TEST(LogEnvelope, AWrappedTracebackIsReadAtItsLine) {
  std::string log;
  for (const char* line :
       {"Traceback (most recent call last):", "  File \\\"train.py\\\", line 7, in main", "ValueError: bad"})
    log += R"({"log":")" + std::string(line) +
           R"(\n","stream":"stderr","time":"2026-11-15T00:20:00Z"})"
           "\n";
  const Fragment fragment = ReadFragment("rank3.log", log, {});
  ASSERT_EQ(fragment.format, "torch_log");
  bool found = false;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::exception) found = event.source.line == 3 && event.As<Raised>().place.line == 7;
  EXPECT_TRUE(found);
  EXPECT_EQ(fragment.bytes.total, log.size());
}

}  // namespace
}  // namespace tacet
