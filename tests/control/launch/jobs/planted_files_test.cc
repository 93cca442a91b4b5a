// Files that other users have planted where logs and records go, through the real fleetrun: it
// exits with 2 and one line, or replaces the file. It never writes to a victim's file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr uid_t kUnexpectedPeer = 65533;  // no user of any system, as a rule

struct PlantedFiles : ::testing::Test {
  PlantedFiles() { std::ofstream(victim) << "precious\n"; }
  ~PlantedFiles() override { EXPECT_EQ(job.read("victim"), "precious\n"); }

  int run(std::vector<std::string> options, const std::string& script = ": >started",
          const Fleetrun::Environment& environment = {}) {
    options.insert(options.end(), {"sh", "-c", script});
    Fleetrun fleetrun(job, "run", options, environment);
    const int code = fleetrun.wait();
    output = fleetrun.output();
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  // Exit code 2, one line that names `path`, and no rank.
  void expect_refused(const std::string& path, const std::string& why,
                      std::vector<std::string> options = {},
                      const Fleetrun::Environment& environment = {}) {
    fs::remove(job.path() + "/run.out");
    EXPECT_EQ(run(std::move(options), ": >started", environment), 2) << path;
    EXPECT_THAT(output, AllOf(HasSubstr(path), HasSubstr(why)));
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
    EXPECT_FALSE(fs::exists(job.path() + "/started"));
  }
  static void give_away(const std::string& path) {
    ASSERT_EQ(::lchown(path.c_str(), kUnexpectedPeer, kUnexpectedPeer), 0);
  }
  // As /tmp.
  std::string sticky_folder() const {
    const std::string path = job.path() + "/shared";
    fs::create_directory(path);
    ::chmod(path.c_str(), 01777);
    return path;
  }
  JobFolder job;
  const std::string victim = job.path() + "/victim";
  std::string output;
};

TEST_F(PlantedFiles, LinkInPlaceOfAFile_IsRefused) {
  fs::create_directory(job.path() + "/log");
  for (const std::string name : {"endpoints.log", "environment.log", "workerlog.0", "workerlog.1",
                                 "workerlog.0.err", "verdict.json", ".fleetrun"}) {
    const std::string path = job.path() + "/log/" + name;
    fs::create_symlink(victim, path);
    for (const char* how : {"--log_split", "--log_overwrite"}) {
      if (name.ends_with(".err") && how == std::string("--log_overwrite")) continue;
      expect_refused("log/" + name, "symbolic link", {"--nproc_per_node=2", how});
    }
    fs::remove(path);
  }
  fs::create_symlink(job.path() + "/made", job.path() + "/log/workerlog.0");
  expect_refused("log/workerlog.0", "symbolic link");
  EXPECT_FALSE(fs::exists(job.path() + "/made"));
}

TEST_F(PlantedFiles, PipeOrDeviceInPlaceOfALog_IsRefused) {
  fs::create_directory(job.path() + "/log");
  const std::string path = job.path() + "/log/workerlog.0";
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
  expect_refused("log/workerlog.0", "a pipe");
  fs::remove(path);
  if (::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) {
    GTEST_SKIP() << "only root can make devices";
  }
  expect_refused("log/workerlog.0", "a device");
}

TEST_F(PlantedFiles, SecondNameOfAFile_IsRefusedWhereOthersMayWrite) {
  fs::create_hard_link(victim, sticky_folder() + "/workerlog.0");
  expect_refused("shared/workerlog.0", "second name", {"--log_dir=shared"});
}

TEST_F(PlantedFiles, StrangersFolderOrLink_IsRefusedWhereEveryoneMayWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  const std::string log = sticky_folder() + "/log";
  fs::create_directory(log);
  ::chmod(log.c_str(), 0777);
  give_away(log);
  expect_refused("shared/log", "it belongs to", {"--log_dir=" + log});
  expect_refused("shared/log", "it belongs to", {"--log_dir=shared/log/deeper"});
  EXPECT_TRUE(fs::is_empty(log));
  fs::remove(log);
  fs::create_directory(job.path() + "/home");
  fs::create_directory_symlink(job.path() + "/home", log);
  give_away(log);
  expect_refused("shared/log", "a link of", {"--log_dir=shared/log"});
  expect_refused("shared/log", "a link of", {"--log_dir=shared/log/deeper"});
  EXPECT_TRUE(fs::is_empty(job.path() + "/home"));
  fs::remove(log);
  std::ofstream(job.path() + "/shared/endpoints.log") << "";
  give_away(job.path() + "/shared/endpoints.log");
  expect_refused("shared/endpoints.log", "it belongs to", {"--log_dir=shared"});
}

TEST_F(PlantedFiles, OwnLinkToALogFolder_IsFine) {
  fs::create_directory(sticky_folder() + "/me");
  fs::create_directory_symlink("shared/me", job.path() + "/log");
  EXPECT_EQ(run({}, "echo hello"), 0) << output;
  EXPECT_EQ(job.read("shared/me/workerlog.0"), "hello\n");
  EXPECT_EQ(verdict_in(job, "shared/me")["verdict"], "success");
}

TEST_F(PlantedFiles, LinksMadeWhileTheJobRuns_AreNotWrittenThrough) {
  // The verdict takes the link's place; a log that cannot be opened again is one warning.
  EXPECT_EQ(
      run({"--max_restart=1", "--dialect=paddle,mlx"},
          "test $FLEET_GENERATION = 1 || { echo again; exit 0; }; echo first; "
          "for name in verdict.json endpoints.log environment.log mlx_hosts.json workerlog.0; do "
          "ln -sf ../victim log/$name; done; exit 3"),
      0)
      << output;
  EXPECT_THAT(output, HasSubstr("endpoints.log: it is a symbolic link"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(job.path() + "/log/verdict.json")));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(job.path() + "/log/mlx_hosts.json")));
  EXPECT_EQ(job.read("log/workerlog.0"), "again\n");  // the link was set aside
}

TEST_F(PlantedFiles, RuntimeFolderOfAnother_IsRefused) {
  const std::string folder = job.path() + "/records";
  fs::create_directory_symlink("home", folder);
  fs::create_directory(job.path() + "/home");
  const Fleetrun::Environment environment = {{"FLEET_RUNTIME_DIR", folder}};
  expect_refused(folder, "symbolic link", {}, environment);
  EXPECT_TRUE(fs::is_empty(job.path() + "/home"));
  for (const char* command : {"ls", "stacks"}) {
    Fleetrun asked(job, command, {command}, environment);
    EXPECT_EQ(asked.wait(), 2);
    EXPECT_THAT(asked.output(), StartsWith("fleetrun: " + folder));
  }
  fs::remove(folder);
  fs::create_directory(folder);
  ::chmod(folder.c_str(), 0770);
  expect_refused(folder, "other users may write", {}, environment);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make folders of another user";
  ::chmod(folder.c_str(), 0700);
  give_away(folder);
  expect_refused(folder, "it belongs to", {}, environment);
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace fleet
