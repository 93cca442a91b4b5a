// Every option counts in each way to start, or is refused there.
#include "launch/planning/option_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "launch/planning/options.h"
#include "launch/starting/startup_messages.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(std::vector<std::string> arguments, ArgumentsFor what = ArgumentsFor::kStart) {
  arguments.emplace_back("prog");
  try {
    check_options(parse_arguments(arguments, what), what);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "accepted";
}

struct Case {
  std::vector<std::string> arguments;
  std::string says;  // in the refusal; "accepted": none
};

TEST(OptionRules, OptionsOfVias_WantTheirs) {
  const std::vector<Case> cases = {
      {{"--fleetd_port=1"}, "--fleetd_port: it has no effect without --via=fleetd"},
      {{"--fleetd_secret_file=f", "--via=ssh"}, "has no effect without --via=fleetd"},
      {{"--detach"}, "--detach: it has no effect without --via=fleetd"},
      {{"--detach", "--via=ssh"}, "has no effect without --via=fleetd"},
      {{"--detach", "--via=fleetd"}, "accepted"},
      {{"--share_gpus"}, "--share_gpus: it has no effect without --via=fleetd"},
      {{"--share_gpus", "--via=slurm"}, "has no effect without --via=fleetd"},
      {{"--user=u", "--via=ssh"}, "has no effect without --via=fleetd"},
      {{"--chdir=/x"}, "it has no effect without --via=fleetd or --via=ssh"},
      {{"--chdir=/x", "--via=slurm"}, "it has no effect without --via=fleetd or --via=ssh"},
      {{"--chdir=/x", "--via=ssh"}, "accepted"},
      {{"--export=A=1"}, "accepted"},
      {{"--export=A=1", "--via=slurm"}, "accepted"},
      {{"--export=A=1", "--via=fleetd"}, "accepted"},
      {{"--via_options=-v"}, "it has no effect without --via=ssh or --via=slurm"},
      {{"--via_options=-v", "--via=fleetd"}, "it has no effect without --via=ssh or --via=slurm"},
      {{"--via_options=-v", "--via=slurm"}, "accepted"},
      {{"--remote_fleetrun=f"}, "it has no effect without --via=ssh or --via=slurm"},
      {{"--remote_fleetrun=f", "--dry_run"}, "it has no effect without --via=ssh or --via=slurm"},
      {{"--control_pipe", "--via=ssh"}, "--control_pipe: --via passes it"},
      {{"--part", "--via=slurm"}, "--part: --via passes it"},
      {{"--part"}, "accepted"},
      {{"--dry_run", "--via=ssh", "--rank_env=0"}, "--rank_env: each node creates the environment"},
      {{"--dry_run", "--via=ssh", "--rank_env=0", "--format=shell"},
       "--format shell: each node creates"},
      {{"--dry_run", "--via=ssh", "--format=json"}, "accepted"},
      {{"--secret_file=-", "--via=slurm"}, "cannot read your standard input"},
      {{"--secret_file=f", "--insecure"}, "contradicts --insecure"},
      {{"--secret_file=f", "--insecure", "--via=ssh"}, "contradicts --insecure"},
      {{"--metrics_token_file=f"}, "--metrics_token_file: it has no effect without --metrics"},
  };
  for (const Case& one : cases) {
    EXPECT_THAT(refusal(one.arguments), HasSubstr(one.says)) << one.arguments[0];
  }
}

TEST(OptionRules, OptionsOfRestarts_WantRestarts) {
  const std::vector<Case> cases = {
      {{"--elastic_timeout=5"},
       "--elastic_timeout: this job never restarts, so it does not wait for nodes"},
      {{"--elastic_timeout=5", "--max_restart=0"},
       "this job never restarts, so it does not wait for nodes"},
      {{"--elastic_timeout=5", "--max_restart=1"}, "accepted"},
      {{"--elastic_timeout=5", "--nnodes=1:2", "--max_restart=0"}, "accepted"},
      {{"--no_progress_restarts=5"}, "this job never restarts"},
      {{"--no_progress_restarts=5", "--nnodes=1:2"}, "accepted"},
      {{"--no_progress_restarts=5", "--nnodes=1:2", "--max_restart=0"}, "never restarts"},
      {{"--elastic_level=-1", "--max_restart=2"},
       "--elastic_level -1: it contradicts --max_restart 2"},
      {{"--elastic_level=1", "--max_restart=0"}, "it contradicts --max_restart 0"},
      {{"--elastic_level=1", "--max_restart=2"}, "accepted"},
      {{"--elastic_level=-1", "--max_restart=0"}, "accepted"},
  };
  for (const Case& one : cases) {
    EXPECT_THAT(refusal(one.arguments), HasSubstr(one.says)) << one.arguments[0];
  }
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
  EXPECT_EQ(refusal({"--nproc_per_node=1"}), "accepted");
  ::unsetenv("PADDLE_ELASTIC_TIMEOUT");
  ::unsetenv("FLEETD_PORT");
}

TEST(OptionRules, ValuesThatNoNodeWouldTake_AreFoundBeforeAnyIsAsked) {
  const std::vector<Case> cases = {
      {{"--dialect=torhc"}, "did you mean 'torch'?"},
      {{"--ranks=x"}, "neither a rank"},
      {{"--tee=9"}, "is not a choice of streams"},
      {{"--log_total_size=1K"}, "at least 64K"},
      {{"--elastic_level=0"}, "not supported"},
      {{"--nnodes=none"}, "not a number of nodes"},
      {{"--run_mode=rpc"}, "not supported"},
      {{"--dialect=mpich", "--debug_rank=0"}, "inherits a socket"},
      {{"--server_num=0", "--worker_num=2"}, "--server_num 0: each node needs at least one server"},
      {{"--ips=a:4,b", "--server_num=1"}, "--ips a:4: --server_num and --worker_num apply"},
  };
  for (Case one : cases) {
    EXPECT_THAT(refusal(one.arguments), HasSubstr(one.says)) << one.arguments[0];
    one.arguments.emplace_back("--via=fleetd");
    EXPECT_THAT(refusal(one.arguments), HasSubstr(one.says)) << one.arguments[0];
  }
}

TEST(OptionRules, Doctor_TakesWhatIsOfAStart_AndChecksIt) {
  for (const char* option :
       {"--via=ssh", "--detach", "--share_gpus", "--export=A", "--control_pipe", "--part",
        "--preflight", "--debug_rank=0", "--remote_fleetrun=f", "--fleetd_port=1"}) {
    EXPECT_THAT(refusal({option}, ArgumentsFor::kDoctor), HasSubstr("it applies only to a start"))
        << option;
  }
  EXPECT_EQ(refusal({"--grace=3", "--ips=a,b", "--dialect=jax"}, ArgumentsFor::kDoctor),
            "accepted");
  EXPECT_THAT(refusal({"--dialect=jaxx"}, ArgumentsFor::kDoctor), HasSubstr("'jax'"));
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
