// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace tacet {

// Holds SIGTERM and SIGINT back for a command that serves until it is told to end. To be made before any thread, which
// then holds them back, too.
class StopSignal {
 public:
  StopSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void Wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
  }

 private:
  sigset_t signals_;
};

}  // namespace tacet
