// The kernel's own cgroups, where this user may make one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "node/job_cgroup.h"

namespace fleet {
namespace {

TEST(JobCgroupOfTheKernel, Kill_EndsWhatIsInItAndRemovesIt) {
  JobCgroup cgroup;
  if (!cgroup.make()) GTEST_SKIP() << cgroup.why();
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  cgroup.take({child});
  EXPECT_THAT(cgroup.members(), ::testing::Contains(child));
  cgroup.kill();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  const std::string path = cgroup.path();
  cgroup.remove();
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace fleet
