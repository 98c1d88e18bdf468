// SPDX-License-Identifier: Apache-2.0
#include "model/events/event.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "model/events/event_payload.h"
#include "model/events/event_words.h"

namespace tacet {
namespace {

// A job of 16,384 ranks has millions of events.
static_assert(sizeof(Event) <= 392 && std::is_nothrow_move_constructible_v<Event>);

static_assert(PayloadOf(EventKind::exception) == kPayload<Raised>);
static_assert(PayloadOf(EventKind::gil_blocked) == 0 && kPayload<std::monostate> == 0);

TEST(Event, AnswersWithAnEmptyPayloadWhereItHoldsAnother) {
  Event event;
  EXPECT_EQ(event.As<ProcessEnd>().code, -1);
  event.Make<ProcessEnd>().code = -9;
  EXPECT_EQ(event.As<ProcessEnd>().code, -9);
  EXPECT_EQ(event.As<Xid>().number, -1);
  EXPECT_EQ(event.As<Warning>().id, "");
}

TEST(Event, KeepsWhatItHoldsWhenMoreIsWritten) {
  Event event;
  event.Make<ProcessEnd>().code = -9;
  event.Make<ProcessEnd>().how = "SIGKILL";
  EXPECT_EQ(event.As<ProcessEnd>().code, -9);
  event.Make<CudaError>().words = "out of memory";
  EXPECT_EQ(event.As<ProcessEnd>().code, -1);
}

TEST(Event, TellsWhetherItHoldsThePayloadOfItsKind) {
  Event event;
  event.kind = EventKind::nccl_error;
  EXPECT_FALSE(HoldsItsPayload(event));
  event.Make<NcclError>();
  EXPECT_TRUE(HoldsItsPayload(event));
  event.kind = EventKind::exception;
  EXPECT_FALSE(HoldsItsPayload(event));
}

TEST(EventPayload, IsUsedBySomeKindEach) {
  std::set<size_t> used;
  for (int kind = 0; kind <= static_cast<int>(EventKind::site_message); ++kind)
    used.insert(PayloadOf(static_cast<EventKind>(kind)));
  EXPECT_EQ(used.size(), std::variant_size_v<EventDetail>);
}

Event Holding(EventDetail detail, std::string text = "") {
  Event event;
  event.detail = std::move(detail);
  event.text = std::move(text);
  return event;
}

TEST(EventWords, AreThoseThatTellItFromOthersOfItsKind) {
  EXPECT_EQ(WordOf(Holding(Raised{"ValueError", {}, {}, {}, {}, {}}, "bad")), "ValueError");
  EXPECT_EQ(MessageOf(Holding(Raised{"ValueError", {}, {}, {}, {}, {}}, "bad")), "bad");
  EXPECT_EQ(WordOf(Holding(EnvironmentSetting{"NCCL_ALGO", "Ring"})), "NCCL_ALGO");
  EXPECT_EQ(MessageOf(Holding(EnvironmentSetting{"NCCL_ALGO", "Ring"})), "Ring");
  EXPECT_EQ(MessageOf(Holding(NetworkDevice{"eth0", "10.0.0.1", DeviceUse::data})), "10.0.0.1");
  EXPECT_EQ(WordOf(Holding(Rendezvous{3, 4, false})), "");
  EXPECT_EQ(WordOf(Holding(PortTaken{29500})), "");
  EXPECT_EQ(WordOf(Event()), "");
}

TEST(EventWords, NameTheDeviceThatTheKernelSpeaksOf) {
  EXPECT_EQ(KernelDeviceOf(Holding(Xid{79, {}, 1, "0000:3b:00", ""})), "0000:3b:00");
  EXPECT_EQ(KernelDeviceOf(Holding(NetworkLink{"eth0", 1})), "eth0");
  EXPECT_EQ(KernelDeviceOf(Holding(OomKill{"python3"})), "") << "a process is no device";
}

}  // namespace
}  // namespace tacet
