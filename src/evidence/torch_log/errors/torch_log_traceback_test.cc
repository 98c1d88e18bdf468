// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_traceback.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

TEST(TorchLogTraceback, FindsTheUsersOwnFrame) {
  const Event exception = OneEvent(ReadSample("torch_2_11_exception_rank2.log"), EventKind::exception);
  EXPECT_EQ(exception.As<Raised>().place.function, "gpt_steps");
  EXPECT_EQ(exception.As<Raised>().place.line, 246u);
}

TEST(TorchLogTraceback, KeepsTheRootOfAChain) {
  const Event exception = OneEvent(ReadSample("chained_rank4.log"), EventKind::exception);
  EXPECT_EQ(exception.As<Raised>().type, "__main__.DataError");
  EXPECT_EQ(exception.As<Raised>().place.line, 19u);
  EXPECT_NE(exception.text.find("while handling KeyError: 'tokens'"), std::string::npos);
}

constexpr char kThenAnother[] = "\nDuring handling of the above exception, another exception occurred:\n\n";
constexpr char kRaisedFrom[] = "\nThe above exception was the direct cause of the following exception:\n\n";

// A traceback of one frame in a.py.
std::string OneFrame(const std::string& function, const std::string& code, const std::string& error) {
  return "Traceback (most recent call last):\n  File \"a.py\", line 7, in " + function + "\n    " + code + "\n" +
         error + "\n";
}

std::string TypeOfChain(const std::string& first, const char* link, const std::string& later) {
  return OneEvent(ReadText(first + link + later, "rank0.log"), EventKind::exception).As<Raised>().type;
}

// What a loader's worker raised, raised again where the batch was asked for.
std::string RaisedAgain(const std::string& original) {
  return "Traceback (most recent call last):\n  File \"/srv/train.py\", line 523, in fit\n    for x in loader:\n"
         "  File \"/venv/site-packages/torch/utils/data/dataloader.py\", line 741, in __next__\n    data = "
         "self._next()\n"
         "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\n" +
         original;
}
constexpr char kOriginal[] =
    "Original Traceback (most recent call last):\n"
    "  File \"/venv/site-packages/torch/utils/data/_utils/worker.py\", line 358, in _worker_loop\n    data = f(i)\n"
    "  File \"/srv/train.py\", line 515, in __getitem__\n    return self.table[i]\n";

TEST(TorchLogTraceback, TheOriginalOfAWorkersErrorIsTold) {
  const std::string text = RaisedAgain(kOriginal + std::string("RuntimeError: CUDA error: initialization error\n"));
  const auto events = ReadText(text, "rank0.log").events;
  std::vector<Event> raised;
  for (const Event& event : events)
    if (event.kind == EventKind::exception && !event.Means(Meaning::reported)) raised.push_back(event);
  ASSERT_EQ(raised.size(), 1u);
  EXPECT_EQ(raised[0].As<Raised>().place.line, 515u);
  EXPECT_EQ(raised[0].As<Raised>().during, Activity::data);
  EXPECT_TRUE(raised[0].text.ends_with("\nraised in DataLoader worker process 0")) << raised[0].text;
  EXPECT_TRUE(raised[0].text.starts_with("CUDA error: initialization error")) << raised[0].text;
  EXPECT_EQ(raised[0].source.line, 12u);
}

// Two processes without labels print at the same time: the error of the one is not part of the other's.
TEST(TorchLogTraceback, TwoThatStandBetweenEachOtherAreTwo) {
  const Fragment fragment = ReadText(
      "Traceback (most recent call last):\nTraceback (most recent call last):\n"
      "  File \"train.py\", line 98, in main\n  File \"train.py\", line 112, in main\n"
      "    labels = batch[\"labels\"]\n    dist.all_reduce(loss)\nKeyError: 'labels'\n"
      "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 2050, in all_reduce\n"
      "    work.wait()\nRuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
      "[10.0.0.2]:33012\n",
      "job.out");
  const auto raised = EventsOf(fragment, EventKind::exception);
  ASSERT_EQ(raised.size(), 2u);
  EXPECT_EQ(raised[0]->As<Raised>().type, "KeyError");
  EXPECT_EQ(raised[0]->text, "'labels'");
  EXPECT_TRUE(raised[0]->As<Raised>().place.file.empty()) << "whose frame it is nobody can tell";
}

