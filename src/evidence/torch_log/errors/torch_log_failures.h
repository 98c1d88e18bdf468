// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "evidence/torch_log/libraries/torch_log_ascend.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What one voice has begun to say of a failure and goes on with in later lines.
struct FailureState {
  TorchLogRecord* nccl_error = nullptr;  // its name and "Last error:" follow
  bool last_error_next = false;          // the next line is the text of "Last error:"
  TorchLogRecord* ddp = nullptr;         // the parameters follow
  std::string thrown;                    // type of the C++ exception that ends the process: its words follow
  TorchLogRecord* condition = nullptr;   // of oneCCL, that failed: what to do about it stands on the next line
  TorchLogRecord* barrier = nullptr;     // a rank's error in a monitored barrier: gloo's own words follow
  uint32_t barrier_voice = 0;
  AscendBlock ascend;
  std::string bar;                  // the last progress bar before one of its lines
  std::string rdzv_endpoint;        // as torchrun lists it before it connects
  uint32_t running_agent_line = 0;  // where a traceback last showed an agent of torchrun whose workers run
  std::string ray_host;             // of the task whose failure Ray tells, with its traceback below
  int64_t ray_pid = -1;
  uint32_t ray_line = 0;
  int idle_engine = 0;  // how often an engine has said that its workers take nothing
};

// Texts of errors, in a log line, in the message of an exception or by themselves: CUDA, DDP, barriers, aborts.
LineUse ReadErrorText(const LogLine& line, FailureState& state, RecordList& out);
// NCCL's errors as PyTorch tells them, several lines long.
LineUse ReadNcclErrorText(const LogLine& line, FailureState& state, RecordList& out);
// The result in the words of ncclGetErrorString: its code and its name; false where it is none.
bool TakeNcclResult(std::string_view text, TorchLogRecord& record);
// A symbol that a library lacks, as the dynamic loader says it outside of Python.
LineUse ReadMissingSymbol(const LogLine& line, RecordList& out);
LineUse ReadSetupWords(const LogLine& line, RecordList& out);
LineUse ReadMemoryKill(const LogLine& line, RecordList& out);
// The store, the rendezvous and connections between processes.
LineUse ReadStoreText(const LogLine& line, FailureState& state, RecordList& out);
// Connections that were tried only a few times: the store was not up yet; and waits that are told again in better
// words.
void DropFewRetries(TorchLog& log);
// The rank that writes a key of the store, where the key names one; -1 otherwise.
int32_t RankInStoreKey(std::string_view key);
// Members of a group beside the job's first one meet by this key.
bool IsKeyOfGroup(std::string_view key);
// The name of a key of the program's own: "tokenizer" of "/default_pg/0//tokenizer"; empty for keys of PyTorch's own.
std::string_view OwnKeyIn(std::string_view key);
// "Connection closed by peer [10.0.1.17]:22780"; `certain` when the context is communication for sure.
LineUse ReadLostConnection(const LogLine& line, bool certain, RecordList& out);

}  // namespace tacet
