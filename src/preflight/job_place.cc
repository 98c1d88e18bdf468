// SPDX-License-Identifier: Apache-2.0
#include "preflight/job_place.h"

#include <algorithm>

#include "base/text_scan.h"

extern "C" char** environ;

namespace tacet {
namespace {

constexpr int kMostRanks = 1 << 20;

int NumberOf(const VariableMap& variables, std::string_view name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return -1;
  std::string_view rest = found->second;
  int value = -1;
  return TakeNumber(rest, &value) && rest.empty() && value >= 0 && value <= kMostRanks ? value : -1;
}

std::string TextOf(const VariableMap& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found != variables.end() ? found->second : "";
}

struct Launcher {
  const char *name, *rank, *size, *job;
};
// A launcher inside another one counts: torchrun under srun gives RANK.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_ess_base_jobid"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "SLURM_JOB_ID"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID"}};

// "1234.0;tcp://10.1.1.1,172.17.0.1:37031": where mpirun runs, and with it rank 0 as a rule.
std::string MpirunHost(const VariableMap& variables) {
  const std::string uri = TextOf(variables, "OMPI_MCA_orte_hnp_uri");
  auto rest = After(uri, "tcp://");
  return rest ? std::string(rest->substr(0, rest->find_first_of(",:"))) : "";
}

bool AllOnOneHost(const VariableMap& variables, int size) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (NumberOf(variables, name) == size) return true;
  return NumberOf(variables, "SLURM_STEP_NUM_NODES") == 1 || NumberOf(variables, "SLURM_NNODES") == 1;
}

}  // namespace

VariableMap OwnVariables() {
  VariableMap variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::string FirstHostOf(std::string_view node_list) {
  const size_t end = node_list.find_first_of("[,");
  std::string host(node_list.substr(0, end));
  if (end == std::string_view::npos || node_list[end] == ',') return host;
  node_list.remove_prefix(end + 1);
  return host + std::string(node_list.substr(0, node_list.find_first_of("-,]")));
}

Result<JobPlace> FindJobPlace(const VariableMap& variables, const std::string& meet, int rank, int size) {
  JobPlace place;
  for (const Launcher& launcher : kLaunchers) {
    const int found_rank = NumberOf(variables, launcher.rank), found_size = NumberOf(variables, launcher.size);
    if (found_rank < 0 || found_size < 1) continue;
    place.rank = found_rank;
    place.size = found_size;
    place.launcher = launcher.name;
    place.token = TextOf(variables, launcher.job);
    break;
  }
  if (rank >= 0) place.rank = rank;
  if (size >= 0) place.size = size;
  if (place.rank >= place.size || place.size < 1)
    return Error{"rank " + std::to_string(place.rank) + " does not exist in a job of " + std::to_string(place.size) +
                     (place.size == 1   ? ": the only rank is 0"
                      : place.size == 2 ? ": ranks are 0 and 1"
                                        : ": ranks are 0 to " + std::to_string(place.size - 1)),
                 "--rank and --size are the RANK and WORLD_SIZE of the launcher"};
  if (const int port = NumberOf(variables, "MASTER_PORT"); port > 0 && port < 65536) place.meet_port = port;
  // torchrun keeps its own store on that port while its workers run.
  if (variables.contains("TORCHELASTIC_RUN_ID") && variables.contains("MASTER_PORT") && place.launcher == "torchrun")
    place.meet_port += place.meet_port < 65535 ? 1 : -1;
  if (place.size == 1) return place;
  place.meet_host = TextOf(variables, "MASTER_ADDR");
  if (place.meet_host.empty() && AllOnOneHost(variables, place.size)) place.meet_host = "127.0.0.1";
  if (place.meet_host.empty() && place.launcher == "Slurm") {
    const std::string step = TextOf(variables, "SLURM_STEP_NODELIST");
    place.meet_host = FirstHostOf(step.empty() ? TextOf(variables, "SLURM_JOB_NODELIST") : step);
  }
  if (place.meet_host.empty()) place.meet_host = MpirunHost(variables);
  if (!meet.empty()) {
    const size_t colon = meet.rfind(':');
    const bool with_port = colon != std::string::npos && meet.find(':') == colon;
    place.meet_host = meet.substr(0, with_port ? colon : std::string::npos);
    if (with_port) {
      std::string_view port = std::string_view(meet).substr(colon + 1);
      if (!TakeNumber(port, &place.meet_port) || !port.empty() || place.meet_port < 1 || place.meet_port > 65535)
        return Error{"'" + meet + "' is not a valid address", "--meet takes host or host:port"};
    }
  }
  if (place.meet_host.empty())
    return Error{"rank 0 cannot be found: no MASTER_ADDR, no list of nodes",
                 "name the host of rank 0: --meet HOST[:PORT], or set MASTER_ADDR"};
  return place;
}

}  // namespace tacet