// torch.compile quotes frames in its message: that is one error.
TEST(TorchLogTraceback, FramesInAMessageDoNotEndIt) {
  const Event raised =
      OneEvent(ReadText(OneFrame("f", "y = model(x)", "torch._dynamo.exc.Unsupported: call_function") +
                            "\nfrom user code:\n   File \"/srv/model.py\", line 12, in forward\n    return g(x)\n",
                        "rank0.log"),
               EventKind::exception);
  EXPECT_EQ(raised.As<Raised>().type, "torch._dynamo.exc.Unsupported");
}

TEST(TorchLogTraceback, LightningsDeadlockIsTheErrorOfTheRankThatItQuotes) {
  const Event raised = OneEvent(
      ReadText("pytorch_lightning.utilities.exceptions.DeadlockDetectedException: DeadLock detected from rank: 1 \n " +
                   OneFrame("collate", "n = s[\"n_frames\"]", "KeyError: 'n_frames'"),
               "job.out"),
      EventKind::exception);
  EXPECT_EQ(raised.As<Raised>().type, "KeyError");
  EXPECT_EQ(raised.rank, Rank{1});
}

TEST(TorchLogTraceback, WhatAPassedOnErrorTellsIsOfTheRankThatRaisedIt) {
  const Fragment fragment = ReadText(
      "[rank0]: Traceback (most recent call last): (RANK 3)\n"
      "[rank0]:   File \"/srv/save.py\", line 4, in save\n"
      "[rank0]: OSError: [Errno 122] Disk quota exceeded\n",
      "job.out");
  EXPECT_EQ(OneEvent(fragment, EventKind::disk_full).rank, Rank{3});
  EXPECT_EQ(OneEvent(fragment, EventKind::exception).rank, Rank{3});
}

TEST(TorchLogTraceback, AWorkersErrorWithoutAMessageSaysWhereItWasRaised) {
  const Event event =
      OneEvent(ReadText(RaisedAgain(kOriginal + std::string("MemoryError\n")), "rank0.log"), EventKind::exception);
  EXPECT_EQ(event.As<Raised>().type, "MemoryError");
  EXPECT_EQ(event.text, "raised in DataLoader worker process 0");
}

TEST(TorchLogTraceback, AnOriginalThatIsCutLeavesWhatWasRaisedAgain) {
  const Event event = OneEvent(ReadText(RaisedAgain(kOriginal), "rank0.log"), EventKind::exception);
  EXPECT_EQ(event.As<Raised>().type, "RuntimeError");
  EXPECT_EQ(event.As<Raised>().place.line, 523u);
}

TEST(TorchLogTraceback, AComprehensionIsNamedByTheFunctionAroundIt) {
  const auto place = [](const std::string& around, const std::string& inner) {
    const std::string text = "Traceback (most recent call last):\n  File \"/srv/" + around +
                             ".py\", line 7, in read\n    return f(rows)\n  File \"/srv/rows.py\", line 9, in " +
                             inner + "\n    float(v)\nValueError: bad\n";
    return OneEvent(ReadText(text, "rank0.log"), EventKind::exception).As<Raised>().place;
  };
  EXPECT_EQ(place("rows", "<listcomp>").function, "read");
  EXPECT_EQ(place("rows", "<listcomp>").line, 9u);
  EXPECT_EQ(place("rows", "<dictcomp>").function, "read");
  EXPECT_EQ(place("rows", "convert").function, "convert");
  EXPECT_EQ(place("other", "<listcomp>").function, "<listcomp>") << "called from another file";
}

TEST(TorchLogTraceback, AnErrorThatEndsAThreadIsMarked) {
  const std::string error = OneFrame("run", "q.get()", "KeyError: 'tokens'");
  const auto in_thread = [](const std::string& text) {
    return OneEvent(ReadText(text, "rank0.log"), EventKind::exception).As<Raised>().in_thread;
  };
  EXPECT_TRUE(in_thread("Exception in thread Thread-1 (run):\n" + error));
  EXPECT_FALSE(in_thread(error));
}

