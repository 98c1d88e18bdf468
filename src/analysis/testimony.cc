// SPDX-License-Identifier: Apache-2.0
#include "analysis/testimony.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "analysis/stopped_heartbeat.h"

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
};

using Answer = std::optional<Claim>;

Claim Says(StandstillKind kind, Strength strength, std::string_view because, const Event* event = nullptr) {
  Claim claim;
  claim.says = kind;
  claim.strength = strength;
  claim.because = because;
  claim.event = event;
  return claim;
}

Claim CannotSay(std::string_view because) { return Says(StandstillKind::unclear, Strength::weak, because); }

const Event* FirstOf(std::initializer_list<const Event*> events) {
  for (const Event* event : events)
    if (event) return event;
  return nullptr;
}

Answer AskOwnOutput(const Asked& of) {
  if (!IsExplained(of.life)) return std::nullopt;
  return Says(StandstillKind::explained, Strength::proof, "its own output or the kernel says what ended it",
              FirstOf({of.life.oom_killed, of.life.gpu_error, of.life.cuda_oom, of.life.host_memory,
                       of.life.unused_parameters, of.life.exception}));
}

Answer AskDisappearance(const Asked& of) {
  if (!of.life.vanished) return std::nullopt;
  Claim claim = Says(StandstillKind::dead, Strength::strong,
                     "all its files end without a message, and its peers lost the connection", of.scene.closing);
  claim.closing = of.scene.closing;
  return claim;
}

Answer AskHostInNccl(const Asked& of) {
  if (of.root.kind != RootKind::gpu_not_started) return std::nullopt;
  const InFlight* inside = of.scene.HostInside(of.rank, of.root);
  if (!inside) return std::nullopt;
  Claim claim =
      Says(StandstillKind::host, Strength::proof, "its host called NCCL for the operation and has not returned");
  claim.inside = inside;
  return claim;
}

Answer AskGpuProgress(const Asked& of) {
  if (of.root.kind != RootKind::gpu_not_started && of.root.kind != RootKind::gpu_behind) return std::nullopt;
  if (!of.outcome().stands()) return CannotSay("its GPU is behind, but nothing shows that it stays behind");
  if (!of.scene.LivedOn(of.rank, of.root)) return CannotSay("its heartbeat stopped just after it issued the operation");
  return Says(StandstillKind::gpu, Strength::strong,
              of.root.kind == RootKind::gpu_behind ? "its GPU has not finished what its peers have"
                                                   : "it issued the operation, but its GPU has not started it");
}

Answer AskMessages(const Asked& of) {
  if (!of.life.finished || !of.root.call || !IsPointToPoint(of.root.call->kind)) return std::nullopt;
  return CannotSay("it exited cleanly with one send or receive too few");
}

Answer AskEnd(const Asked& of) {
  if (of.scene.EndedFirst(of.life))
    return Says(StandstillKind::dead, Strength::proof, "its process ended on its own, before any other rank gave up",
                FirstOf({of.life.segfault, of.life.exited}));
  if (of.life.finished && of.outcome().hangs() && !of.scene.Diverged(of.root))
    return Says(StandstillKind::dead, Strength::strong, "it exited cleanly while its peers still wait for it");
  return std::nullopt;
}

Answer AskStackBesideCutLog(const Asked& of) {
  if (!of.stack || !of.scene.HasNoCallOfItsOwn(of.rank, of.root) || of.scene.ShowsWhereItIs(*of.stack))
    return std::nullopt;
  return CannotSay("only the end of its log suggests that it has not arrived, and its stack does not show where it is");
}

Answer AskHostStack(const Asked& of) {
  if (!of.stack || of.stack->place != StackReading::Place::host || of.scene.IsWhereOthersWait(of.rank))
    return std::nullopt;
  const bool stands = of.scene.Lasts() || of.scene.OthersWait(of.rank) || of.scene.IsFarBehind(of.root);
  Claim claim = stands ? Says(StandstillKind::host, of.stack->certain ? Strength::proof : Strength::strong,
                              "its stack is outside communication while its peers wait")
                       : CannotSay("its stack is outside communication, but nothing shows that it stays there");
  claim.stack = of.stack;
  return claim;
}

// It waits for its GPU before it can issue the operation, and nothing of its communication is open.
Answer AskGpuStack(const Asked& of) {
  if (!of.stack || of.stack->place != StackReading::Place::device_wait || of.root.kind != RootKind::not_entered ||
      !of.scene.Lasts())
    return std::nullopt;
  Claim claim =
      Says(StandstillKind::gpu, Strength::strong, "its stack waits for the GPU before the operation is issued");
  claim.stack = of.stack;
  return claim;
}

Answer AskKernel(const Asked& of) {
  if (!of.life.hung_task || of.root.kind == RootKind::gpu_behind) return std::nullopt;
  Claim claim = Says(StandstillKind::frozen, Strength::strong,
                     "the kernel reports that the process is blocked inside the kernel", of.life.hung_task);
  claim.hung_task = of.life.hung_task;
  return claim;
}

