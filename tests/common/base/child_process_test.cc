#include "base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/error.h"

namespace fleet {
namespace {

TEST(ChildProcess, Result_HasBothStreamsAndTheCode) {
  const ChildResult result = run_child({.words = {"sh", "-c", "echo out; echo err >&2; exit 5"}});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.error_output, "err\n");
}

// More than a pipe holds, on both streams.
TEST(ChildProcess, LongOutput_IsWhole) {
  const ChildResult result =
      run_child({.words = {"sh", "-c", "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2"}});
  EXPECT_EQ(result.output.size(), 300'000u);
  EXPECT_EQ(result.error_output.size(), 200'000u);
}

TEST(ChildProcess, Signal_IsInTheExitCode) {
  EXPECT_EQ(run_child({.words = {"sh", "-c", "kill -9 $$"}}).exit_code, 128 + SIGKILL);
}

TEST(ChildProcess, FolderAndEnvironment_AreItsOwn) {
  const ChildResult result = run_child({.words = {"called", "-c", "pwd; echo $COLOR$HOME; echo $0"},
                                        .path = "/bin/sh",
                                        .environment = {{"COLOR=red"}},
                                        .folder = "/usr"});
  EXPECT_EQ(result.output, "/usr\nred\ncalled\n");
}

TEST(ChildProcess, OwnSession_IsLedByIt) {
  const std::string script = "read -r _ _ _ _ _ session rest </proc/$$/stat; [ $session = $$ ]";
  EXPECT_EQ(run_child({.words = {"sh", "-c", script}, .own_session = true}).exit_code, 0);
  EXPECT_EQ(run_child({.words = {"sh", "-c", script}}).exit_code, 1);
}

TEST(ChildProcess, BlockedSignals_AreThoseGiven) {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  const ChildResult result =
      run_child({.words = {"sh", "-c", "kill -TERM $$; echo alive"}, .blocked_signals = blocked});
  EXPECT_EQ(result.output, "alive\n");
}

TEST(ChildProcess, MissingProgram_IsAnError) {
  errno = 0;
  EXPECT_EQ(start_child({.words = {"no-such-program"}}), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_THROW(run_child({.words = {"/no/such/program"}}), Error);
}

TEST(LastLine, BlankLines_AreSkipped) {
  EXPECT_EQ(last_line("a note\n b \n\n"), "b");
  EXPECT_EQ(last_line(" \n"), "");
}

}  // namespace
}  // namespace fleet
