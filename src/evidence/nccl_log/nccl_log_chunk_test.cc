// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_chunk.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "evidence/nccl_log/nccl_log_import.h"

namespace tacet {
namespace {

constexpr size_t kPart = size_t{1} << 20;  // of a file that is read in parts

std::string Prefix(int rank) {
  const std::string pid = std::to_string(100 + rank);
  return "vm:" + pid + ":" + pid + " [" + std::to_string(rank) + "] NCCL INFO ";
}

std::string InitLine(int rank, const char* end) {
  return Prefix(rank) + "ncclCommInitRankConfig comm 0x55d0c0a0 rank " + std::to_string(rank) +
         " nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x554de40bbdc91ec7 - Init " + end + "\n";
}

std::string CallLine(int rank, int number) {
  char text[200];
  std::snprintf(
      text, sizeof text,
      "AllReduce: opCount %x sendbuff 0x7f042be00000 recvbuff 0x7f042be00000 count %d datatype 7 op 0 root 0 comm "
      "0x55d0c0a0 [nranks=2] stream (nil)\n",
      number, 1000 + number);
  return Prefix(rank) + text;
}

TEST(SplitLines, GivesWholeLinesThatAddUp) {
  const std::string text = "one\ntwo\n\nthree is longer\nfour";
  for (size_t bytes = 1; bytes < text.size() + 3; ++bytes) {
    std::string together;
    for (const std::string_view part : SplitLines(text, bytes)) {
      ASSERT_FALSE(part.empty());
      together += part;
      EXPECT_TRUE(part.back() == '\n' || together.size() == text.size()) << bytes;
    }
    EXPECT_EQ(together, text) << bytes;
  }
  EXPECT_TRUE(SplitLines("", 10).empty());
}

std::string Hop(int channel, const char* ends) {
  char number[16];
  std::snprintf(number, sizeof number, "%02d/1", channel);
  return Prefix(0) + "Channel " + number + " : " + ends + "\n";
}

TEST(NcclLogChunk, KeepsConnectionsThatDifferInTheirChannelAsOne) {
  constexpr const char* kSend = "0[0] -> 1[1] [send] via NET/IB/0/GDRDMA";
  constexpr const char* kReceive = "1[1] -> 0[0] [receive] via NET/IB/0/GDRDMA";
  const std::string text = Hop(0, kReceive) + Hop(0, kSend) + Hop(1, kReceive) + Hop(1, kSend) +
                           Hop(2, "0[0] -> 1[1] [send] via NET/IB/1/GDRDMA");
  NcclLogChunk chunk;
  chunk.Read(text);
  ASSERT_EQ(chunk.lines.size(), 3u);
  uint64_t bytes = 0;
  for (const NcclChunkLine& line : chunk.lines) bytes += line.line.bytes;
  EXPECT_EQ(bytes, text.size());
  EXPECT_EQ(chunk.line_count, 5u);
  ASSERT_EQ(chunk.connections.size(), 3u);
  EXPECT_EQ(chunk.connections[1].lines, 2u);
  EXPECT_TRUE(chunk.connections[1].channels.Has(0) && chunk.connections[1].channels.Has(1));
  EXPECT_EQ(chunk.connections[1].connection.from, 0);
  EXPECT_EQ(chunk.lines[1].line.number, 2u);
  EXPECT_EQ(chunk.connections[2].channels.Count(), 1);
}

TEST(NcclLogChunk, DoesNotJoinConnectionsAcrossOtherLinesOrThreads) {
  constexpr const char* kSend = "0[0] -> 1[1] [send] via NET/IB/0/GDRDMA";
  const std::string other_thread = "vm:100:101 [0] NCCL INFO Channel 01/1 : " + std::string(kSend) + "\n";
  NcclLogChunk chunk;
  chunk.Read(Hop(0, kSend) + InitLine(0, "COMPLETE") + Hop(1, kSend) + other_thread);
  EXPECT_EQ(chunk.lines.size(), 4u);
  EXPECT_EQ(chunk.connections.size(), 3u);
}

TEST(NcclLogImport, CountsConnectionsAndTheirChannelsHoweverTheFileIsCut) {
  std::string text = InitLine(0, "START") + InitLine(0, "COMPLETE");
  const size_t head = text.size();
  for (int channel = 0; channel < 8; ++channel) text += Hop(channel, "0[0] -> 1[1] [send] via NET/IB/0/GDRDMA");
  for (const size_t filler : {size_t{0}, kPart - head - 200}) {
    // Lines of nobody, so that the connections stand on both sides of a cut.
    std::string file = text.substr(0, head);
    while (file.size() < head + filler) file += "\n";
    file += text.substr(head);
    Fragment out;
    ReadNcclLog({"rank0.log", file}, out);
    ASSERT_EQ(out.rank_channels.size(), 1u);
    ASSERT_EQ(out.rank_channels[0].uses.size(), 1u);
    EXPECT_EQ(out.rank_channels[0].uses[0].channels.Count(), 8);
    int64_t told = 0;
    for (const Event& event : out.events)
      if (event.kind == EventKind::transport) told += event.As<PairTransport>().lines;
    EXPECT_EQ(told, 8);
    EXPECT_EQ(out.bytes.understood + out.bytes.ignored + out.bytes.not_understood, file.size());
    EXPECT_EQ(out.bytes.not_understood, 0u);
  }
}

TEST(NcclLogChunk, CountsLinesThatChangeNothing) {
  const std::string text = CallLine(0, 1) + Prefix(0) + "Connected all rings, use ring PXN 0 GDR 0\n" + CallLine(1, 1) +
                           Prefix(0) + "Connected all rings, use ring PXN 0 GDR 0\nhello\n\n";
  NcclLogChunk chunk;
  chunk.Read(text);
  EXPECT_EQ(chunk.lines.size(), 4u);  // calls, and what connects ranks; not words of others, nor nothing
  EXPECT_EQ(chunk.line_count, 6u);
  EXPECT_EQ(chunk.foreign_bytes, 6u);
  EXPECT_EQ(chunk.ignored_bytes, 1u);
  EXPECT_TRUE(chunk.lines[0].call_fits);
  EXPECT_EQ(chunk.lines[0].call.count, 1001);
}

TEST(NcclLogChunk, ForgetsThePartReadBefore) {
  NcclLogChunk chunk;
  chunk.Read(CallLine(0, 1) + "hello\n\n");
  chunk.Read("");
  EXPECT_TRUE(chunk.lines.empty());
  EXPECT_TRUE(chunk.writers.empty());
  EXPECT_EQ(chunk.bytes + chunk.ignored_bytes + chunk.foreign_bytes + chunk.line_count, 0u);
  EXPECT_FALSE(chunk.has_messages);
}

TEST(NcclLogImport, ReadsALargeFileInPartsAsIfInOne) {
  std::string text = InitLine(0, "START") + InitLine(1, "START") + InitLine(0, "COMPLETE") + InitLine(1, "COMPLETE");
  int calls = 0;
  while (text.size() < 5 * kPart) {
    ++calls;
    text += CallLine(0, calls) + CallLine(1, calls);
  }
  Fragment fragment;
  ReadNcclLog({"all.log", text, false}, fragment);
  EXPECT_EQ(fragment.bytes.understood, text.size());
  ASSERT_EQ(fragment.streams.size(), 2u);
  ASSERT_EQ(fragment.groups.size(), 1u);
  for (size_t s = 0; s < 2; ++s) {
    const CallStream& stream = fragment.streams[s];
    ASSERT_EQ(stream.calls.size(), static_cast<size_t>(calls));
    EXPECT_TRUE(stream.from_start);
    for (size_t i = 0; i < stream.calls.size(); ++i) {
      const Call& call = stream.calls[i];
      ASSERT_EQ(call.seq, i + 1);
      ASSERT_EQ(call.in_elements, static_cast<int64_t>(1001 + i));
      ASSERT_EQ(call.line, 5 + 2 * i + s);
      ASSERT_EQ(text.compare(call.offset, 7, s == 0 ? "vm:100:" : "vm:101:"), 0);
    }
  }
}

// The rows of the matrix stand in another part than the line that announces it.
TEST(NcclLogImport, FollowsAMessageOfSeveralLinesIntoTheNextPart) {
  const std::string announcement = Prefix(0) + "Enabled NCCL Func/Proto/Algo Matrix:\n";
  const std::string rows =
      "     Function |       LL     LL128    Simple\n    Broadcast |        1         1         1\n";
  for (const bool announced : {true, false}) {
    std::string text = CallLine(0, 1);
    text += std::string(kPart - text.size() - 10, 'x') + "\n" + (announced ? announcement : CallLine(0, 2));
    const size_t foreign = kPart - CallLine(0, 1).size() - 9;
    ASSERT_EQ(SplitLines(text + rows, kPart).size(), 2u);
    Fragment fragment;
    text += rows;
    ReadNcclLog({"all.log", text, false}, fragment);
    EXPECT_EQ(fragment.bytes.not_understood, foreign + (announced ? 0 : rows.size()));
    EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, text.size());
  }
}

}  // namespace
}  // namespace tacet
