// SPDX-License-Identifier: Apache-2.0
#include "launch/job_streams.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>

namespace tacet {
namespace {

bool AreOneFile(int a, int b) {
  struct stat first {
  }, second{};
  if (::fstat(a, &first) != 0 || ::fstat(b, &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino && first.st_rdev == second.st_rdev;
}

// The terminal itself turns line ends into what it needs; doing it twice would change the bytes.
bool OpenTerminal(int like, ChildStream* stream) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[128];
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0 || ::ptsname_r(master, name, sizeof name) != 0) {
    if (master >= 0) ::close(master);
    return false;
  }
  const int slave = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) {
    ::close(master);
    return false;
  }
  termios mode{};
  if (::tcgetattr(like, &mode) == 0 || ::tcgetattr(slave, &mode) == 0) {
    mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    mode.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
    ::tcsetattr(slave, TCSANOW, &mode);
  }
  winsize size{};
  if (::ioctl(like, TIOCGWINSZ, &size) == 0) ::ioctl(slave, TIOCSWINSZ, &size);
  stream->ours = master;
  stream->childs = slave;
  stream->terminal = true;
  return true;
}

bool OpenPipe(ChildStream* stream) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  ::fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);  // fewer turns for a job that talks much; refused is fine
  stream->ours = ends[0];
  stream->childs = ends[1];
  return true;
}

}  // namespace

std::vector<ChildStream> OpenChildStreams() {
  std::vector<ChildStream> streams;
  const bool one = AreOneFile(1, 2);
  for (const int fd : {1, 2}) {
    if (fd == 2 && one) {
      streams[0].stands_for.push_back(2);
      break;
    }
    ChildStream stream;
    stream.stands_for = {fd};
    if (!(::isatty(fd) && OpenTerminal(fd, &stream)) && !OpenPipe(&stream)) {
      CloseChildStreams(streams);
      return {};
    }
    streams.push_back(stream);
  }
  return streams;
}

void CloseChildStreams(std::vector<ChildStream>& streams) {
  for (ChildStream& stream : streams) {
    if (stream.ours >= 0) ::close(stream.ours);
    if (stream.childs >= 0) ::close(stream.childs);
  }
  streams.clear();
}

}  // namespace tacet
