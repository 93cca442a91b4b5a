// Standard output that cannot be written.
#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// The exit code of fleetrun with its standard output on a full disk; what it says in the file NAME.
int on_full_disk(const JobFolder& folder, const std::string& name,
                 const std::vector<std::string>& arguments) {
  return Fleetrun(folder, name, arguments, {}, "/dev/full").wait();
}

TEST(OutputLost, RanksOutputOnAFullDisk_FailsWithALine) {
  const JobFolder folder;
  EXPECT_EQ(on_full_disk(folder, "job", {"-q", "echo", "hi"}), 1);
  EXPECT_THAT(folder.read("job.out"), HasSubstr("standard output"));
  EXPECT_THAT(folder.read("log/workerlog.0"), HasSubstr("hi"));
}

TEST(OutputLost, FailedRank_KeepsItsCode) {
  const JobFolder folder;
  EXPECT_EQ(on_full_disk(folder, "job", {"-q", "sh", "-c", "echo hi; exit 3"}), 3);
}

TEST(OutputLost, RanksThatPrintNothing_Succeed) {
  const JobFolder folder;
  EXPECT_EQ(on_full_disk(folder, "job", {"-q", "true"}), 0);
}

TEST(OutputLost, CommandsThatPrint_Fail) {
  const JobFolder folder;
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"--version"},
      {"help", "all"},
      {"ls", "--format=json", "--fleetd_port=1"},
      {"--print_config", "true"}};
  for (const std::vector<std::string>& command : commands) {
    EXPECT_EQ(on_full_disk(folder, "command", command), 1) << command[0];
  }
  EXPECT_THAT(folder.read("command.out"), HasSubstr("standard output"));
}

// Like `fleetrun ... | head -n1`.
TEST(OutputLost, ReaderHasLeft_IsNoFailure) {
  const JobFolder folder;
  const std::string script =
      "cd '" + folder.path() + "' && { env " + folder.marked_environment() +
      " CUDA_VISIBLE_DEVICES= FLEET_RUNTIME_DIR=run '" + program_folder() +
      "/fleetrun' -q sh -c 'while [ ! -e left ]; do sleep 0.01; done; echo hi'; echo $? >code; } | "
      "{ exec <&-; : >left; }";
  EXPECT_EQ(std::system(script.c_str()), 0);
  EXPECT_EQ(folder.read("code"), "0\n");
}

}  // namespace
}  // namespace fleet
