// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/waits/torch_log_wait_words.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(WaitWords, ForWhat) {
  for (const char* line : {"rank 1: listening on 0.0.0.0:5678, waiting for the debugger to attach ...", "(Pdb) ",
                           "Press Enter to go on", "overwrite /a/b? [y/N]", "wandb: Enter your choice: ",
                           "Are you sure you want to continue connecting (yes/no/[fingerprint])?",
                           "Username for 'https://git.example.org': "})
    EXPECT_EQ(WaitToldIn(line), LineWait::person) << line;
  for (const char* line :
       {"node2: /local_tmp/vocab.done does not exist yet, waited 12 s", "waiting for the lock of the cache",
        "/a/train.ready is not there yet (5 s)", "Waiting until /a/b.idx has 12 parts",
        "rank 2: another process holds tokens.cache.lock, waiting"})
    EXPECT_EQ(WaitToldIn(line), LineWait::thing) << line;
  for (const char* line :
       {"waiting for rank 0 to write the index", "waiting for all workers", "waiting for other ranks"})
    EXPECT_EQ(WaitToldIn(line), LineWait::peers) << line;
  for (const char* line :
       {"lock acquired, done waiting for the cache", "step 3 wait 0.3 s", "will wait for 10 s", "data_wait_ms=31",
        "not waiting for the upload", "debugger attached", "3 requests running, 2 waiting",
        "reset password of the store: no", "the choice of the kernel (yes) is kept", "username: lea"})
    EXPECT_EQ(WaitToldIn(line), LineWait::none) << line;
}

}  // namespace
}  // namespace tacet