Answer AskRecord(const Asked& of) {
  if (of.root.kind != RootKind::not_entered || !of.alive || of.scene.InCommunication(of.rank) ||
      of.scene.HasCutFile(of.rank))
    return std::nullopt;
  if (of.life.finished) return CannotSay("it exited cleanly");
  if (!of.outcome().aged && !of.outcome().overdue)
    return CannotSay("its own record lacks the operation, but nothing shows for how long");
  return Says(StandstillKind::host, Strength::strong,
              "its process runs, and its own record shows that it has not issued the operation");
}

Answer AskFiles(const Asked& of) {
  if (of.life.any()) return std::nullopt;
  return Says(StandstillKind::absent, Strength::weak, "no file mentions it");
}

// It left no flight record although its peers did: which kind of silence is it? One kind of evidence alone cannot tell
// a dead process from a stopped one.
Answer AskSilence(const Asked& of) {
  const Scene& scene = of.scene;
  const SignsOfLife& signs = scene.analyses.life;
  if (scene.IsOnlySilentRank(of.rank))
    return Says(StandstillKind::frozen, Strength::strong,
                "every other rank wrote a stack, this one did not, and no connection closed");
  const auto lost = [&](std::string_view because) {
    Claim claim = Says(StandstillKind::dead, Strength::strong, because, scene.closing);
    claim.closing = scene.closing;
    return claim;
  };
  if (of.life.fell_silent) return lost("only its output stopped, and a peer saw a connection close");
  if (signs.records < 2 || of.life.has_record || of.life.has_stub_record)
    return CannotSay("it is behind, and nothing shows why");
  const bool has_log = of.life.has_nccl_log || of.life.has_output;
  if (scene.closing && has_log && scene.ClosedFirst(of.rank))
    return lost("a peer saw a connection close, and this rank left no flight record and lost no peer");
  if (scene.SpokeSinceOthersWait(of.life, &of.root)) return CannotSay("it still printed while its peers waited");
  // Only when everybody's log is here can it be said that nobody saw a connection close.
  const bool all_logs = std::all_of(signs.ranks.begin(), signs.ranks.end(),
                                    [](const auto& one) { return one.second.has_nccl_log || one.second.has_output; });
  const bool peers_have_stacks = signs.stacks >= 1 && !of.life.has_stack;
  if (peers_have_stacks && has_log && all_logs && !scene.closing && !of.life.asked_to_dump && !scene.SomeLogIsCut())
    return Says(StandstillKind::frozen, Strength::strong,
                "it wrote neither a flight record nor a stack although its peers did, and no connection closed");
  return CannotSay("it left no flight record although its peers did, and nothing shows why");
}

// Who knows more is asked first: words of the process itself or of the kernel, what its record and its stack show, then
// what is missing.
constexpr Answer (*kWitnesses[])(const Asked&) = {
    AskOwnOutput, AskDisappearance, AskHostInNccl, AskGpuProgress, AskMessages, AskEnd,    AskStackBesideCutLog,
    AskHostStack, AskGpuStack,      AskKernel,     AskRecord,      AskFiles,    AskSilence};

std::vector<Claim> Ask(const Scene& scene, Rank rank, const WaitRoot& root, size_t most) {
  std::vector<Claim> claims;
  const RankLife* life = scene.analyses.life.Of(rank);
  if (!life) return claims;
  const auto stack = scene.stacks.find(rank);
  const Asked of{scene,
                 rank,
                 root,
                 *life,
                 stack == scene.stacks.end() ? nullptr : stack->second,
                 life->has_record || life->asked_to_dump};
  for (const auto ask : kWitnesses) {
    Answer answer = ask(of);
    // After somebody who knows, those who only say that they do not know add nothing.
    if (answer && (claims.empty() || answer->says != StandstillKind::unclear)) claims.push_back(std::move(*answer));
    if (claims.size() == most) break;
  }
  return claims;
}

}  // namespace

std::vector<Claim> ClaimsAbout(const Scene& scene, Rank rank, const WaitRoot& root) {
  return Ask(scene, rank, root, std::size(kWitnesses));
}

Standstill ReadStandstill(const Scene& scene, Rank rank, const WaitRoot& root) {
  Standstill still{.rank = rank, .root = &root};
  const std::vector<Claim> claims = Ask(scene, rank, root, 1);
  if (claims.empty()) return still;
  const RankLife& life = *scene.analyses.life.Of(rank);
  const Claim& decisive = claims.front();
  still.alive = life.has_record || life.asked_to_dump;
  still.kind = decisive.says;
  still.closing = decisive.closing;
  still.hung_task = decisive.hung_task;
  still.stack = decisive.stack;
  still.inside = decisive.inside;
  return still;
}

}  // namespace tacet
