// --via=ssh to nodes whose shell prints something of its own, with a program in place of ssh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "rendezvous/types.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct NoisyShell : ::testing::Test {
  int run(const std::string& ssh) {
    const std::string path = job.path() + "/ssh";
    std::ofstream(path) << "#!/bin/sh\necho 'Welcome to node!'\n" << ssh;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    Fleetrun fleetrun(
        job, "run", {"--via=ssh", "--ips=127.0.0.1", "sh", "-c", "echo $((40 + 2)) ran"},
        {{"PATH", job.path() + ":" + std::getenv("PATH")}, {"XDG_CONFIG_HOME", job.path()}});
    const int code = fleetrun.wait();
    output = fleetrun.output();
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  JobFolder job;
  std::string output;
};

// An echo in ~/.bashrc.
TEST_F(NoisyShell, ThatStartsFleetrun_IsSkipped) {
  EXPECT_EQ(run("for last; do :; done\nexec sh -c \"$last\"\n"), 0);
  EXPECT_THAT(output, HasSubstr("42 ran"));
}

TEST_F(NoisyShell, ThatDoesNot_IsQuoted) {
  EXPECT_EQ(run("exit 0\n"), kExitRendezvous);
  EXPECT_THAT(output, HasSubstr("Welcome"));
}

}  // namespace
}  // namespace fleet
