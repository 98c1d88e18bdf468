// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/file_limit.h"
#include "cli/memory_pools.h"
#include "cli/options.h"
#include "cli/stop_signal.h"
#include "cli/web_options.h"
#include "live/agent/agent.h"

namespace tacet {

extern const Command kAgentCommand;
namespace {

Result<HistoryOptions> ReadHistoryOptions(const std::string& url) {
  auto address = ParseClickHouseUrl(url);
  if (!address) return address.error();
  // An argument can be read by everybody on the node, the environment of a service cannot.
  const char* password = std::getenv("TACET_CLICKHOUSE_PASSWORD");
  if (password != nullptr && *password != 0) address->password = password;
  HistoryOptions history;
  history.address = *address;
  history.say = [](const std::string& what) { std::fprintf(stderr, "tacet agent: %s\n", what.c_str()); };
  return history;
}

int RunAgent(const std::vector<std::string>& arguments) {
  UseFewMemoryPools();
  auto options = Options::Parse(arguments, kAgentCommand.help);
  if (!options) return Complain(options.error());
  if (!options->rest().empty()) return Complain({"agent takes no paths", "name the box folder with --boxes"});
  AgentOptions agent_options;
  const char* folder = std::getenv("TACET_BOX_DIR");
  if (folder != nullptr && *folder != 0) agent_options.boxes.root = folder;
  agent_options.boxes.root = options->Value("--boxes").value_or(agent_options.boxes.root);
  agent_options.host = options->Value("--host").value_or("");
  auto listen = ParseHttpAddress(options->Value("--listen").value_or("9560"), agent_options.listen);
  if (!listen) return Complain(listen.error());
  if (const std::string why = WhyNotOurs(listen->host); !why.empty())
    return Complain(
        {"cannot listen on " + Show(*listen) + ": " + why, "use 127.0.0.1 or another address of this host"});
  agent_options.listen = *listen;
  agent_options.unix_socket = options->Value("--socket").value_or("");
  agent_options.access = ReadWebAccessOptions(*options);
  auto interval = options->Number("--interval", 1000, 100, 60000);
  if (!interval) return Complain(interval.error());
  agent_options.interval_ms = *interval;
  auto hang_after = options->Number("--hang-after", 4, 1, 3600);
  if (!hang_after) return Complain(hang_after.error());
  agent_options.hang_rule.floor_ns = *hang_after * 1'000'000'000;
  if (const auto url = options->Value("--clickhouse")) {
    auto history = ReadHistoryOptions(*url);
    if (!history) return Complain(history.error());
    agent_options.history = *history;
  }
  auto keep = options->Number("--keep", 24, 0, 24 * 365);
  if (!keep) return Complain(keep.error());
  agent_options.keep_rule.other_ns = *keep * 3600 * 1'000'000'000;
  agent_options.clean_up = *keep > 0;
  const std::string ras = options->Value("--ras").value_or("");
  agent_options.ask_ras = ras != "off";
  auto ras_address = ParseHttpAddress(ras.empty() || ras == "off" ? Show(RasAddress()) : ras, RasAddress());
  if (!ras_address) return Complain(ras_address.error());
  agent_options.ras = *ras_address;

  agent_options.say = [](const std::string& what) { std::fprintf(stderr, "tacet agent: %s\n", what.c_str()); };
  // Half of the files for boxes, a quarter for those who ask; the rest is never given away, so that folders can always
  // be read.
  const size_t files = RaiseFileLimit(8192);
  agent_options.boxes.most_boxes = std::min<size_t>(agent_options.boxes.most_boxes, files / 2);
  agent_options.most_connections = std::min<size_t>(agent_options.most_connections, std::max<size_t>(16, files / 4));
  const StopSignal stop;
  auto agent = Agent::Start(agent_options);
  if (!agent) return Complain(agent.error());
  agent_options.listen.port = (*agent)->port();
  std::printf("tacet agent: watching %s, %s://%s\n", agent_options.boxes.root.c_str(),
              (*agent)->uses_tls() ? "https" : "http", Show(agent_options.listen).c_str());
  std::fflush(stdout);
  stop.Wait();
  return kHealthy;
}

}  // namespace

const Command kAgentCommand = {"agent", "Watch the jobs of this node through the plugin: metrics, state, hangs",
                               R"(tacet agent [options]

Finds the black boxes that jobs with NCCL_PROFILER_PLUGIN=tacet write on this node and serves, over HTTP:
  /metrics             for Prometheus
  /api/v1/state        JSON: every process, its communicators and operations in flight; ?brief=1 for polling
  /api/v1/boxes        names of the boxes
  /api/v1/boxes/NAME   a small copy of one: tacet diagnose reads it
  /api/v1/ras          the latest answer of NCCL RAS
  /healthz             200 while the agent works, followed by any problems with boxes and folders, one
                       per line

  -b, --boxes DIR     box folder (default: TACET_BOX_DIR, else /dev/shm/tacet); waits until it exists
  -l, --listen ADDR   host:port (default 127.0.0.1:9560; port 0 takes a free one and prints it)
  -i, --interval MS   time between two scans (default 1000)
      --hang-after S  no stall shorter than this is called a hang (default 4 s); docs/live.md has the whole rule
      --clickhouse URL  also send each finished operation to http://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE];
                      the password may come from TACET_CLICKHOUSE_PASSWORD. A failing server never blocks the agent
      --keep HOURS    hours after which the box of a vanished process is removed (default 24). Boxes of processes
                      that exited cleanly are removed after 10 minutes, those of a suspected hang never; with 0 no
                      box is ever removed
      --ras ADDR|off  address of NCCL RAS (default NCCL_RAS_ADDR, else localhost:28028)
      --host NAME     name of this node in answers (default: the host name)

Access (docs/live.md): users of this node see their own jobs, root and operators all of them.
      --web-config FILE  TLS, passwords and tokens, in the web configuration format of Prometheus exporters;
                      needed where other hosts can reach the address
      --operators LIST  users of this node who see all jobs (default root,prometheus)
      --socket PATH   also answer on this unix socket
      --host-name NAME  a further name by which requests may address this service (HTTP Host header), besides its
                      addresses, localhost and the host name
      --insecure      serve other hosts without TLS or authentication: anyone who reaches the port sees all jobs

Ends on SIGTERM and SIGINT.

Exit code:
  0  ended by a signal
  2  wrong usage, or the service could not be started
  3  internal error

Examples:
  tacet agent
  tacet agent --listen 0.0.0.0:9560 --web-config /etc/tacet/web.yml
  curl -s localhost:9560/api/v1/state
)",
                               RunAgent};

}  // namespace tacet
