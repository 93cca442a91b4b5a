#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/flight_dump.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// "A=1 B=2" as /proc has it.
FlightSettings settings(std::string environment) {
  for (char& c : environment) c = c == ' ' ? '\0' : c;
  return flight_settings_in(environment, "/run");
}

TEST(FlightSettings, EnvironmentValue_IsThatOfTheWholeName) {
  using namespace std::string_literals;
  const std::string block = "AB=1\0A=2\0EMPTY=\0LAST=x=y"s;
  EXPECT_EQ(environment_value(block, "A"), "2");
  EXPECT_EQ(environment_value(block, "LAST"), "x=y");
  EXPECT_EQ(environment_value(block, "EMPTY"), "");
  EXPECT_EQ(environment_value(block, "B"), "");
  EXPECT_EQ(environment_value("", "A"), "");
}

TEST(FlightSettings, WithoutPipe_ThereAreNone) {
  EXPECT_FALSE(settings("TORCH_FR_BUFFER_SIZE=2000").has_pipe);
  EXPECT_FALSE(settings("TORCH_NCCL_DEBUG_INFO_PIPE_FILE=").has_pipe);
  EXPECT_FALSE(settings("TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/t/p TORCH_FR_BUFFER_SIZE=0").has_pipe);
  EXPECT_FALSE(
      settings("TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/t/p TORCH_NCCL_TRACE_BUFFER_SIZE=0").has_pipe);
}

TEST(FlightSettings, NamesOfOldAndNewPyTorch_AreKnown) {
  const FlightSettings of_old = settings(
      "HOME=/h TORCH_NCCL_TRACE_BUFFER_SIZE=20 TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/t/p "
      "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/t/d WORLD_SIZE=8");
  EXPECT_TRUE(of_old.has_pipe);
  EXPECT_EQ(of_old.pipe, "/t/p");
  EXPECT_EQ(of_old.world_size, 8);
  EXPECT_THAT(of_old.dumps, Contains("/t/d"));
  const FlightSettings of_new = settings(
      "HOME=/h XDG_CACHE_HOME=/cache TORCH_FR_DEBUG_INFO_PIPE_FILE=p "
      "TORCH_FR_DUMP_TEMP_FILE=d");
  EXPECT_EQ(of_new.pipe, "/run/p") << "relative to the folder of the process";
  EXPECT_THAT(of_new.dumps, ElementsAre("/run/d", "/cache/torch/comm_lib_trace_rank_",
                                        "/cache/torch/nccl_trace_rank_", "/tmp/nccl_trace_rank_"));
  EXPECT_THAT(settings("HOME=/h TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/t/p").dumps,
              Contains("/h/.cache/torch/comm_lib_trace_rank_"));
}

TEST(FlightSettings, ProcessesThatAreGone_HaveNone) {
  EXPECT_FALSE(flight_settings_of({}).has_pipe);
  EXPECT_FALSE(flight_settings_of({1 << 29}).has_pipe);
  EXPECT_FALSE(uses_torch({::getpid(), 1 << 29}));
}

}  // namespace
}  // namespace fleet
