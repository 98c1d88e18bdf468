// SPDX-License-Identifier: Apache-2.0
// TACET_JSON_DIR and TACET_PROM_DIR.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "evidence/inspector/inspector_import.h"
#include "tests/plugin/box_reading.h"
#include "tests/plugin/hand_events.h"

namespace tacet::fake {
namespace {

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string TextOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A process with one communicator that runs some collectives and transfers.
struct Worker {
  explicit Worker(const char* name = "dp \"group\"\\1") : plugin(LoadedPlugin::Open(PluginPath(), 6)) {
    comm.plugin = &plugin;
    comm.pid = getpid();
    comm.hash = 0x7f8c496ae9f661;
    int mask = 0;
    plugin.Init(&comm.context, &mask, {comm.hash, name, 2, 4, 2});
  }
  void Run(int times, uint64_t count = 1 << 20) {
    CollFacts facts;
    facts.count = count;
    for (int i = 0; i < times; ++i) comm.RunCollective(facts, 2, true);
  }
  void RunTransfer() {
    CollFacts facts;
    facts.func = "Send";
    facts.count = 1000;
    facts.peer = 3;
    facts.channels = 1;
    EventDescriptor call(6, kP2pApi, nullptr, 0);
    void* api = comm.Start(call.P2pApi(facts));
    comm.Stop(api);
    EventDescriptor task(6, kP2p, api, 2);
    void* p2p = comm.Start(task.P2p(facts, "", 0));
    comm.Stop(p2p);
    comm.RunKernel(p2p, 1);
  }
  // The last finalize waits half a second at most for the keeper to write; on a busy machine that may be too short.
  void Finish() {
    for (int tries = 0; tries < 20; ++tries) {
      const auto begin = std::chrono::steady_clock::now();
      plugin.Finalize(comm.context);
      if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(450)) return;
      int mask = 0;
      plugin.Init(&comm.context, &mask, {comm.hash, "again", 2, 4, 2});
    }
  }
  LoadedPlugin plugin;
  HandComm comm;
};

TEST(Json, HasInspectorsKeysInItsOrder) {
  const BoxFolder folder;
  const std::string json = folder.path() + "/deep/json";
  EXPECT_EQ(RunInChild(folder,
                       [] {
                         Worker worker;
                         worker.Run(3);
                         worker.RunTransfer();
                         worker.Finish();  // writes what is finished before it returns
                         _exit(0);
                       },
                       {{"TACET_JSON_DIR", json}, {"TACET_HEARTBEAT_MS", "60000"}}),
            0);
  const auto files = FilesIn(json);
  ASSERT_EQ(files.size(), 1u);
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  EXPECT_EQ(files[0].rfind(json + "/" + host + "-pid", 0), 0u);
  const auto lines = LinesOf(TextOf(files[0]));
  ASSERT_EQ(lines.size(), 4u);
  const char* const keys[] = {
      "{\"header\":{\"id\":\"0x7f8c496ae9f661\",\"comm_name\":\"dp "
      "\\\"group\\\"\\\\1\",\"rank\":2,\"n_ranks\":4,\"nnodes\":2}",
      ",\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"",
      "\",\"rec_mechanism\":\"nccl_profiler_interface\"",
      ",\"dump_timestamp_us\":",
      ",\"hostname\":\"",
      "\",\"pid\":",
      "},\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":0",
      ",\"coll_msg_size_bytes\":4194304",
      ",\"coll_exec_time_us\":",
      ",\"coll_timing_source\":\"kernel_gpu\"",
      ",\"coll_algobw_gbs\":",
      ",\"coll_busbw_gbs\":",
      ",\"event_trace_ts\":{\"coll_start_ts\":",
      ",\"coll_stop_ts\":",
      ",\"kernel_events\":[{\"channel_id\":0,\"kernel_start_ts\":",
      ",\"kernel_stop_ts\":",
      ",\"kernel_record_ts\":",
      "}]}}}"};
  size_t at = 0;
  for (const char* key : keys) {
    const size_t found = lines[0].find(key, at);
    ASSERT_NE(found, std::string::npos) << key << " in " << lines[0];
    at = found + std::string(key).size();
  }
  EXPECT_EQ(at, lines[0].size());
  EXPECT_NE(lines[3].find("\"p2p_perf\":{\"p2p\":\"Send\",\"p2p_sn\":1,\"p2p_peer\":3,\"p2p_msg_size_bytes\":4000,"
                          "\"p2p_exec_time_us\":"),
            std::string::npos)
      << lines[3];
}

int64_t WallNow() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

TEST(Json, IsReadAsInspectorOutput) {
  const BoxFolder folder;
  const std::string json = folder.path() + "/json";
  RunHost("--ranks 2 --steps 12 --network --mix mixed", folder, {{"TACET_JSON_DIR", json}});
  const auto files = FilesIn(json);
  ASSERT_EQ(files.size(), 2u);
  for (const std::string& path : files) {
    const std::string text = TextOf(path);
    Fragment fragment;
    ImportInspector({path, text}, fragment);
    EXPECT_EQ(fragment.bytes.not_understood, 0u);
    ASSERT_EQ(fragment.measurements.size(), 12u);
    EXPECT_EQ(fragment.measurements[1].op, OpKind::all_gather);
    EXPECT_EQ(fragment.measurements[0].comm & 0xffffff, 0xc0ffeeu);
    int64_t before = WallNow() - 60'000'000'000;
    for (const Measurement& one :
         fragment.measurements) {  // issued in order, begun and ended after that, in this minute
      EXPECT_FALSE(one.enter_is_estimate);
      EXPECT_GE(one.enter_wall_ns, before);
      EXPECT_GE(one.start_wall_ns, one.enter_wall_ns);
      EXPECT_GE(one.finish_wall_ns, one.start_wall_ns);
      before = one.enter_wall_ns;
    }
    EXPECT_LE(before, WallNow());
  }
}

TEST(Json, SmallMessagesCanBeLeftOut) {
  const BoxFolder folder;
  const std::string json = folder.path() + "/json";
  RunInChild(folder,
             [] {
               Worker worker;
               worker.Run(5, 10);
               worker.Run(2, 100000);
             },
             {{"TACET_JSON_DIR", json}, {"TACET_JSON_MIN_BYTES", "8192"}});
  EXPECT_EQ(LinesOf(TextOf(FilesIn(json).at(0))).size(), 2u);
}

TEST(Json, WorksWithoutABox) {
  const BoxFolder folder;
  const std::string json = folder.path() + "/json";
  EXPECT_EQ(RunInChild(folder, [] { Worker().Run(5); }, {{"TACET_JSON_DIR", json}, {"TACET_BOX_MB", "0"}}), 0);
  EXPECT_EQ(LinesOf(TextOf(FilesIn(json).at(0))).size(), 5u);
  EXPECT_TRUE(ReadBoxes(folder.path()).empty());
}

// The file size limit stands in for a full disk: the write comes back short, then fails.
TEST(Json, FullDiskLosesWholeLinesAndCountsThem) {
  const BoxFolder folder;
  const std::string json = folder.path() + "/json";
  EXPECT_EQ(RunInChild(folder,
                       [] {
                         Worker worker;
                         const rlimit little{20000, 20000};
                         setrlimit(RLIMIT_FSIZE, &little);
                         worker.Run(400);
                         worker.Finish();
                         _exit(0);
                       },
                       {{"TACET_JSON_DIR", json}, {"TACET_HEARTBEAT_MS", "60000"}, {"TACET_BOX_KB", "1024"}}),
            0);
  const std::string text = TextOf(FilesIn(json).at(0));
  EXPECT_TRUE(text.empty() || text.back() == '\n');
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 1u);
  const uint64_t lost = boxes[0].box.header.drops[static_cast<int>(box::Drop::output_lost)];
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(lost + LinesOf(text).size(), 400u);
}