TEST(TorchLogTraceback, WhatAnErrorIsRaisedFromIsTold) {
  const std::string wrapper =
      OneFrame("run", "raise RuntimeError('worker 0 failed') from error", "RuntimeError: worker 0 failed");
  const std::string fork = OneFrame("collate", "x.cuda()", "ValueError: no CUDA in a forked process");
  EXPECT_EQ(TypeOfChain(fork, kRaisedFrom, wrapper), "ValueError");
  const Event event = OneEvent(ReadText(fork + kRaisedFrom + wrapper, "rank0.log"), EventKind::exception);
  EXPECT_NE(event.text.find("which led to RuntimeError: worker 0 failed"), std::string::npos);
  EXPECT_EQ(event.source.line, 4u);
  // A lookup that fails is an answer, and the second says what it means; so does one that quotes the first.
  EXPECT_EQ(TypeOfChain(OneFrame("run", "t[k]", "KeyError: 'lamb'"), kRaisedFrom, wrapper), "RuntimeError");
  EXPECT_EQ(TypeOfChain(fork, kRaisedFrom, OneFrame("run", "raise X", "OSError: w0: no CUDA in a forked process")),
            "OSError");
}

TEST(TorchLogTraceback, WhatTheHandlerRaisesIsToldAndAnAccidentInItIsNot) {
  const std::string first = OneFrame("run", "check(x)", "ValueError: 3 columns");
  const std::string raised = OneFrame("run", "raise DataError('a.csv')", "a.DataError: a.csv is damaged");
  const std::string accident = OneFrame("run", "dist.barrier()", "torch.distributed.DistBackendError: aborted");
  EXPECT_EQ(TypeOfChain(first, kThenAnother, raised), "a.DataError");
  EXPECT_EQ(TypeOfChain(first, kThenAnother, accident), "ValueError");
  // The system, a device and memory fail whatever is made of it.
  const std::string device = OneFrame("run", "x.cuda()", "RuntimeError: CUDA error: unknown error");
  EXPECT_EQ(TypeOfChain(device, kThenAnother, raised), "RuntimeError");
}

TEST(TorchLogTraceback, KeepsTheRootWhenTheChainIsCut) {
  const Fragment fragment = ReadText(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nKeyError: 'a'\n\n"
      "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  "
      "File \"a.py\", line 2",
      "rank0.log");
  EXPECT_EQ(OneEvent(fragment, EventKind::exception).As<Raised>().type, "KeyError");
}

TEST(TorchLogTraceback, TheForwardCallThatAnomalyModeCitesIsAnErrorWhereNoneFollows) {
  const std::string warning =
      "/v/site-packages/torch/autograd/graph.py:869: UserWarning: Error detected in PowBackward0. Traceback of forward "
      "call that caused the error:\n  File \"/home/li/pairs.py\", line 31, in distance\n    return (a - b).norm()\n"
      " (Triggered internally at /pytorch/torch/csrc/autograd/python_anomaly_mode.cpp:122.)\n";
  const Event alone = OneEvent(ReadText(warning, "rank0.log"), EventKind::exception);
  EXPECT_EQ(alone.As<Raised>().type, "RuntimeError");
  EXPECT_EQ(alone.As<Raised>().place.function, "distance");
  const Event followed = OneEvent(
      ReadText(warning + "Traceback (most recent call last):\n  File \"/home/li/pairs.py\", line 60, in step\n    "
                         "loss.backward()\nRuntimeError: Function 'PowBackward0' returned nan values in its 0th "
                         "output.\n",
               "rank0.log"),
      EventKind::exception);
  EXPECT_EQ(followed.As<Raised>().place.function, "step");
}

TEST(TorchLogTraceback, TakesNoHalfNameForATypeWhereTheFileEnds) {
  const std::string frames = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\n";
  const Fragment cut = ReadText(frames + "Runtim", "rank0.log");
  EXPECT_EQ(OneEvent(cut, EventKind::exception).As<Raised>().type, "an exception whose name is cut off");
  for (const char* whole : {"RuntimeError\n", "RuntimeError: no", "RuntimeError: no\n"})
    EXPECT_EQ(OneEvent(ReadText(frames + whole, "rank0.log"), EventKind::exception).As<Raised>().type, "RuntimeError")
        << whole;
}

TEST(TorchLogTraceback, DropsATracebackThatTheJobSurvived) {
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nValueError: retry\n";
  const Fragment survived = ReadText("step 1\n" + traceback + "step 2\nstep 3\n", "rank0.log");
  EXPECT_TRUE(EventsOf(survived, EventKind::exception).empty());
  ASSERT_EQ(survived.diagnostics.size(), 1u);
  EXPECT_EQ(survived.diagnostics[0].code, "exception-survived");
  // A summary that names the last step again is no progress.
  const Fragment ended = ReadText("step 1\nstep 2\n" + traceback + "\nlast step: 2\n", "rank0.log");
  EXPECT_EQ(EventsOf(ended, EventKind::exception).size(), 1u);
}

