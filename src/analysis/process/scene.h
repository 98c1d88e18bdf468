// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "analysis/process/standstill.h"

namespace tacet {

// The questions that are asked about the processes of a job that stands still, each answered in one place.
class Scene {
 public:
  Scene(const Incident& incident, const Analyses& analyses);

  // Long after a watchdog had fired: somebody ended the job, and its processes one after the other.
  bool ClosedByTheEnd(const Event& lost) const;
  // It ended on its own and not by the clean-up that follows a timeout: by a signal that clean-ups do not send, or
  // before anybody else ended or gave up.
  bool EndedFirst(const RankLife& life) const;
  // Its innermost frame of Python is the very line at which others stand: what happens below it cannot be seen.
  bool IsWhereOthersWait(Rank rank) const;
  bool InCommunication(Rank rank) const;
  // A time limit that passed, an operation open for many seconds, a report of NCCL or PyTorch.
  bool Lasts() const;
  // Every other member of the group issued so many operations more that no usual delay explains it: hosts run ahead of
  // each other, but not by that much.
  bool IsFarBehind(const WaitRoot& root) const;
  // At that moment no other stack, and there are at least two, is outside communication and PyTorch's own code, and
  // none came where it is through the line at which this rank is.
  bool OthersWait(Rank rank) const;
  // Nothing but the end of its log says that it has not come, or it has no record of its calls at all. A log may have
  // been cut there.
  bool HasNoCallOfItsOwn(Rank rank, const WaitRoot& root) const;
  // What tells of a closed connection may be lost.
  bool SomeLogIsCut() const;
  // A communicator was begun and never completed, while others' stacks are long past it: what came later is not there.
  bool SomeLogEndsInSetUp() const { return some_log_ends_in_set_up_; }
  // Where one file of a rank was cut, others may have been, too.
  bool HasCutFile(Rank rank) const;
  // What its stack says against a log that may have been cut.
  bool ShowsWhereItIs(const StackReading& own) const;
  // Its stack is at another place than those of all others: it has not come to where they are. One in the very line in
  // which others wait has come, whatever its log says.
  bool StandsApart(const StackReading& own) const;
  // The host called NCCL for the operation and has not come back: its kernel was never launched.
  const InFlight* HostInside(Rank rank, const WaitRoot& root) const;
  // The calls themselves differ: a rank that ended in order with one too few did nothing else wrong.
  bool Diverged(const WaitRoot& root) const;
  // NCCL connects a group when it first needs to, inside the first call, and waits there for the other members: who is
  // in there says nothing about who is missing.
  bool IsConnecting(Rank rank, const WaitRoot& root) const;
  // Boxes tell when a wait began. One that is young beside a wait that has lasted is the ordinary life of a group that
  // still moves: at any moment somebody in it is a little late.
  bool IsMomentary(const Call* call, const CallStream* stream) const;
  // A GPU stands still only if its process went on living for a while: one whose heartbeat stopped when it had just
  // issued the operation died or froze. True where nothing beats.
  bool LivedOn(Rank rank, const WaitRoot& root) const;
  // It said something when its peers had been waiting for a while already: it runs.
  bool SpokeSinceOthersWait(const RankLife& life, const WaitRoot* root) const;
  // All others printed a stack, and their logs, which would tell of a closed connection, do not; of this rank there are
  // files, but nothing in them was written since.
  bool IsOnlySilentRank(Rank rank) const;
  // The rank itself reports no lost peer: it is the one that was lost.
  bool ClosedFirst(Rank rank) const;

  const Incident& incident;
  const Analyses& analyses;
  std::map<Rank, const StackReading*> stacks;
  const Event* closing = nullptr;  // the first connection that somebody saw close while the job ran

 private:
  int64_t longest_wait_ns_ = 0;  // of those that boxes time
  bool some_log_ends_in_set_up_ = false;
};

}  // namespace tacet
