// Many launches on one host at the same moment: every rank of each can listen on its port.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/file.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

size_t files_in(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

class ManyLaunches : public ::testing::Test {
 protected:
  void SetUp() override {
    make_directories(held_);
    ASSERT_EQ(::mkfifo(gate_.c_str(), 0600), 0);
  }

  // One after the other as fast as they can be started; none waits for another.
  void start_all(int count) {
    for (int launch = 0; launch < count; ++launch) {
      const std::string name = "launch" + std::to_string(launch);
      jobs_.push_back(std::make_unique<Fleetrun>(
          folder_, name,
          std::vector<std::string>{"--nproc_per_node=2", "--log_dir=" + name, "--job_id=" + name,
                                   "--rdzv_timeout=600", kHelper, "hold", gate_,
                                   held_ + "/" + name}));
    }
  }

  // Waits until `wanted` ranks hold their ports, or no more of them come; returns their number.
  size_t await_held(size_t wanted) const {
    const auto patience = std::chrono::seconds(120);
    size_t held = 0;
    for (auto last = std::chrono::steady_clock::now();
         held < wanted && std::chrono::steady_clock::now() - last < patience;) {
      ::poll(nullptr, 0, 20);
      const size_t now = files_in(held_);
      if (now > held) last = std::chrono::steady_clock::now();
      held = now;
    }
    return held;
  }

  JobFolder folder_;
  const std::string held_ = folder_.path() + "/held", gate_ = folder_.path() + "/gate";
  std::vector<std::unique_ptr<Fleetrun>> jobs_;
};

// FLEET_TEST_LAUNCHES: how many (40).
TEST_F(ManyLaunches, AtOnce_NoPortIsGivenTwice) {
  const auto count = static_cast<int>(env_int_or("FLEET_TEST_LAUNCHES", 40));
  start_all(count);
  // All of them at the same time: nobody ends before the last one listens.
  EXPECT_EQ(await_held(2 * static_cast<size_t>(count)), 2 * static_cast<size_t>(count));
  const UniqueFd gate(::open(gate_.c_str(), O_RDWR | O_CLOEXEC));
  int clashes = 0;
  for (const auto& job : jobs_) {
    EXPECT_EQ(job->wait(), 0) << job->output();
    clashes += job->output().find("CLASH") != std::string::npos;
  }
  EXPECT_EQ(clashes, 0);
  std::printf("%d launches at once: %d with a port clash\n", count, clashes);
}

}  // namespace
}  // namespace fleet