TEST(TorchLogTraceback, DisregardsExceptionsThatPythonIgnores) {
  const Fragment fragment = ReadText(
      "Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n    x\nAttributeError: gone\n",
      "rank0.log");
  EXPECT_TRUE(EventsOf(fragment, EventKind::exception).empty());
}

TEST(TorchLogTraceback, ReadsATracebackBehindALoggersPrefix) {
  const Fragment fragment = ReadText(
      "ERROR 08-22 13:50:25 worker.py:148] Traceback (most recent call last):\n"
      "ERROR 08-22 13:50:25 worker.py:148]   File \"/srv/serve.py\", line 140, in run\n"
      "ERROR 08-22 13:50:25 worker.py:148]     return executor()\n"
      "ERROR 08-22 13:50:25 worker.py:148] RuntimeError: boom\n",
      "rank0.log");
  const Event exception = OneEvent(fragment, EventKind::exception);
  EXPECT_EQ(exception.As<Raised>().type, "RuntimeError");
  EXPECT_EQ(exception.text, "boom");
  EXPECT_EQ(exception.As<Raised>().place.function, "run");
}

TEST(TorchLogTraceback, ReadsInterleavedTracebacksOfTwoRanks) {
  const Fragment fragment = ReadText(
      "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"b.py\", line 2, in g\n[rank0]:   File \"a.py\", line 1, in f\n[rank1]:     y\n[rank0]:     x\n"
      "[rank1]: ValueError: two\n[rank0]: KeyError: 'one'\n",
      "job.log");
  const auto exceptions = EventsOf(fragment, EventKind::exception);
  ASSERT_EQ(exceptions.size(), 2u);
  EXPECT_EQ(RankOf(fragment, *exceptions[0]), Rank{1});
  EXPECT_EQ(exceptions[0]->As<Raised>().place.function, "g");
  EXPECT_EQ(RankOf(fragment, *exceptions[1]), Rank{0});
  EXPECT_EQ(exceptions[1]->As<Raised>().place.function, "f");
}

// vLLM's logger puts a head before every line of a traceback.
TEST(TorchLogTraceback, AHeadBeforeEveryLineIsNoPartOfTheMessage) {
  const std::string head = "ERROR 09-05 21:10:38 [core.py:702] ";
  std::string text;
  for (const char* line :
       {"Traceback (most recent call last):", "  File \"/v/site-packages/vllm/shm.py\", line 4, in acquire_read",
        "    raise TimeoutError", "TimeoutError", "",
        "The above exception was the direct cause of the following exception:", "",
        "Traceback (most recent call last):", "  File \"/v/site-packages/vllm/core.py\", line 9, in run", "    loop()",
        "TimeoutError: RPC call to execute_model timed out."})
    text += head + line + "\n";
  const auto fragment = ReadText(text + "ERROR 09-05 21:10:39 [async_llm.py:430] closed\n", "rank0.log");
  const Event raised = OneEvent(fragment, EventKind::exception);
  EXPECT_TRUE(raised.text.starts_with("RPC call to execute_model timed out.\n")) << raised.text;
  EXPECT_EQ(raised.text.find("core.py"), std::string::npos) << raised.text;
  const Event stuck = OneEvent(fragment, EventKind::heartbeat_stuck);
  EXPECT_TRUE(stuck.As<HeartbeatStuck>().waits_for_workers);
  EXPECT_EQ(stuck.As<HeartbeatStuck>().reason, "did not answer execute_model");
}

TEST(TorchLogTraceback, ATimeoutOfTheProgramIsItsOwn) {
  const auto fragment =
      ReadText(OneFrame("load", "get()", "TimeoutError: the data server did not answer"), "rank0.log");
  EXPECT_TRUE(EventsOf(fragment, EventKind::heartbeat_stuck).empty());
  EXPECT_EQ(OneEvent(fragment, EventKind::exception).As<Raised>().type, "TimeoutError");
}

TEST(TorchLogErrors, RaysTaskNamesTheProcessThatRanOutOfMemory) {
  const Event memory = OneEvent(
      ReadText(
          "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.update() (pid=1188, ip=10.1.7.7, actor_id=3)\n"
          "  File \"/w/a.py\", line 6, in update\n    step()\n"
          "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB.\n",
          "driver.log"),
      EventKind::cuda_error);
  EXPECT_EQ(memory.pid, 1188);
}

