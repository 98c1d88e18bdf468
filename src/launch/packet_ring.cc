// SPDX-License-Identifier: Apache-2.0
#include "launch/packet_ring.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "launch/command_run.h"

namespace tacet {

std::string PacketRing::Start(const std::string& run_folder) {
  const std::string program = FindProgram("tcpdump");
  if (program.empty()) return "no packet ring: tcpdump is not installed";
  std::error_code error;
  std::filesystem::create_directory(run_folder + "/packets", error);
  const std::string file = run_folder + "/packets/ring.pcap", log = run_folder + "/packets/tcpdump.txt";
  const char* arguments[] = {program.c_str(), "-i",   "any", "-n", "-s", "128", "-C", "50", "-W", "4", "-w",
                             file.c_str(),    nullptr};
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::setpgid(0, 0);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out >= 0) {
      ::dup2(out, 1);
      ::dup2(out, 2);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(program.c_str(), const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  if (pid_ < 0) return "no packet ring: no process can be started";
  ::usleep(300'000);
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = -1;
    return "no packet ring: tcpdump ended at once; " + log + " says why";
  }
  return "packet ring in " + run_folder + "/packets: at most 200 MB, 128 bytes of each packet";
}

void PacketRing::Stop() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace tacet
