#include "node/job_cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Folders and files as a kernel has them, but that nothing happens.
struct JobCgroupTest : ::testing::Test {
  JobCgroupTest() {
    char name[] = "/tmp/fleet-cgroup-XXXXXX";
    root = ::mkdtemp(name);
    files.mounts = root + "/mountinfo";
    files.own = root + "/own";
    files.pid_namespace = "17";
    write("mountinfo",
          "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
          "41 31 0:38 / " +
              root + "/unified rw,relatime - cgroup2 cgroup2 rw\n");
    write("own", "9:cpu:/elsewhere\n0::/user/mine\n");
    add_cgroup("unified/user/mine");
  }
  ~JobCgroupTest() override { std::filesystem::remove_all(root); }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(root + "/" + file) << text;
  }
  void add_cgroup(const std::string& folder) {
    std::filesystem::create_directories(root + "/" + folder);
    for (const char* file : {"cgroup.procs", "cgroup.kill"}) write(folder + "/" + file, "");
  }
  std::string job_folder(long long pid) const {
    return "unified/user/mine/fleetrun-17-" + std::to_string(pid);
  }
  std::string root;
  CgroupFiles files;
};

TEST_F(JobCgroupTest, Make_LiesInTheOwnCgroup) {
  add_cgroup(job_folder(::getpid()));  // its files come with it from the kernel
  JobCgroup cgroup(files);
  ASSERT_TRUE(cgroup.make()) << cgroup.why();
  EXPECT_EQ(cgroup.path(), root + "/" + job_folder(::getpid()));
  cgroup.take({123});
  EXPECT_THAT(cgroup.members(), ElementsAre(123));
  cgroup.kill();
  EXPECT_EQ(read_file(cgroup.path() + "/cgroup.kill"), "1");
}

TEST_F(JobCgroupTest, OnlyVersionOne_SaysSo) {
  write("mountinfo", "31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  JobCgroup cgroup(files);
  EXPECT_FALSE(cgroup.make());
  EXPECT_THAT(cgroup.why(), HasSubstr("version 2"));
  cgroup.take({1});  // does nothing
  cgroup.kill();
}

TEST_F(JobCgroupTest, KernelWithoutKill_LeavesNothing) {
  JobCgroup cgroup(files);
  EXPECT_FALSE(cgroup.make());  // the folder it makes has no files here
  EXPECT_THAT(cgroup.why(), HasSubstr("cgroup.kill"));
  EXPECT_FALSE(std::filesystem::exists(root + "/" + job_folder(::getpid())));
}

TEST_F(JobCgroupTest, PathOfTheHost_FallsBackToTheRoot) {
  write("own", "0::/kubepods/pod1\n");
  for (const char* file : {"cgroup.procs", "cgroup.kill"})
    write(std::string("unified/") + file, "");
  const std::string own = "unified/fleetrun-17-" + std::to_string(::getpid());
  add_cgroup(own);
  JobCgroup cgroup(files);
  ASSERT_TRUE(cgroup.make()) << cgroup.why();
  EXPECT_EQ(cgroup.path(), root + "/" + own);
}

TEST_F(JobCgroupTest, CgroupOfADeadProcess_IsKilled) {
  // Beyond the largest number of a process.
  add_cgroup(job_folder(4'194'305));
  add_cgroup(job_folder(::getpid()));
  add_cgroup("unified/user/mine/fleetrun-18-4194305");  // of another container
  remove_stale_job_cgroups(files);
  EXPECT_EQ(read_file(root + "/" + job_folder(4'194'305) + "/cgroup.kill"), "1");
  EXPECT_EQ(read_file(root + "/" + job_folder(::getpid()) + "/cgroup.kill"), "");
  EXPECT_EQ(read_file(root + "/unified/user/mine/fleetrun-18-4194305/cgroup.kill"), "");
}

}  // namespace
}  // namespace fleet
