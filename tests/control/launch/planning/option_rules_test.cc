// Every option counts in each way to start, or is refused there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/arguments.h"
#include "launch/planning/options.h"
#include "launch/starting/startup_messages.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::optional<Error> rule_refusal(std::vector<std::string> arguments,
                                  ArgumentsFor what = ArgumentsFor::kStart) {
  arguments.emplace_back("prog");
  try {
    check_options(parse_arguments(arguments, what), what);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

struct Case {
  std::vector<std::string> arguments;
  std::string where = {};  // the option that is refused; "": all are accepted
  std::string why = {};    // "": another test has this message
};

void expect(const Case& one) {
  const std::optional<Error> error = rule_refusal(one.arguments);
  const std::string name = join(one.arguments, " ");
  ASSERT_EQ(error.has_value(), !one.where.empty()) << name << (error ? error->what() : "");
  if (!error) return;
  EXPECT_THAT(*error, IsUsageError(one.where)) << name;
  if (one.why.empty()) return;
  EXPECT_EQ(error->failure(), one.why) << name;
}

TEST(OptionRules, OptionsOfVias_WantTheirs) {
  const std::string fleetd = "it has no effect without --via=fleetd";
  const std::string ssh_too = fleetd + " or --via=ssh";
  const std::string others = "it has no effect without --via=ssh or --via=slurm";
  const std::string passed = "--via passes it to the fleetruns of the nodes itself";
  const std::string each_node = "each node creates the environment of its ranks";
  const std::vector<Case> cases = {
      {{"--fleetd_port=1"}, "--fleetd_port", fleetd},
      {{"--fleetd_secret_file=f", "--via=ssh"}, "--fleetd_secret_file", fleetd},
      {{"--detach"}, "--detach", fleetd},
      {{"--detach", "--via=ssh"}, "--detach", fleetd},
      {{"--detach", "--via=fleetd"}},
      {{"--share_gpus"}, "--share_gpus", fleetd},
      {{"--share_gpus", "--via=slurm"}, "--share_gpus", fleetd},
      {{"--user=u", "--via=ssh"}, "--user", fleetd},
      {{"--chdir=/x"}, "--chdir", ssh_too},
      {{"--chdir=/x", "--via=slurm"}, "--chdir", ssh_too},
      {{"--chdir=/x", "--via=ssh"}},
      {{"--export=A=1"}},
      {{"--export=A=1", "--via=slurm"}},
      {{"--export=A=1", "--via=fleetd"}},
      {{"--via_options=-v"}, "--via_options", others},
      {{"--via_options=-v", "--via=fleetd"}, "--via_options", others},
      {{"--via_options=-v", "--via=slurm"}},
      {{"--remote_fleetrun=f"}, "--remote_fleetrun", others},
      {{"--remote_fleetrun=f", "--dry_run"}, "--remote_fleetrun", others},
      {{"--control_pipe", "--via=ssh"}, "--control_pipe", passed},
      {{"--part", "--via=slurm"}, "--part", passed},
      {{"--part"}},
      {{"--dry_run", "--via=ssh", "--rank_env=0"}, "--rank_env", each_node},
      {{"--dry_run", "--via=ssh", "--rank_env=0", "--format=shell"}, "--format shell", each_node},
      {{"--dry_run", "--via=ssh", "--format=json"}},
      {{"--secret_file=-", "--via=slurm"},
       "--secret_file -",
       "the nodes cannot read your standard input"},
      {{"--secret_file=f", "--insecure"}, "--secret_file", "it contradicts --insecure"},
      {{"--secret_file=f", "--insecure", "--via=ssh"},
       "--secret_file",
       "it contradicts --insecure"},
      {{"--metrics_token_file=f"}, "--metrics_token_file", "it has no effect without --metrics"},
  };
  for (const Case& one : cases) expect(one);
}

TEST(OptionRules, OptionsOfRestarts_WantRestarts) {
  const std::vector<Case> cases = {
      {{"--elastic_timeout=5"},
       "--elastic_timeout",
       "this job never restarts, so it does not wait for nodes"},
      {{"--elastic_timeout=5", "--max_restart=0"}, "--elastic_timeout"},
      {{"--elastic_timeout=5", "--max_restart=1"}},
      {{"--elastic_timeout=5", "--nnodes=1:2", "--max_restart=0"}},
      {{"--no_progress_restarts=5"}, "--no_progress_restarts", "this job never restarts"},
      {{"--no_progress_restarts=5", "--nnodes=1:2"}},
      {{"--no_progress_restarts=5", "--nnodes=1:2", "--max_restart=0"}, "--no_progress_restarts"},
      {{"--elastic_level=-1", "--max_restart=2"},
       "--elastic_level -1",
       "it contradicts --max_restart 2"},
      {{"--elastic_level=1", "--max_restart=0"},
       "--elastic_level 1",
       "it contradicts --max_restart 0"},
      {{"--elastic_level=1", "--max_restart=2"}},
      {{"--elastic_level=-1", "--max_restart=0"}},
  };
  for (const Case& one : cases) expect(one);
}

TEST(OptionRules, PaddlesTwoOptionsOfRestarts_FlagWinsThenLevel) {
  const auto restarts = [](std::vector<std::string> arguments) {
    arguments.emplace_back("p");
    return parse_arguments(arguments).config.restarts.max_restarts;
  };
  ::setenv("PADDLE_MAX_RESTART", "5", 1);
  EXPECT_EQ(restarts({}), 5);
  EXPECT_EQ(restarts({"--elastic_level=-1"}), 0);
  EXPECT_EQ(restarts({"--elastic_level=1"}), 5);
  ::setenv("PADDLE_ELASTIC_LEVEL", "-1", 1);  // both are Paddle's defaults
  EXPECT_EQ(restarts({}), 0);
  EXPECT_EQ(restarts({"--nnodes=1:2"}), 0);
  EXPECT_EQ(restarts({"--max_restart=2"}), 2);
  ::unsetenv("PADDLE_MAX_RESTART");
  EXPECT_EQ(restarts({"--max_restart=2"}), 2);
  ::unsetenv("PADDLE_ELASTIC_LEVEL");
}

TEST(OptionRules, EnvironmentOfOtherJobs_IsNoMistake) {
  ::setenv("PADDLE_ELASTIC_TIMEOUT", "5", 1);
  ::setenv("FLEETD_PORT", "7000", 1);
  expect({{"--nproc_per_node=1"}});
  ::unsetenv("PADDLE_ELASTIC_TIMEOUT");
  ::unsetenv("FLEETD_PORT");
}

TEST(OptionRules, ValuesThatNoNodeWouldTake_AreFoundBeforeAnyIsAsked) {
  const std::vector<Case> cases = {
      {{"--dialect=torhc"}, "--dialect"},
      {{"--ranks=x"}, "--ranks", "'x' is neither a rank nor a range of ranks"},
      {{"--tee=9"}, "--tee", "'9' is not a choice of streams"},
      {{"--log_total_size=1K"}, "--log_total_size", "'1K' is not a size of at least 64K"},
      {{"--elastic_level=0"}, "--elastic_level"},
      {{"--nnodes=none"}, "--nnodes", "'none' is not a number of nodes"},
      {{"--run_mode=rpc"}, "--run_mode"},
      {{"--dialect=mpich", "--debug_rank=0"},
       "--debug_rank",
       "a rank of --dialect=mpich inherits a socket, which fleetrun debug cannot give it"},
      {{"--server_num=0", "--worker_num=2"},
       "--server_num 0",
       "each node needs at least one server and one trainer"},
      {{"--ips=a:4,b", "--server_num=1"},
       "--ips a:4",
       "--server_num and --worker_num apply to every node"},
  };
  for (Case one : cases) {
    expect(one);
    one.arguments.emplace_back("--via=fleetd");
    expect(one);
  }
}

TEST(OptionRules, Doctor_TakesWhatIsOfAStart_AndChecksIt) {
  for (const char* option :
       {"--via=ssh", "--detach", "--share_gpus", "--export=A", "--control_pipe", "--part",
        "--preflight", "--debug_rank=0", "--remote_fleetrun=f", "--fleetd_port=1"}) {
    const std::optional<Error> error = rule_refusal({option}, ArgumentsFor::kDoctor);
    ASSERT_TRUE(error) << option;
    EXPECT_EQ(error->failure(), "it applies only to a start") << option;
  }
  EXPECT_FALSE(rule_refusal({"--grace=3", "--ips=a,b", "--dialect=jax"}, ArgumentsFor::kDoctor));
  const std::optional<Error> mistyped = rule_refusal({"--dialect=jaxx"}, ArgumentsFor::kDoctor);
  ASSERT_TRUE(mistyped);
  EXPECT_EQ(mistyped->next(), "did you mean 'jax'?");
}

TEST(OptionRules, ContradictingPrintOptions_AreRefused) {
  EXPECT_THROW(parse_arguments({"--print_config", "--dry_run", "p"}), Error);
  EXPECT_THROW(parse_arguments({"--dry_run"}, ArgumentsFor::kDoctor), Error);
  EXPECT_THROW(parse_arguments({"--format=shell"}, ArgumentsFor::kDoctor), Error);
}

TEST(ExportedSecrets, AreNotPrinted) {
  const LaunchRequest request =
      parse_arguments({"--via=ssh", "--export=my_token=t0p,MODE=fast,NCCL_*", "prog"});
  const std::string printed = print_options(request.settings) +
                              configuration_block(request.settings, request.program, true);
  EXPECT_THAT(printed, AllOf(HasSubstr("my_token=******"), HasSubstr("MODE=fast"),
                             HasSubstr("NCCL_*"), Not(HasSubstr("t0p"))));
}

}  // namespace
}  // namespace fleet