TEST(Outputs, NoPermissionLeavesTheJobAlone) {
  const BoxFolder folder;
  EXPECT_EQ(
      RunInChild(folder,
                 [] {
                   Worker worker;
                   worker.Run(50);
                   worker.Finish();
                 },
                 {{"TACET_JSON_DIR", "/proc/nowhere"}, {"TACET_PROM_DIR", "/proc/nowhere"}, {"TACET_BOX_KB", "256"}}),
      0);
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_GE(boxes[0].box.header.drops[static_cast<int>(box::Drop::output_lost)], 50u);
}

TEST(Outputs, ForkedChildDoesNotWriteTheParentsFiles) {
  const BoxFolder folder;
  const std::string json = folder.path() + "/json";
  EXPECT_EQ(RunInChild(folder,
                       [] {
                         Worker worker;
                         worker.Run(5);
                         if (const pid_t child = fork(); child == 0) {
                           worker.Run(5);
                           std::exit(0);
                         }
                         usleep(100000);
                         worker.Run(5);
                       },
                       {{"TACET_JSON_DIR", json}, {"TACET_HEARTBEAT_MS", "20"}}),
            0);
  ASSERT_EQ(FilesIn(json).size(), 1u);
  EXPECT_EQ(LinesOf(TextOf(FilesIn(json)[0])).size(), 10u);
}

