// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/testimony.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "analysis/process/stopped_heartbeat.h"

namespace tacet {
namespace {

struct Asked {
  const Scene& scene;
  Rank rank;
  const WaitRoot& root;
  const RankLife& life;
  const StackReading* stack;  // null: none was taken
  bool alive;                 // it wrote a record, or saw the dump signal

  const Outcome& outcome() const { return scene.analyses.outcome; }
  bool issued() const { return HasIssued(root.kind); }
  // Only the end of its log suggests that it has not come, and its stack does not show where it is.
  bool may_have_come() const { return stack && scene.HasNoCallOfItsOwn(rank, root) && !scene.ShowsWhereItIs(*stack); }
};

using Claims = std::vector<Claim>;

void CannotSay(Claims& claims, std::string_view because) { Say(claims, Liveness::unknown, Strength::weak, because); }

const Event* FirstOf(std::initializer_list<const Event*> events) {
  for (const Event* event : events)
    if (event) return event;
  return nullptr;
}

void AskOwnOutput(const Asked& of, Claims& claims) { ClaimByOwnOutput(of.life, claims); }

void AskDisappearance(const Asked& of, Claims& claims) {
  if (!of.life.vanished) return;
  Say(claims, Liveness::gone, Strength::strong,
      "all its files end without a message, and its peers lost the connection", of.scene.closing)
      .closing = of.scene.closing;
}

void AskEnd(const Asked& of, Claims& claims) {
  if (of.scene.EndedFirst(of.life)) {
    Say(claims, Liveness::gone, Strength::proof, "its process ended on its own, before any other rank gave up",
        FirstOf({of.life.segfault, of.life.exited}));
  } else if (of.life.finished && of.root.call && IsPointToPoint(of.root.call->kind)) {
    CannotSay(claims, "it exited cleanly with one send or receive too few");
  } else if (of.life.finished && of.outcome().hangs() && !of.scene.Diverged(of.root)) {
    Say(claims, Liveness::gone, Strength::strong, "it exited cleanly while its peers still wait for it");
  }
}

void AskHostInNccl(const Asked& of, Claims& claims) {
  if (of.root.kind != RootKind::gpu_not_started) return;
  if (const InFlight* inside = of.scene.HostInside(of.rank, of.root))
    Say(claims, HostPlace::inside_nccl, Strength::proof, "its host called NCCL for the operation and has not returned")
        .inside = inside;
}

void AskGpuProgress(const Asked& of, Claims& claims) {
  if (!of.issued()) return;
  if (!of.outcome().stands()) {
    CannotSay(claims, "its GPU is behind, but nothing shows that it stays behind");
  } else if (!of.scene.LivedOn(of.rank, of.root)) {
    CannotSay(claims, "its heartbeat stopped just after it issued the operation");
  } else if (of.root.kind == RootKind::gpu_behind) {
    Say(claims, GpuPlace::inside, Strength::strong, "its GPU has not finished what its peers have");
  } else {
    Say(claims, GpuPlace::before, Strength::strong, "it issued the operation, but its GPU has not started it");
  }
}

void AskHostStack(const Asked& of, Claims& claims) {
  if (!of.stack || of.issued()) return;
  if (of.may_have_come()) {
    CannotSay(claims,
              "only the end of its log suggests that it has not arrived, and its stack does not show where it is");
    return;
  }
  if (of.stack->place != StackReading::Place::host || of.scene.IsWhereOthersWait(of.rank)) return;
  const bool stands = of.scene.Lasts() || of.scene.OthersWait(of.rank) || of.scene.IsFarBehind(of.root);
  if (stands)
    ClaimByHostStack(*of.stack, claims);
  else
    SayByStack(claims, *of.stack, HostPlace::unknown, Strength::weak,
               "its stack is not in a collective, but nothing shows that it stays there");
}

// It waits for its GPU before it can issue the operation, and nothing of its communication is open.
void AskGpuStack(const Asked& of, Claims& claims) {
  if (!of.stack || of.stack->place != StackReading::Place::device_wait || of.root.kind != RootKind::not_entered ||
      of.may_have_come() || !of.scene.Lasts())
    return;
  SayByStack(claims, *of.stack, HostPlace::waiting_for_gpu, Strength::strong,
             "its stack waits for the GPU before the operation is issued");
}

void AskKernel(const Asked& of, Claims& claims) {
  if (!of.life.hung_task || of.issued() || of.may_have_come()) return;
  ClaimByKernel(*of.life.hung_task, claims);
}

// A process of a rank that others wait for, in a list of the host's processes.
void AskProcessList(const Asked& of, Claims& claims) {
  for (const Silence& silence : of.scene.analyses.silences)
    if (silence.rank == of.rank && !silence.pulse && (silence.lasts() || (!of.issued() && !of.may_have_come())))
      ClaimByHeartbeat(silence, claims);
}

void AskRecord(const Asked& of, Claims& claims) {
  if (of.root.kind != RootKind::not_entered || !of.alive || of.may_have_come() || of.scene.InCommunication(of.rank) ||
      of.scene.HasCutFile(of.rank))
    return;
  if (of.life.finished) {
    CannotSay(claims, "it exited cleanly");
  } else if (!of.outcome().aged && !of.outcome().overdue) {
    CannotSay(claims, "its own record lacks the operation, but nothing shows for how long");
  } else {
    Say(claims, HostPlace::own_code, Strength::strong,
        "its process runs, and its own record shows that it has not issued the operation");
  }
}

void AskFiles(const Asked& of, Claims& claims) {
  if (!of.life.any()) Say(claims, Liveness::unseen, Strength::weak, "no file mentions it");
}

// It left no flight record although its peers did: which kind of silence is it? One kind of evidence alone cannot tell
// a dead process from a stopped one. What is missing is asked for only where nothing that is there tells.
void AskSilence(const Asked& of, Claims& claims) {
  if (of.issued() || of.may_have_come() || !of.life.any() || !claims.empty()) return;
  const Scene& scene = of.scene;
  const SignsOfLife& signs = scene.analyses.life;
  if (scene.IsOnlySilentRank(of.rank)) {
    ClaimByMissingStack(claims);
    return;
  }
  const auto lost = [&](std::string_view because) {
    Say(claims, Liveness::gone, Strength::strong, because, scene.closing).closing = scene.closing;
  };
  if (of.life.fell_silent) return lost("only its output stopped, and a peer saw a connection close");
  if (signs.records < 2 || of.life.has_record || of.life.has_stub_record) {
    CannotSay(claims, "it is behind, and nothing shows why");
    return;
  }
  const bool has_log = of.life.has_nccl_log || of.life.has_output;
  if (scene.closing && has_log && scene.ClosedFirst(of.rank))
    return lost("a peer saw a connection close, and this rank left no flight record and lost no peer");
  if (scene.SpokeSinceOthersWait(of.life, &of.root)) {
    CannotSay(claims, "it still printed while its peers waited");
    return;
  }
  // Only when everybody's log is here can it be said that nobody saw a connection close.
  const bool all_logs = std::all_of(signs.ranks.begin(), signs.ranks.end(),
                                    [](const auto& one) { return one.second.has_nccl_log || one.second.has_output; });
  const bool peers_have_stacks = signs.stacks >= 1 && !of.life.has_stack;
  if (peers_have_stacks && has_log && all_logs && !scene.closing && !of.life.asked_to_dump && !scene.SomeLogIsCut())
    Say(claims, Liveness::stopped, Strength::strong,
        "it wrote neither a flight record nor a stack although its peers did, and no connection closed")
        .witness = Witness::peer;
  else
    CannotSay(claims, "it left no flight record although its peers did, and nothing shows why");
}

// What shows that something of the process ran when the others waited already.
void AskSignsOfLife(const Asked& of, Claims& claims) {
  const RankLife& life = of.life;
  const auto ran = [&](bool holds, std::string_view because, const Event* event = nullptr) {
    if (holds) Say(claims, Liveness::running, Strength::strong, because, event);
  };
  ran(life.has_dump, "it wrote a flight record while its peers were already waiting");
  ran(life.asked_to_dump && !life.has_dump, "its output says that it saw the dump signal");
  ran(life.has_stack, "its stack was captured");
  ran(life.timeout != nullptr, "its own watchdog fired", life.timeout);
  ran(life.lost_peer != nullptr, "it reports a lost peer", life.lost_peer);
}

constexpr void (*kWitnesses[])(const Asked&, Claims&) = {
    AskOwnOutput, AskDisappearance, AskEnd,    AskHostInNccl, AskGpuProgress, AskHostStack,  AskGpuStack,
    AskKernel,    AskProcessList,   AskRecord, AskFiles,      AskSilence,     AskSignsOfLife};

}  // namespace

void ClaimByOwnOutput(const RankLife& life, Claims& claims) {
  if (!IsExplained(life)) return;
  Say(claims, Liveness::gone, Strength::proof, "its own output or the kernel says what ended it",
      FirstOf(
          {life.oom_killed, life.gpu_error, life.cuda_oom, life.host_memory, life.unused_parameters, life.exception}))
      .told_why = true;
}

void ClaimByHostStack(const StackReading& stack, Claims& claims) {
  SayByStack(claims, stack, HostPlace::own_code, stack.certain ? Strength::proof : Strength::strong,
             "its stack is not in a collective while its peers wait");
}

void ClaimByKernel(const Event& hung_task, Claims& claims) {
  Say(claims, HostPlace::in_kernel, Strength::strong, "the kernel reports the process as blocked", &hung_task);
}

void ClaimByMissingStack(Claims& claims) {
  Say(claims, Liveness::stopped, Strength::strong,
      "every other rank wrote a stack, this one did not, and no connection closed")
      .witness = Witness::peer;
}

std::vector<Claim> ClaimsAbout(const Scene& scene, Rank rank, const WaitRoot& root) {
  Claims claims;
  const RankLife* life = scene.analyses.life.Of(rank);
  if (!life) return claims;
  const auto stack = scene.stacks.find(rank);
  const StackReading* own = stack == scene.stacks.end() ? nullptr : stack->second;
  const Asked of{scene, rank, root, *life, own, life->has_record || life->asked_to_dump};
  for (const auto ask : kWitnesses) ask(of, claims);
  return claims;
}

Standstill ReadStandstill(const Scene& scene, Rank rank, const WaitRoot& root) {
  Standstill still{.rank = rank, .root = &root, .claims = ClaimsAbout(scene, rank, root)};
  const RankLife* life = scene.analyses.life.Of(rank);
  still.alive = life && (life->has_record || life->asked_to_dump);
  for (const Silence& silence : scene.analyses.silences)
    if (silence.rank == rank && !silence.pulse) still.silence = &silence;
  Settle(still);
  return still;
}

}  // namespace tacet
