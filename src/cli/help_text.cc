// SPDX-License-Identifier: Apache-2.0
#include "cli/help_text.h"

namespace tacet {

const Command* FindCommand(std::string_view name) {
  for (const Command* command : AllCommands())
    if (command->name == name) return command;
  return nullptr;
}

std::vector<std::string_view> CommandNames() {
  std::vector<std::string_view> names;
  for (const Command* command : AllCommands()) names.push_back(command->name);
  return names;
}

std::string Overview() {
  std::string out =
      "tacet names the rank that hangs, slows down or corrupts a distributed job, and says why.\n\nusage: tacet "
      "COMMAND [options]\n\n";
  for (const Command* command : AllCommands())
    out += "  " + std::string(command->name) + std::string(14 - command->name.size(), ' ') +
           std::string(command->summary) + "\n";
  return out + "\nSee 'tacet help COMMAND' and 'tacet --version'. Start with: tacet diagnose FOLDER\n";
}

std::string EnvironmentText() {
  return R"(Variables that are read. Options on the command line take precedence.

The tool:
  NO_COLOR                    set and not empty: no colors (as --color never)
  TERM                        dumb: no colors
  COLUMNS                     width of text reports, at least 40 (default: the terminal's, else 100)
  TMPDIR                      where collect and capture store what they gather (default /tmp)
  TACET_BOX_DIR               box folder of tacet agent (default /dev/shm/tacet; as --boxes)
  TACET_CLICKHOUSE_PASSWORD   password for tacet agent --clickhouse
  NCCL_RAS_ADDR               address of NCCL RAS (default localhost:28028; as --ras)
  SSL_CERT_FILE, SSL_CERT_DIR CA certificates that tacet serve --agent-tls trusts (default: the system's)

The plugin, in the job:
  TACET_BOX_DIR               folder of the black boxes (default /dev/shm/tacet)
  TACET_BOX_MB, TACET_BOX_KB  size of a box (default 8 MiB; 0: no box); the second takes precedence
  TACET_JOB                   name of the job's folder (default: SLURM_JOB_ID, TORCHELASTIC_RUN_ID, local)
  TACET_HEARTBEAT_MS          time between heartbeats (default 500; 0: no thread)
  TACET_EVENTS                what to ask NCCL for (default coll,p2p,kernel,proxy,step,launch,ce)
  TACET_JSON_DIR              folder for JSON lines as NCCL Inspector writes them (default: off)
  TACET_JSON_MIN_BYTES        skip smaller operations there (default 0)
  TACET_PROM_DIR              folder for node_exporter's textfile collector (default: off)
  TACET_PROM_INTERVAL_MS      time between its files (default 15000)
  SLURM_JOB_ID, SLURM_STEP_ID, KUBERNETES_SERVICE_HOST, POD_NAME, POD_NAMESPACE, HOSTNAME
                              job, step or pod of the process, set by Slurm and Kubernetes

Set by tacet run for the job and for --on-hang commands:
  TACET_RUN_DIR               the run folder
  TACET_PROFILE_STEPS         as --profile-steps
  TACET_JOB_PID, TACET_CAUSE, TACET_HEADLINE
                              for the --on-hang command: the launcher's process, cause and headline
)";
}

// docs/commands.md is written from here, so that it cannot differ from what the tool says.
std::string CommandsAsMarkdown() {
  std::string out = "# Commands\n\nWritten by `tacet help --markdown`; edit the commands' help instead.\n";
  for (const Command* command : AllCommands())
    out += "\n## " + std::string(command->name) + "\n\n" + std::string(command->summary) + ".\n\n```text\n" +
           std::string(command->help) + "```\n";
  return out + "\n## Environment\n\n```text\n" + EnvironmentText() + "```\n";
}

}  // namespace tacet
