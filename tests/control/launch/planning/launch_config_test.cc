#include "launch/planning/launch_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "base/error.h"
#include "launch/planning/arguments.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

LaunchConfig config(std::vector<std::string> arguments) {
  arguments.emplace_back("program");
  return parse_arguments(arguments).config;
}

Error refusal(const std::vector<std::string>& arguments) {
  return thrown_by([&] { config(arguments); });
}

TEST(LaunchConfig, NothingGiven_HasTheDefaults) {
  const LaunchConfig all = config({});
  EXPECT_EQ(all.job_id.value, "default");
  EXPECT_FALSE(all.job_id.given());
  EXPECT_FALSE(all.local_world_size.value);
  EXPECT_THAT(all.gpus.value, IsEmpty());
  EXPECT_THAT(all.nodes.listed.value, IsEmpty());
  EXPECT_FALSE(all.nodes.count.value || all.nodes.master.value || all.nodes.rank.value);
  EXPECT_FALSE(all.nodes.rendezvous_port.value || all.nodes.start_port.value);
  EXPECT_EQ(all.grace, milliseconds(10'000));
  EXPECT_EQ(all.heartbeat_timeout, milliseconds(15'000));
  EXPECT_EQ(all.guardian.hang_timeout_ms(), 0);
  EXPECT_EQ(all.restarts.max_restarts, 0);
  EXPECT_THAT(all.stop_signals, ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
  EXPECT_THAT(all.dialects, ElementsAre("paddle", "torch"));
  EXPECT_FALSE(all.numa_binding || all.debug_rank.value || all.logs.label || all.as_torchrun);
}

TEST(LaunchConfig, Durations_AreMilliseconds) {
  const LaunchConfig all = config({"--grace=0.5", "--hang_timeout=60", "--rdzv_timeout=2"});
  EXPECT_EQ(all.grace, milliseconds(500));
  EXPECT_EQ(all.guardian.hang_timeout_ms(), 60'000);
  EXPECT_EQ(all.rendezvous_timeout, milliseconds(2'000));
}

TEST(LaunchConfig, OnEnd_IsACommand) {
  EXPECT_EQ(config({}).end_command, "");
  EXPECT_EQ(config({"--on_end=mail -s done me"}).end_command, "mail -s done me");
}

TEST(LaunchConfig, Metrics_AreOffOrHaveAnAddress) {
  EXPECT_FALSE(config({}).metrics.wanted());
  const MetricsConfig all = config({"--metrics=127.0.0.1:9400"}).metrics;
  EXPECT_EQ(all.address, "127.0.0.1");
  EXPECT_EQ(all.port, 9400);
  EXPECT_EQ(config({"--metrics=9401"}).metrics.address, "127.0.0.1");
  EXPECT_EQ(config({"--metrics=[::1]:9402"}).metrics.address, "::1");
  EXPECT_EQ(config({"--metrics=0.0.0.0:9400", "--metrics_token_file=t"}).metrics.token_file, "t");
}

TEST(LaunchConfig, MetricsForOtherMachines_NeedAToken) {
  EXPECT_THAT(refusal({"--metrics=0.0.0.0:9400"}), IsError(ErrorCode::kUsage, "--metrics"));
  EXPECT_THAT(refusal({"--metrics=10.0.0.1:9400"}), IsError(ErrorCode::kUsage, "--metrics"));
}

TEST(LaunchConfig, MetricsWithoutAPort_AreRefused) {
  for (const char* text : {"127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:x", "x"}) {
    EXPECT_THAT(refusal({std::string("--metrics=") + text}),
                IsError(ErrorCode::kUsage, "--metrics"))
        << text;
  }
}

TEST(LaunchConfig, LocalWorldSize_IsANumberWithItsOrigin) {
  EXPECT_EQ(config({"--nproc_per_node=3"}).local_world_size.value, 3);
  EXPECT_TRUE(config({"--nproc_per_node=3"}).local_world_size.by_flag());
  ::setenv("PADDLE_NPROC_PER_NODE", "2", 1);
  const LaunchConfig all = config({});
  ::unsetenv("PADDLE_NPROC_PER_NODE");
  EXPECT_EQ(all.local_world_size.value, 2);
  EXPECT_TRUE(all.local_world_size.given());
  EXPECT_FALSE(all.local_world_size.by_flag());
}

TEST(LaunchConfig, NodeCount_IsANumberOrARange) {
  EXPECT_EQ(config({"--nnodes=4", "--master=a"}).nodes.count.value->text(), "4");
  const LaunchConfig range = config({"--nnodes=2:4", "--master=a"});
  EXPECT_EQ(range.nodes.count.value->text(), "2:4");
  EXPECT_EQ(range.restarts.max_restarts, 3);
}

TEST(LaunchConfig, RendezvousPort_IsThatOfTheFlagOrOfTheMaster) {
  EXPECT_EQ(config({"--nnodes=2", "--master=a:7"}).nodes.rendezvous_port.value, 7);
  EXPECT_EQ(config({"--nnodes=2", "--master=a:7", "--rdzv_port=0"}).nodes.rendezvous_port.value, 0);
  EXPECT_THAT(refusal({"--nnodes=2", "--master=a:7", "--rdzv_port=8"}),
              IsUsageError("--rdzv_port 8"));
}

// With --via, the variables of the client's own node say nothing about the job's nodes.
TEST(LaunchConfig, MasterOfTheEnvironment_IsNotThatOfVia) {
  ::setenv("PADDLE_MASTER", "etcd://a:1", 1);
  EXPECT_THAT(refusal({"--nnodes=2"}), IsUsageError("environment PADDLE_MASTER etcd://a:1"));
  EXPECT_FALSE(config({"--via=ssh", "--ips=a,b"}).nodes.master.value);
  ::unsetenv("PADDLE_MASTER");
}

TEST(LaunchConfig, Logs_AreTyped) {
  const LogConfig logs = config({"--log_max_size=1M", "--timestamps=files", "--collapse=off",
                                 "--slow_console=drop", "--table=narrow", "--quiet"})
                             .logs;
  EXPECT_EQ(logs.max_size.value, 1 << 20);
  EXPECT_FALSE(logs.total_size.given());
  EXPECT_TRUE(logs.stamp_files);
  EXPECT_FALSE(logs.stamp_console);
  EXPECT_EQ(logs.collapse, Switch::kOff);
  EXPECT_EQ(logs.drop_if_slow, Switch::kOn);
  EXPECT_EQ(logs.table, TableStyle::kNarrow);
  EXPECT_EQ(logs.level, "INFO");
  EXPECT_EQ(logs.own_level(), "WARNING");
}

TEST(LaunchConfig, ViaOptions_AreWordsOfAShell) {
  EXPECT_THAT(config({"--via=ssh", "--ips=a", "--via_options=-p 22 -o 'A b'"}).via.options,
              ElementsAre("-p", "22", "-o", "A b"));
}

// --print_config shows values that a start would refuse.
TEST(LaunchConfig, PrintConfig_ResolvesNothing) {
  EXPECT_NO_THROW(parse_arguments({"--print_config", "--nnodes=none"}));
  EXPECT_THAT(refusal({"--nnodes=none"}), IsUsageError("--nnodes"));
}

}  // namespace
}  // namespace fleet
