// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_activity.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

std::string FrameOf(std::string_view file, std::string_view function) {
  return "  File \"" + std::string(file) + "\", line 7, in " + std::string(function) + "\n    call()\n";
}

Activity DuringOf(const std::string& frames) {
  const Fragment fragment =
      ReadText("Traceback (most recent call last):\n" + frames + "ValueError: bad shape\n", "out.txt");
  return OneEvent(fragment, EventKind::exception).As<Raised>().during;
}

TEST(TorchLogActivity, IsWhatTheProgramSetOutToDo) {
  const std::string lib = "/opt/venv/lib/python3.11/site-packages/torch/";
  EXPECT_EQ(DuringOf(FrameOf("/srv/train.py", "main") + FrameOf("/srv/ckpt.py", "save_checkpoint") +
                     FrameOf(lib + "nn/modules/module.py", "state_dict")),
            Activity::saving);
  EXPECT_EQ(DuringOf(FrameOf("/srv/train.py", "main") + FrameOf(lib + "serialization.py", "load")), Activity::loading);
  EXPECT_EQ(DuringOf(FrameOf(lib + "nn/modules/module.py", "load_state_dict")), Activity::loading);
  EXPECT_EQ(DuringOf(FrameOf(lib + "distributed/distributed_c10d.py", "destroy_process_group")), Activity::shutdown);
  // A data set that reads its samples with torch.load loads data.
  EXPECT_EQ(DuringOf(FrameOf(lib + "utils/data/_utils/fetch.py", "fetch") + FrameOf(lib + "serialization.py", "load")),
            Activity::data);
  EXPECT_EQ(DuringOf(FrameOf("/srv/train.py", "main") + FrameOf("/srv/table.py", "save_report")), Activity::not_told);
}

TEST(TorchLogActivity, WhatALauncherRaisesWhileItEndsTheOthersIsNoError) {
  const std::string clean_up =
      "Traceback (most recent call last):\n" +
      FrameOf("/usr/lib/python3.7/site-packages/paddle/distributed/utils.py", "terminate_local_procs") +
      "AttributeError: 'Popen' object has no attribute 'join'\n";
  const std::string end =
      "ABORT!!! Out of all 4 trainers, the trainer process with rank=[2] was aborted. Please check its log.\n";
  EXPECT_TRUE(EventsOf(ReadText(end + clean_up, "out.txt"), EventKind::exception).empty());
  EXPECT_EQ(EventsOf(ReadText(clean_up, "out.txt"), EventKind::exception).size(), 1u);
}

TEST(TorchLogActivity, TheLogThatALauncherNamesIsKept) {
  const Fragment fragment =
      ReadText("Container rank 3 status failed cmd ['/usr/bin/python3', '-u', 'train.py'] code 1 log log/workerlog.3\n",
               "out.txt");
  EXPECT_EQ(OneEvent(fragment, EventKind::process_exited).As<ProcessEnd>().log_file, "log/workerlog.3");
}

TEST(TorchLogActivity, AscendsReasonAndCureAreItsOwnWords) {
  const std::string code =
      "EJ0001: 2025-02-14-08:17:21.409.113 Failed to initialize the HCCP process. Reason: Maybe the last training "
      "process is running.\n";
  const Fragment fragment = ReadText(code + "        Solution: Wait for 10s and try again.\n", "out.txt");
  const Event error = OneEvent(fragment, EventKind::nccl_error);
  EXPECT_TRUE(error.As<NcclError>().reason.starts_with("EJ0001: Failed to initialize the HCCP process."));
  EXPECT_EQ(error.As<NcclError>().cure, "Wait for 10s and try again.");
  // Somebody else's solution.
  EXPECT_TRUE(EventsOf(ReadText("Solution: use a wheel\nstep 1 loss 2.0\n", "out.txt"), EventKind::nccl_error).empty());
}

TEST(TorchLogActivity, TheFirstErrorOfOneCclIsItsReason) {
  const Fragment fragment = ReadText(
      "2025:04:12-15:40:02:( 7741) |CCL_ERROR| a.cpp:8 list: fi_getinfo error: ret -61, providers 0\n"
      "2025:04:12-15:40:02:( 7741) |CCL_ERROR| a.cpp:9 list: can't create providers for name psm3\n"
      "2025:04:12-15:40:02:( 7741) |CCL_ERROR| c.cpp:2 init_transport: condition x == SUCCESS failed\n"
      "failed to initialize ATL\n",
      "out.txt");
  const std::string reason = OneEvent(fragment, EventKind::nccl_error).As<NcclError>().reason;
  EXPECT_NE(reason.find("fi_getinfo error"), std::string::npos) << reason;
  EXPECT_NE(reason.find("name psm3"), std::string::npos) << reason;
  EXPECT_EQ(reason.find("initialize ATL"), std::string::npos) << reason;
}

}  // namespace
}  // namespace tacet