bool HoldsPromFile(const std::string& folder) {
  const auto files = std::filesystem::exists(folder) ? FilesIn(folder) : std::vector<std::string>();
  return std::any_of(files.begin(), files.end(), [](const std::string& file) { return file.ends_with(".prom"); });
}

// Runs a worker with a Prometheus file and gives the file as it was before the process ended.
std::string PromText(const BoxFolder& folder, const std::function<void(Worker&)>& work, const Environment& more = {}) {
  const std::string prom = folder.path() + "/prom";
  // Written once, with all that happened, when the last communicator ends.
  Environment environment = {{"TACET_PROM_DIR", prom},
                             {"RANK", "2"},
                             {"SLURM_JOB_ID", "4711"},
                             {"TACET_BOX_KB", "512"},
                             {"TACET_PROM_INTERVAL_MS", "3600000"}};
  environment.insert(more.begin(), more.end());
  const mode_t before = umask(077);
  RunInChild(
      folder,
      [&] {
        Worker worker;
        work(worker);
        // The job does not wait long for the keeper; the test does. Asked twice, a keeper that is late writes a second
        // file, without what stood in the first.
        worker.plugin.Finalize(worker.comm.context);
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!HoldsPromFile(prom) && std::chrono::steady_clock::now() < limit) usleep(5000);
        _exit(0);
      },
      environment);
  umask(before);
  const auto files = FilesIn(prom);
  EXPECT_EQ(files.size(), 1u);
  if (files.empty()) return "";
  struct stat seen {};
  EXPECT_EQ(stat(files[0].c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777, 0644u);  // readable for node_exporter under any umask
  EXPECT_TRUE(files[0].ends_with(".prom"));
  return TextOf(files[0]);
}

