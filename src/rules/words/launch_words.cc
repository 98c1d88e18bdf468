// SPDX-License-Identifier: Apache-2.0
#include "rules/words/launch_words.h"

#include <string>
#include <vector>

#include "model/events/site_messages.h"

namespace tacet {

// What helps depends on why the step could not be started.
static std::vector<std::string> StepAdvice(const Rendezvous& told) {
  const std::string node = told.host.empty() ? "the node" : told.host;
  if (told.refused)
    return {"Compare the clocks of " + node +
                " and of the controller, and check that munge runs there with the same key: munge -n | ssh " +
                (told.host.empty() ? "NODE" : told.host) + " unmunge.",
            "Run without it (sbatch --exclude) until that works."};
  std::vector<std::string> advice;
  if (const SiteMessage* known = ClassifySiteMessage(told.reason).message)
    for (const std::string_view step : known->steps)
      if (!step.empty()) advice.emplace_back(step);
  if (!advice.empty()) return advice;
  advice = {
      "Compare what the step asks for with what the job was given: scontrol show job JOB, and the options of srun."};
  if (!told.host.empty()) advice.push_back("Look at the log of slurmd on " + node + " for the time of the launch.");
  return advice;
}

// JAX's own question: "Did you run your code on all TPU hosts?"
void TellSlice(Finding& finding) {
  finding.confidence = Confidence::likely;
  finding.headline =
      "the TPU backend waits for the other hosts of its slice: most likely the program was not started on "
      "all of them";
  finding.fix = {
      "Start the program on every host of the slice at the same time, and not on one alone: gcloud compute tpus tpu-vm "
      "ssh NAME --worker=all --command='python3 train.py'.",
      "If it runs on all of them: end what is left of earlier runs and still holds the TPU (sudo lsof -w "
      "/dev/accel* /dev/vfio/*), and check that the hosts reach each other."};
}

// Before any rank runs, the launcher itself has to get to every node: mpirun starts a daemon there, srun a step.
// mpirun's own list of reasons fits every failure.
void TellLauncher(const Rendezvous& told, Finding& finding) {
  if (told.launch == LaunchProblem::no_program) {
    finding.confidence = Confidence::certain;
    finding.headline = "no rank was started: a shell on another node does not find mpirun's daemon " + told.reason;
    finding.fix = {"Install the same MPI on every node, or tell mpirun where it is: mpirun --prefix /path/to/mpi.",
                   "PATH and LD_LIBRARY_PATH must be set for non-login shells as well (in ~/.bashrc above the test for "
                   "an interactive shell): ssh NODE which " +
                       told.reason + "."};
    return;
  }
  if (told.launch == LaunchProblem::step) {
    finding.confidence = Confidence::certain;
    finding.headline = "no rank was started: srun could not start the step" +
                       (told.host.empty() ? std::string() : " on " + told.host) + " ('" + told.reason + "')";
    finding.fix = StepAdvice(told);
    return;
  }
  if (told.launch == LaunchProblem::mpi_plugin) {
    finding.confidence = Confidence::certain;
    finding.headline = "no rank was started: srun could not load its plugin for MPI";
    finding.fix = {
        "srun --mpi=list shows the plugins that this Slurm has; choose one that the program's MPI supports "
        "(--mpi=pmix, pmi2, none).",
        "PMIx: the library that Slurm was built with must be installed on the node that starts the job and "
        "on all others.",
        "A program that is started by torchrun needs no MPI: srun --mpi=none."};
    return;
  }
  finding.headline =
      "no rank was started: mpirun could not start its daemons on one or more nodes; the reason is not in these lines";
  finding.fix = {
      "Read the lines above the cited one: what ssh, srun or the daemon itself printed is the reason; the list below "
      "it "
      "fits every failure.",
      "From the node that starts the job: ssh NODE hostname must work without a password for every node.",
      "Check that the same Open MPI is found on all nodes: ssh NODE which prted orted, or mpirun --prefix."};
}

// torchrun's agents meet before any rank is started; the timeout of init_process_group is another one.
void TellNodes(Finding& finding) {
  finding.headline = "the torchrun rendezvous timed out: fewer nodes joined than --nnodes asks for";
  finding.fix = {"Check that torchrun runs on every node, with the same --nnodes, --rdzv-id and --rdzv-endpoint.",
                 "From every node: nc -zv to the host and port of --rdzv-endpoint; open the port in the firewall.",
                 "If nodes only start late: --rdzv-conf join_timeout=SECONDS (600 by default)."};
}

}  // namespace tacet
