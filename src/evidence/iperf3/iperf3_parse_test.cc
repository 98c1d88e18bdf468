// SPDX-License-Identifier: Apache-2.0
#include "evidence/iperf3/iperf3_parse.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/format.h"

namespace tacet {
extern const Format kIperf3Format;
namespace {

constexpr std::string_view kText =
    "Connecting to host 10.0.0.2, port 5201\n[  5] local 10.0.0.1 port 41234 connected to 10.0.0.2 port 5201\n"
    "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"
    "[  5]   0.00-1.00   sec  1.10 GBytes  9.41 Gbits/sec    0   1.50 MBytes       (omitted)\n"
    "[  5]   0.00-1.00   sec  1.10 GBytes  9.40 Gbits/sec    0   1.50 MBytes\n"
    "[  7]   0.00-1.00   sec  1.10 GBytes  9.44 Gbits/sec    3   1.50 MBytes\n"
    "[SUM]   0.00-1.00   sec  2.19 GBytes  18.8 Gbits/sec    3\n- - - - -\n"
    "[SUM]   0.00-1.00   sec  2.19 GBytes  18.8 Gbits/sec    3             sender\n"
    "[SUM]   0.00-1.04   sec  2.19 GBytes  18.4 Gbits/sec                  receiver\n\niperf Done.\n";

TEST(Iperf3Parse, SumsOfStreamsTakeThePlaceOfStreams) {
  const Iperf3Output out = ParseIperf3Text(kText);
  ASSERT_EQ(out.tests.size(), 1u);
  const Iperf3Test& test = out.tests[0];
  EXPECT_EQ(test.local, "10.0.0.1");
  EXPECT_EQ(test.remote, "10.0.0.2");
  ASSERT_EQ(test.rates.size(), 1u);
  EXPECT_NEAR(test.rates[0].gbs, 18.8 / 8, 1e-12);
  EXPECT_EQ(test.rates[0].retransmits, 3);
  EXPECT_NEAR(test.sent_gbs, 18.8 / 8, 1e-12);
  EXPECT_NEAR(test.received_gbs, 18.4 / 8, 1e-12);
  EXPECT_EQ(test.retransmits, 3);
  EXPECT_TRUE(test.concluded);
  EXPECT_EQ(out.not_understood, 0u);
}

TEST(Iperf3Parse, APairIsNamedByTheLineAbove) {
  const Iperf3Output out = ParseIperf3Text("# pair gpu1 gpu2\n" + std::string(kText));
  ASSERT_EQ(out.tests.size(), 1u);
  EXPECT_EQ(out.tests[0].local, "gpu1");
  EXPECT_EQ(out.tests[0].remote, "gpu2");
}

TEST(Iperf3Parse, TwoDirectionsAreTwoTests) {
  const Iperf3Output out = ParseIperf3Text(
      "[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd\n"
      "[  5][TX-C]   0.00-1.00   sec  1.0 GBytes  8.00 Gbits/sec    0   1.50 MBytes\n"
      "[  7][RX-C]   0.00-1.00   sec  0.5 GBytes  4.00 Gbits/sec\n"
      "[  5][TX-C]   0.00-1.00   sec  1.0 GBytes  8.00 Gbits/sec    0             sender\n"
      "[  7][RX-C]   0.00-1.00   sec  0.5 GBytes  4.00 Gbits/sec                  receiver\n");
  ASSERT_EQ(out.tests.size(), 2u);
  EXPECT_NEAR(out.tests[0].sent_gbs, 1.0, 1e-12);
  EXPECT_NEAR(out.tests[1].received_gbs, 0.5, 1e-12);
}

TEST(Iperf3Parse, DatagramsThatAreLostAreCounted) {
  const Iperf3Output out = ParseIperf3Text(
      "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n"
      "[  5]   0.00-10.00  sec  1.25 GBytes  1.07 Gbits/sec  0.011 ms  12/800 (1.5%)  receiver\n");
  ASSERT_EQ(out.tests.size(), 1u);
  EXPECT_EQ(out.tests[0].protocol, "UDP");
  EXPECT_NEAR(out.tests[0].lost_share, 0.015, 1e-12);
}

TEST(Iperf3Parse, JsonAndStreamSayTheSame) {
  const Iperf3Output json = ParseIperf3Json(
      R"({"start":{"connected":[{"local_host":"a","remote_host":"b"}],"version":"iperf 3.16","test_start":{"protocol":"TCP","num_streams":2,"reverse":1}},)"
      R"("intervals":[{"sum":{"start":0,"end":1,"bits_per_second":8e9,"retransmits":1,"omitted":false}},)"
      R"({"sum":{"start":1,"end":2,"bits_per_second":9e9,"omitted":true}}],)"
      R"("end":{"sum_sent":{"bits_per_second":8e9,"retransmits":1},"sum_received":{"bits_per_second":7.2e9}}})");
  const Iperf3Output stream = ParseIperf3Json(
      "{\"event\":\"start\",\"data\":{\"version\":\"iperf 3.17\"}}\n"
      "{\"event\":\"interval\",\"data\":{\"sum\":{\"start\":0,\"end\":1,\"bits_per_second\":8e9,\"retransmits\":1}}}\n"
      "{\"event\":\"end\",\"data\":{\"sum_sent\":{\"bits_per_second\":8e9},\"sum_received\":{\"bits_per_second\":7.2e9}"
      "}}\n");
  for (const Iperf3Output* out : {&json, &stream}) {
    ASSERT_EQ(out->tests.size(), 1u);
    ASSERT_EQ(out->tests[0].rates.size(), 1u);
    EXPECT_DOUBLE_EQ(out->tests[0].rates[0].gbs, 1.0);
    EXPECT_DOUBLE_EQ(out->tests[0].received_gbs, 0.9);
    EXPECT_TRUE(out->tests[0].concluded);
  }
  EXPECT_TRUE(json.tests[0].reverse);
}

TEST(Iperf3Parse, AnErrorIsKept) {
  const Iperf3Output text = ParseIperf3Text("iperf3: error - unable to connect to server: Connection refused\n");
  ASSERT_EQ(text.tests.size(), 1u);
  EXPECT_EQ(text.tests[0].error, "unable to connect to server: Connection refused");
  const Iperf3Output json =
      ParseIperf3Json(R"({"start":{"version":"iperf 3.16"},"intervals":[],"end":{},"error":"refused"})");
  EXPECT_EQ(json.tests.at(0).error, "refused");
}

TEST(Iperf3Parse, ACutTestIsToldAndItsIntervalsAreKept) {
  Fragment out;
  kIperf3Format.read({"i.txt", kText.substr(0, kText.find("- - -")), false}, out);
  ASSERT_EQ(out.benchmark_runs.size(), 1u);
  EXPECT_EQ(out.benchmark_runs[0].rates.size(), 1u);
  ASSERT_EQ(out.diagnostics.size(), 1u);
  EXPECT_EQ(out.diagnostics[0].code, "truncated");
}

TEST(Iperf3Parse, HostileRowsAreNoRows) {
  const Iperf3Output out = ParseIperf3Text(
      "[  5]   1.00-0.00   sec  1 GBytes  1 Gbits/sec\n[  5]   0.00-1.00   sec  nan GBytes  inf Gbits/sec\n[[[[\n[ "
      "5\n[  5] -\n");
  EXPECT_TRUE(out.tests.empty());
  EXPECT_TRUE(ParseIperf3Text("").tests.empty());
  EXPECT_TRUE(ParseIperf3Json("").tests.empty());
}

}  // namespace
}  // namespace tacet