TEST(Prom, HasInspectorsNamesAndLabels) {
  const BoxFolder folder;
  const std::string text = PromText(folder, [](Worker& worker) {
    worker.Run(3);
    worker.RunTransfer();
  });
  EXPECT_NE(text.find("\nnccl_bus_bandwidth_gbs{version=\"v5.1\",slurm_job_id=\"4711\",node=\""), std::string::npos)
      << text;
  EXPECT_NE(text.find("comm_name=\"dp "
                      "\\\"group\\\"\\\\1\",n_nodes=\"2\",nranks=\"4\",collective=\"AllReduce\",message_size=\"4-5MB\","
                      "algo_proto=\"RING_SIMPLE\",rank=\"2\"} "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("p2p_operation=\"Send\",message_size=\"3-4KB\",rank=\"2\"} "), std::string::npos) << text;
  for (const char* name :
       {"nccl_bus_bandwidth_gbs", "nccl_collective_exec_time_microseconds", "nccl_p2p_bus_bandwidth_gbs",
        "nccl_p2p_exec_time_microseconds", "tacet_operations_in_flight"}) {
    EXPECT_NE(text.find(std::string("# HELP ") + name + " "), std::string::npos);
    EXPECT_NE(text.find(std::string("# TYPE ") + name + " gauge\n"), std::string::npos);
  }
  EXPECT_NE(text.find("tacet_operations_finished_total{slurm_job_id=\"4711\""), std::string::npos);
}

TEST(Prom, EveryFamilyStandsTogetherAndEverySampleOnce) {
  const BoxFolder folder;
  const std::string text = PromText(folder, [](Worker& worker) {
    for (int i = 0; i < 30; ++i) worker.Run(1, uint64_t{1} << i);
  });
  std::set<std::string> families, samples;
  std::string current;
  for (const std::string& line : LinesOf(text)) {
    if (line.starts_with("# HELP ")) {
      current = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(current).second) << current;
    }
    if (line.starts_with("#")) continue;
    EXPECT_EQ(line.substr(0, line.find('{')), current);
    EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_GT(samples.size(), 60u);
}

std::string OutputOf(const std::string& command, int* status = nullptr) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string output;
  char buffer[512];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
  const int ended = pipe == nullptr ? -1 : pclose(pipe);
  if (status != nullptr) *status = WEXITSTATUS(ended);
  return output;
}
bool HasProgram(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

// Inspector's own names break promtool's rules of style (microseconds); ours must not, and nothing may break the
// format.
TEST(Prom, PassesPromtool) {
  if (!HasProgram("promtool")) GTEST_SKIP() << "no promtool here";
  const BoxFolder folder;
  const std::string text = PromText(folder, [](Worker& worker) {
    worker.Run(10);
    worker.RunTransfer();
  });
  const std::string path = folder.path() + "/metrics";
  std::ofstream(path) << text;
  int status = -1;
  const std::string complaints = OutputOf("promtool check metrics < " + path, &status);
  EXPECT_TRUE(status == 0 || status == 3) << status << complaints;  // 3: style only
  for (const std::string& line : LinesOf(complaints))
    EXPECT_TRUE(line.starts_with("nccl_") && line.find("microseconds") != std::string::npos) << line;
}

TEST(Prom, NodeExporterServesRanksThatShareAGpu) {
  if (!HasProgram("prometheus-node-exporter") || !HasProgram("curl")) GTEST_SKIP() << "no node_exporter here";
  const BoxFolder folder;
  const std::string prom = folder.path() + "/prom";
  for (const char* rank : {"0", "1"})
    RunInChild(folder,
               [] {
                 Worker worker;
                 worker.Run(3);
                 worker.Finish();
                 _exit(0);
               },
               {{"TACET_PROM_DIR", folder.path() + "/prom-" + rank}, {"RANK", rank}, {"TACET_BOX_KB", "256"}});
  std::filesystem::create_directory(prom);  // kept apart so that the second does not sweep the dead first
  for (const char* rank : {"0", "1"})
    for (const std::string& path : FilesIn(folder.path() + "/prom-" + rank))
      std::filesystem::copy(path, prom + "/" + rank + ".prom");
  const std::string port = std::to_string(20000 + getpid() % 20000);
  const std::string served = OutputOf(
      "prometheus-node-exporter --collector.disable-defaults --collector.textfile --collector.textfile.directory=" +
      prom + " --web.listen-address=127.0.0.1:" + port +
      " >/dev/null 2>&1 & exporter=$!; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; "
      "curl -s -o " +
      folder.path() + "/scrape http://127.0.0.1:" + port + "/metrics && break; done; kill $exporter; cat " +
      folder.path() + "/scrape");
  EXPECT_NE(served.find("node_textfile_scrape_error 0"), std::string::npos) << served;
  int series = 0;
  for (const std::string& line : LinesOf(served)) series += line.starts_with("nccl_bus_bandwidth_gbs{");
  EXPECT_EQ(series, 2) << served;
}

TEST(Prom, CardinalityIsBounded) {
  const BoxFolder folder;
  const std::string text = PromText(folder, [](Worker& worker) {
    for (uint64_t kb = 1; kb <= 900; ++kb) worker.Run(1, kb * 256);
  });
  int series = 0;
  for (const std::string& line : LinesOf(text)) series += line.starts_with("nccl_bus_bandwidth_gbs{");
  EXPECT_EQ(series, 512);
}

TEST(Prom, FileGoesWithTheProcessAndDeadOnesAreSwept) {
  const BoxFolder folder;
  const std::string prom = folder.path() + "/prom";
  const Environment environment = {{"TACET_PROM_DIR", prom},
                                   {"TACET_BOX_KB", "256"},
                                   {"TACET_HEARTBEAT_MS", "20"},
                                   {"TACET_PROM_INTERVAL_MS", "100"}};
  RunInChild(
      folder,
      [] {
        Worker worker;
        worker.Run(3);
        usleep(300000);
        _exit(0);  // as if killed, perhaps while the next version of the file is written
      },
      environment);
  const auto left = FilesIn(prom);
  ASSERT_EQ(std::count_if(left.begin(), left.end(), [](const std::string& one) { return one.ends_with(".prom"); }), 1);
  RunInChild(
      folder,
      [] {
        Worker worker;
        worker.Run(3);
        usleep(300000);
      },
      environment);
  EXPECT_TRUE(FilesIn(prom).empty());
}

}  // namespace
}  // namespace tacet::fake