TEST(TorchLogErrors, AProgramSaysItselfWhyItStops) {
  const Event stop =
      OneEvent(ReadText("step 3 loss 2.1\nLoss is nan, stopping training\n", "rank0.log"), EventKind::exception);
  EXPECT_EQ(stop.As<Raised>().type, "a loss that is not finite");
  EXPECT_TRUE(
      EventsOf(ReadText("step 3 loss 2.1\nLoss is nan, skipping this batch\n", "rank0.log"), EventKind::exception)
          .empty());
}

TEST(TorchLogStore, TheLastTryTellsWhyTheTimeWasUp) {
  const Event unreachable = OneEvent(
      ReadText(
          "[W socket.cpp:752] [c10d] The client socket has failed to connect to [h]:29400 (errno: 111 - Connection "
          "refused).\n"
          "[E socket.cpp:726] [c10d] The client socket has timed out after 60s while trying to connect to (h, "
          "29400).\n",
          "rank1.log"),
      EventKind::store_unreachable);
  EXPECT_EQ(unreachable.As<StoreUnreachable>().last_try, "(errno: 111 - Connection refused)");
  EXPECT_EQ(unreachable.As<StoreUnreachable>().try_line, 1u);
  EXPECT_EQ(unreachable.source.line, 2u);
  EXPECT_EQ(unreachable.text.find("errno"), std::string::npos) << unreachable.text;
}

TEST(TorchLogTraceback, AModuleOfErrorsHoldsErrorsWhateverTheirNames) {
  for (const char* name : {"torch._dynamo.exc.Unsupported", "triton.runtime.errors.OutOfResources",
                           "requests.exceptions.ConnectTimeout", "subprocess.TimeoutExpired", "ValueError"})
    EXPECT_TRUE(IsErrorName(name)) << name;
  for (const char* name :
       {"acme.training.Loop", "torch.distributed.run", "sqlalchemy.exc.SAWarning", "Error", "errors"})
    EXPECT_FALSE(IsErrorName(name)) << name;
}

TEST(TorchLogTraceback, TheWordsOfAnErrorMayStandBelowIt) {
  const Event below = OneEvent(ReadText("RuntimeError: \n    no such layout\n", "rank0.log"), EventKind::exception);
  EXPECT_EQ(below.text, "no such layout");
  // Without a colon nothing more is to come: the next line is another program's.
  const Event bare =
      OneEvent(ReadText(OneFrame("f", "assert x", "AssertionError") + "bye\n", "rank0.log"), EventKind::exception);
  EXPECT_TRUE(bare.text == "assert x" || bare.text.starts_with("assert x\n")) << bare.text;
}

TEST(TorchLogTraceback, AnAssertionWithoutWordsTellsItsCondition) {
  const auto text_of = [](const std::string& error) {
    return OneEvent(ReadText(OneFrame("f", "assert n % 8 == 0", error), "rank0.log"), EventKind::exception).text;
  };
  EXPECT_EQ(text_of("AssertionError"), "assert n % 8 == 0");
  EXPECT_EQ(text_of("AssertionError: not a multiple"), "not a multiple") << "it has words of its own";
  EXPECT_EQ(text_of("ValueError: x"), "x");
}

TEST(TorchLogTraceback, ATracebackThatEndsInARaiseNamesTheError) {
  const std::string frame = "Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n";
  const auto type_of = [&](const std::string& code) {
    return OneEvent(ReadText(frame + code, "rank0.log"), EventKind::exception).As<Raised>().type;
  };
  EXPECT_EQ(type_of("    raise BatchSizeError(\n"), "BatchSizeError");
  EXPECT_EQ(type_of("    raise error\n"), kCutException) << "a variable";
  EXPECT_EQ(type_of("    return step(x)\n"), kCutException);
}

TEST(TorchLogTraceback, AChildThatReadsNothingTellsOfItsParent) {
  const std::string child =
      "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/multiprocessing/spawn.py\", line 132, in "
      "_main\n"
      "    self = reduction.pickle.load(from_parent)\nEOFError: Ran out of input\n";
  EXPECT_TRUE(OneEvent(ReadText(child, "rank0.log"), EventKind::exception).As<Raised>().of_parent);
  const std::string file = OneFrame("load", "pickle.load(f)", "EOFError: Ran out of input");
  EXPECT_FALSE(OneEvent(ReadText(file, "rank0.log"), EventKind::exception).As<Raised>().of_parent);
}

