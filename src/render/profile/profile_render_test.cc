// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/json_reader.h"
#include "render/profile/comparison_render.h"
#include "render/profile/perfetto_export.h"
#include "render/profile/profile_csv.h"
#include "render/profile/profile_json.h"
#include "render/profile/profile_text.h"
#include "render/profile/profile_words.h"
#include "render/profile/sample_profile.h"
#include "report/profile/recorded_profile.h"

namespace tacet {
namespace {

JsonValue ParseProfile(const std::string& text) {
  JsonValue value;
  bool truncated = false;
  EXPECT_TRUE(ParseJson(text, &value, &truncated));
  EXPECT_FALSE(truncated);
  return value;
}

TEST(ProfileText, PrintsThePipelineAndItsBubbles) {
  const std::string text = RenderProfileText(ProfileCase("gpt_pp"), {});
  EXPECT_TRUE(text.starts_with("PIPELINE BUBBLE\n"));
  EXPECT_NE(text.find("4 stages, 8 microbatches"), std::string::npos);
  EXPECT_NE(text.find("27.3 % theoretical"), std::string::npos);
  EXPECT_NE(text.find("Time budget"), std::string::npos);
}

TEST(ProfileHeading, CommunicationThatMostlyWaitsForANamedRankIsAStraggler) {
  ProfileReport profile;
  profile.verdict = ProfileVerdict::communication_bound;
  profile.wait_share = 0.6;
  EXPECT_EQ(HeadingWord(profile), "communication-bound");  // nobody is named
  profile.stragglers.stragglers.emplace_back();
  EXPECT_EQ(HeadingWord(profile), "straggler");
  profile.wait_share = 0.4;
  EXPECT_EQ(HeadingWord(profile), "communication-bound");
  profile.wait_share = 0.6;
  profile.verdict = ProfileVerdict::host_bound;
  EXPECT_EQ(HeadingWord(profile), "host-bound");
}

TEST(ComparisonJunit, HoldsNothingThatXmlCannot) {
  ProfileComparison comparison;
  ComparisonLine line;
  line.name = "all_reduce on <evil> \xef\xbf\xbf \x1b";
  line.count_a = line.count_b = 3;
  line.kind = ChangeKind::slower;
  comparison.lines = {line};
  const std::string xml = RenderComparisonJunit(comparison, true);
  EXPECT_NE(xml.find("all_reduce on &lt;evil&gt; \\uffff \\x1b"), std::string::npos) << xml;
  EXPECT_EQ(xml.find("\xef\xbf\xbf"), std::string::npos);
}

TEST(ProfileText, EscapesWhatTheFilesSay) {
  ProfileReport profile;
  ProfileTableRow line;
  line.group = "evil\x1b[31m";
  line.members = "also\x1b[31m";
  line.row.calls = 1;
  profile.table.push_back(line);
  profile.table_by_role.push_back(line);
  profile.experts.found = true;
  profile.expert_group = line.group;
  for (const bool verbose : {false, true}) {
    const std::string text = RenderProfileText(profile, {.verbose = verbose});
    EXPECT_NE(text.find("evil"), std::string::npos);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
}

TEST(ProfileText, FitsThePage) {
  for (const char* name : {"gpt_pp", "gpt_pp_heavy", "gpt_ddp_b1", "gpt_fsdp", "mesh_clean", "straggler", "sizes"}) {
    const std::string text = RenderProfileText(ProfileCase(name), {.width = 100});
    for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      EXPECT_LE(end - begin, 100u) << name << ": " << text.substr(begin, end - begin);
    }
  }
}

TEST(ProfileText, KeepsAFewGroupsOfOneRoleApart) {
  const ProfileReport profile = ProfileCase("mesh_clean");
  for (const bool verbose : {false, true}) {
    const std::string text = RenderProfileText(profile, {.verbose = verbose});
    for (const char* cells : {"mesh_tp  all_reduce  1 MiB  0-1 ", "mesh_tp  all_reduce  1 MiB  6-7 ",
                              "mesh_dp  all_reduce  4 MiB  0,2,4,6 "})
      EXPECT_NE(text.find(cells), std::string::npos) << text;
  }
}

TEST(ProfileText, SumsManyGroupsOfOneRoleUp) {
  ProfileReport profile;
  ProfileTableRow line;
  line.group = "mesh_tp";
  line.groups = 32;
  line.row.calls = 1;
  profile.table = profile.table_by_role = {line};
  EXPECT_NE(RenderProfileText(profile, {}).find("mesh_tp x32"), std::string::npos);
}

TEST(ProfileText, TellsTheBalanceOfAllToAlls) {
  ProfileReport profile;
  profile.experts = {.found = true, .ranks = 2, .calls = 4, .sized = true, .imbalance = 2.5};
  profile.experts.members = {{{0}, 1000, 1000, 2'000'000, 0}, {{1}, 1000, 5000, 2'000'000, 1'000'000}};
  profile.expert_group = "ep";
  const std::string text = RenderProfileText(profile, {});
  EXPECT_NE(text.find("the busiest rank receives 2.50 times the mean in a single call"), std::string::npos) << text;
  EXPECT_LT(text.find("\n  1     1000 B"), text.find("\n  0     1000 B")) << text;  // the busiest first
}

TEST(ProfileText, CallsABalanceUnknownWithoutWhatIsReceived) {
  ProfileReport profile;
  profile.experts = {.found = true, .ranks = 2, .calls = 4, .sized = true};
  profile.experts.members = {{{1}, 1000, -1, 2'000'000, 0}};
  EXPECT_EQ(RenderProfileText(profile, {}).find("busiest"), std::string::npos) << "one rank is the mean";
  profile.experts.members = {{{0}, 1000, -1, 2'000'000, 0}, {{1}, 1000, -1, 2'000'000, 1'000'000}};
  profile.expert_group = "ep";
  const std::string text = RenderProfileText(profile, {.width = 200});
  EXPECT_NE(text.find("so the balance is unknown"), std::string::npos) << text;
  EXPECT_EQ(text.find("would save"), std::string::npos) << text;
  EXPECT_EQ(text.find("RECEIVED"), std::string::npos) << text;
}

TEST(ProfileWords, GiveTheFiguresOfAColumnTheSameDigits) {
  EXPECT_EQ(DescribeRate(0.3), "0.300");
  EXPECT_EQ(DescribeRate(23), "23.0");
  EXPECT_EQ(DescribeRate(150.2), "150");
  EXPECT_EQ(DescribeRate(0.0528), "0.0528");
  EXPECT_EQ(DescribeRate(0.00263), "0.0026");
  EXPECT_EQ(DescribeRate(0.0001), "< 0.001");
  EXPECT_EQ(DescribeFlops(6.05e7), "60.5 MFLOP");
  EXPECT_EQ(DescribeFlops(2.14e12), "2.14 TFLOP");
  EXPECT_EQ(DescribeSmallShare(0.0001), "< 0.1 %");
  EXPECT_EQ(DescribeSmallShare(0), "0.0 %");
}

TEST(ProfileWords, CountBytesInPowersOfTwo) {
  EXPECT_EQ(DescribeSize(1000), "1000 B");
  EXPECT_EQ(DescribeSize(1536), "1.5 KiB");
  EXPECT_EQ(DescribeSize(25 << 20), "25.0 MiB");
  EXPECT_EQ(DescribeSize(750'780'416), "716 MiB");
  EXPECT_EQ(DescribeSize((int64_t{1} << 30) - 1), "1.0 GiB");
}

TEST(ProfileText, WhatIsCertainAndWhatItCostsAreTwoThings) {
  const std::string text = RenderProfileText(SampleProfile(4, 3), {.colour = false, .width = 200, .verbose = false});
  EXPECT_NE(text.find("saves about 20.0 % of the step (95 % interval 0.0 % to 35.0 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("cost: 20.0 % of every rank's step (95 % interval 0.0 % to 35.0 %);"), std::string::npos) << text;
  EXPECT_NE(text.find("CONFIDENCE: that the rank is late, not how much it costs"), std::string::npos) << text;
  EXPECT_LT(text.find("All ranks share one GPU"), text.find("What would save most")) << text;
  EXPECT_EQ(text.find(" MB"), std::string::npos) << text;  // one kind of unit in a table
}

TEST(ProfileText, FlagsAUtilisationThatCannotBe) {
  ProfileReport profile = SampleProfile(4, 3);
  profile.utilisation = ProfileUtilisation{"model size", 275.67, 275.67, 1e18, 989};
  const std::string text = RenderProfileText(profile, {.colour = false, .width = 100, .verbose = false});
  EXPECT_NE(text.find("MFU would be 27567 % of 989 TFLOP/s, which is impossible"), std::string::npos) << text;
  profile.utilisation = ProfileUtilisation{"model size", 0.41, 0.55, 1e15, 989};
  EXPECT_NE(
      RenderProfileText(profile, {.colour = false, .width = 100, .verbose = false}).find("MFU 41.0 %, HFU 55.0 %"),
      std::string::npos);
}

TEST(ProfileText, ShowsNoNegativeZeroAndNoWaitThatIsUnknown) {
  EXPECT_EQ(DescribeFactor(-0.0001), "0.00");
  EXPECT_EQ(DescribeFactor(-0.01), "-0.01");
  ProfileReport profile = SampleProfile(4, 3);
  EXPECT_NE(RenderProfileText(profile, {.colour = false, .width = 100, .verbose = false}).find("12.0 ms"),
            std::string::npos);
  profile.table[0].row.compared = profile.table_by_role[0].row.compared = 0;
  EXPECT_EQ(RenderProfileText(profile, {.colour = false, .width = 100, .verbose = false}).find("12.0 ms"),
            std::string::npos);
}

TEST(ProfileText, ExplainsEveryNumber) {
  const std::string text = RenderDefinitions(80);
  for (const Definition& one : ProfileDefinitions()) EXPECT_NE(text.find(one.name), std::string::npos);
}

TEST(ProfileJson, HoldsBudgetsThatSumToTheStep) {
  const JsonValue root = ParseProfile(RenderProfileJson({ProfileCase("gpt_ddp_b25")}));
  EXPECT_EQ(root.Find("schema")->Text(), "tacet.profile.v1");
  ASSERT_EQ(root.Find("jobs")->items.size(), 1u);
  const JsonValue& job = root.Find("jobs")->items[0];
  ASSERT_EQ(job.Find("ranks")->items.size(), 4u);
  for (const JsonValue& rank : job.Find("ranks")->items) {
    const JsonValue& budget = *rank.Find("budget");
    int64_t sum = 0;
    for (const char* key : {"compute_only_ns", "hidden_ns", "exposed_ns", "copies_ns", "idle_ns"})
      sum += budget.Find(key)->Int();
    EXPECT_EQ(sum, budget.Find("step_ns")->Int());
    EXPECT_GT(sum, 0);
  }
  EXPECT_EQ(job.Find("ddp")->Find("buckets")->items.size(), 4u);
  EXPECT_EQ(job.Find("fsdp")->kind, JsonValue::Kind::null);
}

TEST(ProfileCsv, QuotesAndDisarmsCells) {
  ProfileReport profile;
  ProfileTableRow line;
  line.group = "=cmd,\"x\"";
  profile.table.push_back(line);
  const std::string csv = RenderProfileCsv({profile});
  EXPECT_NE(csv.find("communication,,\"'=cmd,\"\"x\"\"\",-1,"), std::string::npos) << csv;
}

TEST(ProfileCsv, HasALineForEveryRowAndRank) {
  const ProfileReport profile = ProfileCase("gpt_fsdp");
  const std::string csv = RenderProfileCsv({profile});
  EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')), 3 + profile.table.size() + 4);
}

TEST(PerfettoExport, JoinsEveryOperationByFlows) {
  const std::vector<Incident> jobs = LoadCase("gpt_ddp_b25");
  std::string text;
  size_t pieces = 0;
  ASSERT_TRUE(ExportPerfetto(jobs, [&](std::string_view bytes) {
    text += bytes;
    ++pieces;
    return true;
  }));
  const JsonValue root = ParseProfile(text);
  std::map<int64_t, std::vector<const JsonValue*>> flows;
  std::map<int64_t, size_t> waits, transfers, kernels;
  for (const JsonValue& event : root.Find("traceEvents")->items) {
    const std::string_view phase = event.Find("ph")->Text();
    const int64_t process = event.Find("pid")->Int();
    if (phase == "s" || phase == "f") flows[event.Find("id")->Int()].push_back(&event);
    if (phase != "X") continue;
    EXPECT_GE(event.Find("ts")->Double(), 0);
    EXPECT_GE(event.Find("dur")->Double(), 0);
    const JsonValue* colour = event.Find("cname");
    if (!colour) {
      ++kernels[process];
    } else {
      ++(colour->Text() == "terrible" ? waits : transfers)[process];
    }
  }
  // Two steps of four buckets on four ranks; three flows join four members.
  EXPECT_EQ(flows.size(), 2u * 4 * 3);
  for (const auto& [id, ends] : flows) {
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(ends[0]->Find("ph")->Text(), "s");
    EXPECT_EQ(ends[1]->Find("ph")->Text(), "f");
    EXPECT_NE(ends[0]->Find("pid")->Int(), ends[1]->Find("pid")->Int());
  }
  for (int64_t process = 1; process <= 4; ++process) {
    EXPECT_EQ(transfers[process], 8u);
    EXPECT_LE(waits[process], 8u);
    EXPECT_GT(kernels[process], 100u);
  }
}

// Kernels of a graph may overlap on one stream; Perfetto drops slices that overlap on one track.
TEST(PerfettoExport, WhatOverlapsGetsALaneOfItsOwn) {
  std::vector<Incident> jobs(1);
  Timeline& timeline = jobs[0].timelines.emplace_back();
  timeline.rank = {0};
  timeline.streams = {{0, 7}};
  for (const auto& [start, end] : {std::pair(1000, 5000), std::pair(2000, 3000), std::pair(6000, 6500)}) {
    GpuEvent event;
    event.start_ns = start;
    event.end_ns = end;
    event.name = timeline.names.Intern("kernel");
    timeline.gpu.push_back(event);
  }
  timeline.begin_ns = 1000;
  std::string text;
  ASSERT_TRUE(ExportPerfetto(jobs, [&](std::string_view bytes) { return text += bytes, true; }));
  std::map<int64_t, size_t> slices;
  std::map<int64_t, std::string> names;
  const JsonValue root = ParseProfile(text);
  for (const JsonValue& event : root.Find("traceEvents")->items) {
    if (event.Find("ph")->Text() == "X") ++slices[event.Find("tid")->Int()];
    if (event.Find("name")->Text() == "thread_name")
      names[event.Find("tid")->Int()] = event.Find("args")->Find("name")->Text();
  }
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices.begin()->second, 2u);
  EXPECT_EQ(names[slices.begin()->first], "GPU 0 stream 7");
  EXPECT_EQ(names[slices.rbegin()->first], "GPU 0 stream 7 (2)");
}

TEST(PerfettoExport, StopsWhenTheSinkIsFull) {
  const std::vector<Incident> jobs = LoadCase("gpt_ddp_b25");
  EXPECT_FALSE(ExportPerfetto(jobs, [](std::string_view) { return false; }));
}

ProfileReport WithSteps(std::vector<double> values) {
  ProfileReport profile;
  profile.series.push_back({"step time", std::move(values)});
  return profile;
}

TEST(ProfileCsv, HasATableOfReplaysWhereThereIsOne) {
  ProfileReport profile;
  EXPECT_EQ(RenderProfileCsv({profile}).find("what_if"), std::string::npos);
  WhatIfReport& replay = profile.what_if.emplace_back();
  replay.valid = true;
  replay.slowdown = 1.5;
  replay.by_operation = {{"forward-compute", 1.25}};
  replay.by_dp_rank = {1.5, std::numeric_limits<double>::quiet_NaN()};
  replay.by_stage = {1.5};
  const std::string csv = RenderProfileCsv({profile});
  EXPECT_NE(csv.find("what_if,,all,all,1.5\r\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("what_if,,operation,forward-compute,1.25\r\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("what_if,,data_parallel_rank,0,1.5\r\n"), std::string::npos) << csv;
  EXPECT_EQ(csv.find("data_parallel_rank,1"), std::string::npos) << "it was not recorded";
}

TEST(ComparisonRender, ShowsSizeClassesAndFaults) {
  ProfileComparison comparison;
  comparison.headline = "B: all_reduce computes wrong results";
  comparison.faults = {comparison.headline, "B: broadcast stopped with an error: x < y"};
  ComparisonLine line;
  line.name = "all_reduce above 4 MiB, 6 sizes";
  line.count_a = line.count_b = 6;
  line.kind = ChangeKind::none;
  line.summary = true;
  comparison.lines = {line};
  const std::string text = RenderComparisonText(comparison, 100, false, false);
  EXPECT_TRUE(text.starts_with(comparison.headline));
  EXPECT_EQ(text.find(comparison.headline, 1), std::string::npos) << "said once";
  EXPECT_NE(text.find("broadcast stopped"), std::string::npos);
  EXPECT_NE(text.find(line.name), std::string::npos);
  const std::string junit = RenderComparisonJunit(comparison, false);
  EXPECT_NE(junit.find("tests=\"3\" failures=\"2\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("x &lt; y"), std::string::npos);
  EXPECT_TRUE(comparison.Regressed(false));
}

TEST(ComparisonRender, SaysNoSignificantDifferenceForNoise) {
  const auto noise = CompareProfiles(WithSteps({1e8, 1.04e8, 9.8e7}), WithSteps({1.02e8, 9.9e7, 1.03e8}), {});
  EXPECT_TRUE(RenderComparisonText(noise, 100, false, false).starts_with("step time: no significant difference"));
  EXPECT_EQ(RenderComparisonJunit(noise, false).find("<failure"), std::string::npos);
}

TEST(ComparisonRender, FailsTheTestCaseOfASlowerStep) {
  ProfileReport slow = WithSteps({2.01e8, 2e8, 2.02e8});
  slow.series.push_back({"a <b> & \"c\"", {1, 2}});
  ProfileReport fast = WithSteps({1e8, 1.01e8, 0.99e8});
  fast.series.push_back({"a <b> & \"c\"", {1, 2}});
  const auto comparison = CompareProfiles(fast, slow, {});
  const std::string junit = RenderComparisonJunit(comparison, false);
  EXPECT_NE(junit.find("tests=\"2\" failures=\"1\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("a &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(junit.find(", p "), std::string::npos) << junit;  // of the step time, which is tested by itself
  const JsonValue json = ParseProfile(RenderComparisonJson(comparison));
  EXPECT_EQ(json.Find("schema")->Text(), "tacet.compare.v1");
  EXPECT_TRUE(json.Find("regressed")->boolean);
  EXPECT_EQ(json.Find("lines")->items[0].Find("result")->Text(), "slower");
}

}  // namespace
}  // namespace tacet
