// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/wrapped_error.h"

#include <gtest/gtest.h>

#include "evidence/layers/log_entry.h"
#include "evidence/layers/text_layers.h"

namespace tacet {
namespace {

// The lines, with '|' between them.
std::string LinesIn(std::string_view line) {
  std::string text;
  if (!ReadWrappedError(line, &text)) return "none";
  for (char& c : text)
    if (c == '\r') c = '|';
  return text;
}

TEST(WrappedError, OfEveryLoggersRecord) {
  // zap
  EXPECT_EQ(
      LinesIn(R"({"level":"error","ts":1794700812.1,"caller":"run.go:7","msg":"step failed","error":"CUDA error: )"
              R"(misaligned address","stacktrace":"main.run\n\t/app/run.go:7"})"),
      "step failed|CUDA error: misaligned address|main.run|\t/app/run.go:7");
  // structlog
  EXPECT_EQ(LinesIn(R"({"event": "worker failed", "level": "error", "timestamp": "2026-03-01T10:00:00Z", "exception": )"
                    R"("Traceback (most recent call last):\n  File \"t.py\", line 4, in f\n    g()\nKeyError: 'x'"})"),
            "worker failed|Traceback (most recent call last):|  File \"t.py\", line 4, in f|    g()|KeyError: 'x'");
  // ECS
  EXPECT_EQ(LinesIn(R"({"@timestamp":"2026-03-01T10:00:00.000Z","log.level":"error","message":"failed","error.type":)"
                    R"("RuntimeError","error.message":"NCCL error: unhandled system error"})"),
            "failed|RuntimeError: NCCL error: unhandled system error");
  // Python's logging in JSON, as Ray writes it
  EXPECT_EQ(
      LinesIn(R"({"asctime": "2026-03-01 10:00:00,1", "levelname": "ERROR", "message": "task failed", "exc_text": )"
              R"("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nOSError: [Errno 28] x"})"),
      "task failed|Traceback (most recent call last):|  File \"a.py\", line 1, in <module>|OSError: [Errno 28] x");
}

TEST(WrappedError, OfAnAnswerOfAServer) {
  EXPECT_EQ(LinesIn(R"({"error":{"message":"the runner ended: CUDA error: out of memory\n  device 1","code":500}})"),
            "the runner ended: CUDA error: out of memory|  device 1");
  EXPECT_EQ(LinesIn(R"(Error code: 500 - {'error': {'message': "can't start: CUDA out of memory.", 'type': 'x'}})"),
            "Error code: 500 -|can't start: CUDA out of memory.");
  EXPECT_EQ(LinesIn(R"({"error":{"message":"CUDA error:uncorrectable ECC error encountered\)"),
            "CUDA error:uncorrectable ECC error encountered")
      << "cut";
}

TEST(WrappedError, WhoeverWritesBeforeARecordMayCallItAnything) {
  EXPECT_EQ(LinesIn(R"(details = {"stage": "train", "exception": "ValueError: 7 rows", "step": 3})"),
            "details =|ValueError: 7 rows");
  EXPECT_EQ(LinesIn(R"({"stage": "train", "exception": "ValueError: 7 rows", "step": 3})"), "none");
  EXPECT_EQ(LinesIn(R"({"rank": 3, "level": "error", "msg": "fatal", "error": "NCCL error: x"})"),
            "[rank3]: fatal|[rank3]: NCCL error: x");
}

TEST(WrappedError, OfATracebackInOneLine) {
  EXPECT_EQ(
      LinesIn(R"(Run k2 errored: RuntimeError('Caught KeyError in worker.\nTraceback (most recent call last):\n  )"
              R"(File \"d.py\", line 3, in get\nKeyError: \'a\'\n'))"),
      "Run k2 errored: RuntimeError('Caught KeyError in worker.|Traceback (most recent call last):|  File "
      "\"d.py\", line 3, in get|KeyError: 'a'");
}

TEST(WrappedError, ARecordOfNoErrorStaysAsItIs) {
  EXPECT_EQ(LinesIn(R"({"level":"info","ts":1794700812.1,"msg":"step 20 done","loss":2.1})"), "none");
  EXPECT_EQ(LinesIn(R"({"event": "step", "step": 7, "error": null, "timestamp": "2026-03-01T10:00:00Z"})"), "none");
  EXPECT_EQ(LinesIn(R"({'loss': 2.31, 'grad_norm': 1.0, 'error': 0.2})"), "none");
  EXPECT_EQ(LinesIn(R"({"message": {"message": "RuntimeError: x", "extraInfo": {"py_callstack": "Traceback"}}})"),
            "none")
      << "torchrun's error file has its reader";
  EXPECT_EQ(LinesIn(R"({"traceEvents": [{"name": "error", "error": "text"}]})"), "none");
}

TEST(WrappedError, LinesKeepTheirNumbers) {
  const std::string text = "starting\n{\"error\":{\"message\":\"CUDA error: a\\nb\"}}\nlast\n";
  ASSERT_TRUE(HasWrappedErrors(text));
  EXPECT_EQ(OpenWrappedErrors(text), "starting\nCUDA error: a\rb\nlast\n");
  EXPECT_FALSE(HasWrappedErrors("{\n  \"error\": {\"message\": \"in a document\"}\n}\n"));
  EXPECT_FALSE(HasLayer("{\n  \"error\": {\"message\": \"in a document\"}\n}\n"));
}

TEST(WrappedError, AMessageInALogStoreComesWithItsError) {
  LogEntry entry;
  ASSERT_TRUE(ReadLogEntry(R"({"severity":"ERROR","message":"failed","stack_trace":"Traceback (most recent call last):)"
                           R"(\nValueError: bad"})",
                           &entry));
  EXPECT_EQ(entry.text, "failed\rTraceback (most recent call last):\rValueError: bad");
  ASSERT_TRUE(ReadLogEntry(R"({"event": "step 3", "level": "info", "timestamp": "2026-03-01T10:00:00Z"})", &entry));
  EXPECT_EQ(entry.text, "step 3");
  EXPECT_FALSE(ReadLogEntry(R"({"event": "step", "step": 3, "loss": 2.5})", &entry)) << "a program's own record";
}

}  // namespace
}  // namespace tacet
