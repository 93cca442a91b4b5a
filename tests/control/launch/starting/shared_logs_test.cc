#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/starting/startup_messages.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

TEST(SharedLogs, Advice_TellsTheTwoUsersApart) {
  const auto warning = [](const std::string& holder, bool in_slurm) {
    return shared_logs_warning("log", holder, 0, "x",
                               [&](const std::string& name) -> std::optional<std::string> {
                                 if (!in_slurm || name != "SLURM_JOB_ID") return std::nullopt;
                                 return "7";
                               });
  };
  EXPECT_THAT(warning("node 1 of job 'x' (pid 8 on a)", true), HasSubstr("log/$(hostname)"));
  // Another job of that name.
  EXPECT_THAT(warning("node 0 of job 'x' (pid 8 on a)", true), HasSubstr("log/$SLURM_JOB_ID"));
  EXPECT_THAT(warning("node 1 of job 'y' (pid 8 on a)", true), HasSubstr("log/$SLURM_JOB_ID"));
  EXPECT_THAT(warning("another fleetrun", false), HasSubstr("log/NAME"));
}

}  // namespace
}  // namespace fleet
