#include "train/lost_steps.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fleet {
namespace {

class LostSteps : public ::testing::Test {
 protected:
  LostSteps() { std::filesystem::create_directories(folder_); }
  ~LostSteps() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& text) {
    std::ofstream(folder_ + "/metrics.jsonl", std::ios::app) << text;
  }
  const std::string folder_ =
      std::filesystem::temp_directory_path() / ("fleet-lost-steps-" + std::to_string(::getpid()));
};

TEST_F(LostSteps, LastStart_Counts) {
  write("{\"event\":\"train\",\"step\":90}\n{\"event\":\"start\",\"step\":0}\n");
  for (int step = 5; step <= 55; step += 5) {
    write("{\"event\":\"train\",\"step\":" + std::to_string(step) + ",\"loss\":1.5}\n");
  }
  write("{\"event\":\"test\",\"step\":70}\n{\"event\":\"train\",\"st");  // it was killed
  EXPECT_EQ(recorded_steps_after(folder_, 40), 15);
  EXPECT_EQ(recorded_steps_after(folder_, 0), 55);
  EXPECT_EQ(recorded_steps_after(folder_, 60), 0);
}

TEST_F(LostSteps, LongFile_IsReadFromItsEnd) {
  std::string lines;
  for (int step = 1; step <= 20'000; ++step) {
    lines += "{\"event\":\"train\",\"step\":" + std::to_string(step) + "}\n";
  }
  write(lines);
  EXPECT_EQ(recorded_steps_after(folder_, 19'000), 1000);
}

TEST_F(LostSteps, NoFile_IsNothing) { EXPECT_EQ(recorded_steps_after(folder_, 3), 0); }

}  // namespace
}  // namespace fleet