TEST(TorchLogTraceback, LibrariesOfWindowsAreNotTheUsersOwn) {
  EXPECT_FALSE(IsUserFile("C:\\conda\\envs\\x\\lib\\site-packages\\torch\\nn\\modules\\module.py"));
  EXPECT_FALSE(IsUserFile("C:\\conda\\envs\\x\\lib\\multiprocessing\\spawn.py"));
  EXPECT_TRUE(IsUserFile("D:\\work\\lib\\models\\net.py"));
}

// Two processes without labels print at the same time: the type of the first stands before a frame of the second.
TEST(TorchLogTraceback, ATypeBeforeAFrameIsThatOfTheTracebackBefore) {
  const std::string text =
      "Traceback (most recent call last):\n  File \"/srv/a.py\", line 7, in f\n    step()\n"
      "Traceback (most recent call last):\nRuntimeError  File \"/srv/a.py\", line 9, in g\n"
      ": Connection closed by peer [10.0.0.4]:4411\n    run()\nValueError: no data\n";
  std::vector<std::string> told;
  for (const Event& event : ReadText(text, "train.log").events)
    if (event.kind == EventKind::exception)
      told.push_back(event.As<Raised>().type + " in " + event.As<Raised>().place.function + ": " + event.text);
  EXPECT_EQ(told, (std::vector<std::string>{"RuntimeError in f: Connection closed by peer [10.0.0.4]:4411",
                                            "ValueError in g: no data"}));
}

TEST(TorchLogTraceback, WhereCtrlCMeetsAProcessThatWatchesOthersIsNoPlace) {
  const auto place_of = [](const std::string& file, const std::string& function) {
    return OneEvent(ReadText("Traceback (most recent call last):\n  File \"/srv/a.py\", line 7, in main\n    go()\n"
                             "  File \"" +
                                 file + "\", line 9, in " + function + "\n    wait()\nKeyboardInterrupt\n",
                             "train.log"),
                    EventKind::exception)
        .As<Raised>()
        .place.function;
  };
  EXPECT_EQ(place_of("/usr/lib/python3/dist-packages/torch/multiprocessing/spawn.py", "join"), "");
  EXPECT_EQ(place_of("/usr/lib/python3.11/subprocess.py", "wait"), "");
  EXPECT_EQ(place_of("/usr/lib/python3/dist-packages/torch/autograd/graph.py", "_engine_run_backward"), "main");
}

TEST(TorchLogTraceback, WhatComesUpWhilePythonEndsIsNoError) {
  const std::string dump =
      "object address  : 0x7fefad13c7c0\nobject refcount : 2\nobject type     : 0x947600\n"
      "object type name: RuntimeError\n"
      "object repr     : RuntimeError('[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:35')\n"
      "lost sys.stderr\n";
  const Event raised =
      OneEvent(ReadText(OneFrame("f", "step()", "KeyboardInterrupt") + dump, "a.log"), EventKind::exception);
  EXPECT_EQ(raised.text, "");
  EXPECT_TRUE(EventsOf(ReadText("step 1 loss 2\nstep 2 loss 2\n" + dump, "a.log"), EventKind::connection_lost).empty());
}

TEST(TorchLogTraceback, AWordOfALoggerIsNoException) {
  const Event raised =
      OneEvent(ReadText("Traceback (most recent call last):\n"
                        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 7 closing "
                        "signal SIGINT\n  File \"/srv/a.py\", line 7, in main\n    go()\n"
                        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 8 closing "
                        "signal SIGINT\nKeyboardInterrupt\n",
                        "a.log"),
               EventKind::exception);
  EXPECT_EQ(raised.As<Raised>().type, "KeyboardInterrupt");
}

TEST(TorchLogTraceback, ABarrierIsTold) {
  const std::string text =
      "Traceback (most recent call last):\n  File \"/srv/a.py\", line 7, in main\n    dist.barrier()\n"
      "  File \"/x/torch/distributed/distributed_c10d.py\", line 3152, in barrier\n    work.wait()\n";
  EXPECT_EQ(OneEvent(ReadText(text + "KeyboardInterrupt\n", "a.log"), EventKind::exception).op, OpKind::barrier);
}

}  // namespace
}  // namespace tacet
