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
#include "live/server/server.h"

namespace tacet {

extern const Command kServeCommand;
namespace {

Result<AgentSource> ReadAgentSource(const Options& options) {
  AgentSource source;
  auto port = options.Number("--port", kAgentPort, 1, 65535);
  if (!port) return port.error();
  source.port = static_cast<int>(*port);
  for (const std::string& list : options.Values("--agents")) {
    auto agents = ParseAgents(list, source.port);
    if (!agents) return agents.error();
    source.fixed.insert(source.fixed.end(), agents->begin(), agents->end());
  }
  for (const std::string& list : options.Values("--slurm")) {
    auto nodes = ExpandNodeList(list);
    if (!nodes) return nodes.error();
    for (const std::string& node : *nodes) source.fixed.push_back({node, source.port});
  }
  source.file = options.Value("--agents-file").value_or("");
  source.dns = options.Value("--dns").value_or("");
  if (source.fixed.empty() && !source.changes())
    return Error{"serve needs the addresses of the agents",
                 "--agents node1,node2:9560 or --agents-file FILE or --slurm 'node[01-16]' or --dns NAME"};
  return source;
}

HttpCredentialFiles ReadAgentCredentialFiles(const Options& options) {
  HttpCredentialFiles files;
  files.use_tls = options.Has("--agent-tls");
  files.tls.ca_file = options.Value("--agent-ca").value_or("");
  files.tls.cert_file = options.Value("--agent-cert").value_or("");
  files.tls.key_file = options.Value("--agent-key").value_or("");
  files.token_file = options.Value("--agent-token-file").value_or("");
  files.user_file = options.Value("--agent-user-file").value_or("");
  return files;
}

// The other end of JudgeApart: "tacet serve --judge MEMORY SECONDS".
int RunServeJudge(const std::vector<std::string>& arguments) {
  const auto number = [&](size_t at) {
    return arguments.size() > at ? std::strtoull(arguments[at].c_str(), nullptr, 10) : 0ull;
  };
  if (number(1) == 0 || number(2) == 0) return Complain({"--judge is for internal use by tacet serve", ""});
  return RunJudge(number(1), number(2));
}

int RunServe(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "--judge") return RunServeJudge(arguments);
  UseFewMemoryPools();
  auto options = Options::Parse(arguments, kServeCommand.help);
  if (!options) return Complain(options.error());
  if (!options->rest().empty()) return Complain({"serve takes no paths", "name the agents with --agents"});
  ServerOptions server_options;
  auto source = ReadAgentSource(*options);
  if (!source) return Complain(source.error());
  server_options.agents = *source;
  auto listen = ParseHttpAddress(options->Value("--listen").value_or("9570"), server_options.listen);
  if (!listen) return Complain(listen.error());
  if (const std::string why = WhyNotOurs(listen->host); !why.empty())
    return Complain(
        {"cannot listen on " + Show(*listen) + ": " + why, "use 127.0.0.1 or another address of this host"});
  server_options.listen = *listen;
  server_options.unix_socket = options->Value("--socket").value_or("");
  server_options.access = ReadWebAccessOptions(*options);
  auto credentials = ReadHttpCredentials(ReadAgentCredentialFiles(*options));
  if (!credentials) return Complain(credentials.error());
  server_options.poll.credentials = *credentials;
  server_options.judge.program = {"/proc/self/exe", "serve", "--judge"};
  auto interval = options->Number("--interval", 1000, 100, 60000);
  if (!interval) return Complain(interval.error());
  server_options.poll.interval_ms = *interval;
  auto workers = options->Number("--workers", 32, 2, 512);
  if (!workers) return Complain(workers.error());
  server_options.poll.workers = static_cast<int>(*workers);
  auto hang_after = options->Number("--hang-after", 4, 1, 3600);
  if (!hang_after) return Complain(hang_after.error());
  server_options.hang_rule.floor_ns = *hang_after * 1'000'000'000;

  server_options.say = [](const std::string& what) { std::fprintf(stderr, "tacet serve: %s\n", what.c_str()); };
  server_options.most_connections = std::min<size_t>(512, std::max<size_t>(16, RaiseFileLimit(8192) / 4));
  const StopSignal stop;
  auto server = Server::Start(server_options);
  if (!server) return Complain(server.error());
  server_options.listen.port = (*server)->port();
  const size_t agents = (*server)->agents();
  std::printf("tacet serve: %zu agent%s, %s://%s\n", agents, agents == 1 ? "" : "s",
              (*server)->uses_tls() ? "https" : "http", Show(server_options.listen).c_str());
  std::fflush(stdout);
  stop.Wait();
  return kHealthy;
}

}  // namespace

const Command kServeCommand = {
    "serve", "Combine the agents of a cluster: one verdict per job, live page, JSON",
    R"(tacet serve (--agents LIST | --agents-file FILE | --slurm NODES | --dns NAME) [options]

Polls the agents of all nodes, detects hanging jobs, and runs the rules of 'tacet diagnose' on their black
boxes. Agents may disappear and return. Over HTTP:
  /                    the live page
  /metrics             for Prometheus
  /api/v1/verdict      the report (tacet.report.v1) of the job in the worst state; ?job=NAME for one
  /api/v1/jobs         all jobs with their verdicts
  /api/v1/agents       which agents answer and which do not
  /api/v1/state        all processes, brief; ?job=NAME&offset=N&limit=N

  -a, --agents LIST      host:port,... (--port where none is named); may be given several times
      --agents-file FILE one or more agents per line, '#' begins a comment; read again when it changes
      --slurm NODES      a node list as Slurm writes it: node[01-16,20]
      --port N           port of agents named without one (default 9560)
      --dns NAME         every address of NAME[:PORT], resolved again every 15 s (a headless service)
  -l, --listen ADDR      host:port (default 127.0.0.1:9570; port 0 takes a free one and prints it)
  -i, --interval MS      time between two polls of one agent (default 1000)
      --hang-after S     no stall shorter than this is called a hang (default 4 s)
      --workers N        agents polled at a time (default 32)

For agents with a web configuration:
      --agent-tls        use TLS and verify agents with the system's CA certificates
      --agent-ca FILE    use TLS and verify agents with this CA certificate
      --agent-token-file FILE, --agent-user-file FILE   one line: a token, or user:password
      --agent-cert FILE, --agent-key FILE               the server's own certificate, where agents require one

Access (docs/live.md): users of this host see their own jobs, root and operators all of them.
      --web-config FILE  TLS, passwords and tokens, in the web configuration format of Prometheus exporters;
                         needed where other hosts can reach the address
      --operators LIST   users of this host who see all jobs (default root,prometheus)
      --socket PATH      also answer on this unix socket
      --host-name NAME   a further name by which requests may address this service (HTTP Host header), besides its
                         addresses, localhost and the host name
      --insecure         serve other hosts without TLS or authentication: anyone who reaches the port sees all jobs

Ends on SIGTERM and SIGINT.

Exit code:
  0  ended by a signal
  2  wrong usage, or the service could not be started
  3  internal error

Examples:
  tacet serve --slurm "$SLURM_JOB_NODELIST" --listen 0.0.0.0:9570 --web-config web.yml --agent-ca ca.crt
  tacet serve --dns tacet-agents.monitoring.svc.cluster.local
  curl -s localhost:9570/api/v1/verdict
)",
    RunServe};

}  // namespace tacet
