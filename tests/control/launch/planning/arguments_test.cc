#include "launch/planning/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/options.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

// Sets a variable for one test.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~ScopedEnv() { ::unsetenv(name_); }

 private:
  const char* name_;
};

Error usage_error(const std::vector<std::string>& arguments) {
  return thrown_by([&] { parse_arguments(arguments); });
}

TEST(Arguments, AfterTheProgram_BelongsToTheProgram) {
  const LaunchRequest request =
      parse_arguments({"--nproc_per_node=2", "train.py", "--lr", "0.1", "--gpus=9", "--help"});
  EXPECT_EQ(request.action, LaunchRequest::Action::kRun);
  EXPECT_THAT(request.program, ElementsAre("train.py", "--lr", "0.1", "--gpus=9", "--help"));
  EXPECT_EQ(request.settings.integer("nproc_per_node"), 2);
  EXPECT_FALSE(request.settings.given("gpus"));
}

TEST(Arguments, PathsBelowTheHomeFolder_AreExpandedButNotTheProgramsOwn) {
  const std::string before = ::getenv("HOME") ? ::getenv("HOME") : "/";
  {
    const ScopedEnv home("HOME", "/h/me");
    const ScopedEnv logs("PADDLE_LOG_DIR", "~/from_environment");
    EXPECT_EQ(parse_arguments({"a"}).config.logs.folder.value, "/h/me/from_environment");
    const LaunchRequest request = parse_arguments(
        {"--log_dir=~/logs", "--secret_file", "~/s", "--on_end=~/end", "~/job.json", "~/x"});
    EXPECT_EQ(request.config.logs.folder.value, "/h/me/logs");
    EXPECT_EQ(request.config.security.secret_file.value, "/h/me/s");
    EXPECT_EQ(request.config.end_command, "~/end");
    EXPECT_THAT(request.program, ElementsAre("/h/me/job.json", "~/x"));
    EXPECT_EQ(
        parse_arguments({"--compat=torchrun", "--log-dir=~/t", "a.py"}).config.logs.folder.value,
        "/h/me/t");
    EXPECT_THAT(usage_error({"--log_dir=~you/logs", "a"}), IsUsageError(HasSubstr("'log_dir'")));
  }
  ::setenv("HOME", before.c_str(), 1);
}

TEST(Arguments, DoubleDashBeforeTheProgram_IsTakenAway) {
  EXPECT_THAT(parse_arguments({"--", "prog", "-x"}).program, ElementsAre("prog", "-x"));
}

TEST(Arguments, Aliases_MeanGpus) {
  for (const char* flag : {"--gpus=0,1", "--selected_gpus=0,1", "--devices=0,1"}) {
    EXPECT_EQ(parse_arguments({flag, "p"}).settings.text("gpus"), "0,1") << flag;
  }
}

TEST(Arguments, BlanksInIps_AreFine) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--ips=10.0.0.1, 10.0.0.2", "p"},
           {"--ips", "10.0.0.1 , 10.0.0.2", "p"},
           {"--ips=10.0.0.1,", "10.0.0.2", "p"},
           {"--gpus", "0", "--ips", "10.0.0.1,", "10.0.0.2", "p"}}) {
    const LaunchRequest request = parse_arguments(arguments);
    EXPECT_THAT(request.settings.texts("ips"), ElementsAre("10.0.0.1", "10.0.0.2"));
    EXPECT_THAT(request.program, ElementsAre("p"));
  }
}

TEST(Arguments, FlagOverEnvironmentOverDefault) {
  EXPECT_EQ(parse_arguments({"p"}).settings.text("log_dir"), "log");
  const ScopedEnv env("PADDLE_LOG_DIR", "from_env");
  const LaunchRequest request = parse_arguments({"p"});
  EXPECT_EQ(request.settings.text("log_dir"), "from_env");
  EXPECT_EQ(request.settings.origin("log_dir"), "environment PADDLE_LOG_DIR");
  const LaunchRequest flagged = parse_arguments({"--log_dir=from_flag", "p"});
  EXPECT_EQ(flagged.settings.text("log_dir"), "from_flag");
  EXPECT_EQ(flagged.settings.origin("log_dir"), "--log_dir");
}

TEST(Arguments, PaddlesOlderVariable_IsRead) {
  const ScopedEnv env("FLAGS_START_PORT", "7000");
  EXPECT_EQ(parse_arguments({"p"}).settings.integer("start_port"), 7000);
}

TEST(Arguments, DashesInNames_AreUnderscores) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--nproc-per-node=2"},
                                                {"--nproc-per-node", "2"},
                                                {"--nproc_per-node=2"}}) {
    std::vector<std::string> all = words;
    all.emplace_back("p");
    const LaunchRequest request = parse_arguments(all);
    EXPECT_EQ(request.settings.integer("nproc_per_node"), 2);
    EXPECT_EQ(request.program, (std::vector<std::string>{"p"}));
  }
}

TEST(Arguments, UnknownFlag_NamesTheNearest) {
  EXPECT_THAT(usage_error({"--ipss=1", "p"}).what(), HasSubstr("did you mean '--ips'?"));
  EXPECT_THAT(usage_error({"--xyzzyplugh", "p"}).what(),
              HasSubstr("unknown option '--xyzzyplugh'"));
}

// Without the line that would leave them out: it would train where something else was asked for.
TEST(Arguments, OptionsOfFleetWorker_BelongBehindTheJobFile) {
  for (const char* option : {"--predict", "--export-onnx", "--set", "--explain", "--check",
                             "--device", "--raw", "--jpeg", "--quality", "--size"}) {
    EXPECT_THAT(usage_error({"--nproc_per_node=2", option, "x", "job.json"}).failure(),
                HasSubstr("option of fleet-worker"));
  }
}

TEST(Arguments, AllMistakes_AreReportedTogether_WithTheCorrectedLine) {
  EXPECT_STREQ(
      usage_error({"--ipss=10.0.0.1", "--nproc-per-nodes", "2", "p", "--ip", "a b"}).what(),
      "2 options cannot be used:\n"
      "  unknown option '--ipss'; did you mean '--ips'?\n"
      "  unknown option '--nproc-per-nodes'; did you mean '--nproc_per_node'?\n"
      "corrected: fleetrun --ips=10.0.0.1 --nproc_per_node 2 p --ip 'a b'");
}

// A line without them might be another job.
TEST(Arguments, UnknownOptions_AreNotLeftOutOfACorrectedLine) {
  EXPECT_THAT(usage_error({"--ipss=10.0.0.1", "--xyzzyplugh", "7", "-z", "p"}).what(),
              AllOf(HasSubstr("--ips"), HasSubstr("--xyzzyplugh"), HasSubstr("-z"),
                    Not(HasSubstr("corrected"))));
}

TEST(Arguments, ValueThatIsMissing_IsNotTheNextOption) {
  EXPECT_THAT(usage_error({"-x", "--nproc_per_node=2", "p"}), IsUsageError());
  EXPECT_THAT(usage_error({"-np", "--typo", "p"}).what(),
              HasSubstr("-np: it needs a value; write -np N"));
  EXPECT_THAT(usage_error({"--mca", "btl"}), IsUsageError());
}

TEST(Arguments, ValueThatIsMissing_IsNotTheProgram) {
  const std::string job = ::testing::TempDir() + "arguments_test.json";
  std::ofstream(job) << "{}";
  for (const auto& [option, values] :
       {std::pair{"--replace_trainers", "auto|always|never"}, {"--server_num", "N"}}) {
    const std::string what = usage_error({"--worker_num=2", option, job}).what();
    EXPECT_THAT(what, HasSubstr(std::string(option) + ": it needs a value; write " + option + "=" +
                                values));
  }
  EXPECT_EQ(parse_arguments({"--server_num", "1", job}).program, std::vector<std::string>{job});
  EXPECT_THAT(usage_error({"--replace_trainers", "sometimes", job}),
              IsUsageError("--replace_trainers"));
}

TEST(Arguments, OptionsOfOtherModes_AreRefusedWithTheReason) {
  EXPECT_THAT(usage_error({"--heter_workers=a:1", "p"}), IsUsageError());
  EXPECT_THAT(usage_error({"--elastic_server=10.0.0.1:2379", "p"}), IsUsageError());
}

TEST(Arguments, BadValue_NamesFlagAndRange) {
  EXPECT_THAT(usage_error({"--nproc_per_node=two", "p"}), IsUsageError("--nproc_per_node"));
  EXPECT_THAT(usage_error({"--rdzv_port=70000", "p"}), IsUsageError("--rdzv_port"));
  EXPECT_THAT(usage_error({"--log_level=LOUD", "p"}), IsUsageError("--log_level"));
}

TEST(Arguments, BadValues_AreReportedTogether) {
  const Error error = usage_error({"--nproc_per_node=two", "--rdzv_port=70000", "p"});
  EXPECT_THAT(split(error.failure(), '\n'),
              ElementsAre("2 settings cannot be used:", StartsWith("--nproc_per_node: "),
                          StartsWith("--rdzv_port: ")));
}

TEST(Arguments, BadValueInTheEnvironment_NamesTheVariable) {
  const ScopedEnv env("PADDLE_NPROC_PER_NODE", "many");
  EXPECT_THAT(usage_error({"p"}), IsUsageError("environment PADDLE_NPROC_PER_NODE"));
}

TEST(Arguments, NoProgram_IsAnError) {
  EXPECT_THAT(usage_error({}), IsUsageError());
  EXPECT_THAT(usage_error({"--gpus=0"}), IsUsageError());
}

TEST(Arguments, HelpAndVersion_NeedNoProgram) {
  EXPECT_EQ(parse_arguments({"--help"}).action, LaunchRequest::Action::kHelp);
  EXPECT_EQ(parse_arguments({"--version"}).action, LaunchRequest::Action::kVersion);
  EXPECT_EQ(parse_arguments({"--print_config"}).action, LaunchRequest::Action::kPrintConfig);
}

TEST(Arguments, PrintConfig_ShowsOrigins) {
  const std::vector<std::string> lines =
      split(print_options(parse_arguments({"--print_config", "--job_id=night"}).settings), '\n');
  EXPECT_THAT(lines, IsSupersetOf({"job_id = \"night\"  (--job_id)", "log_dir = \"log\"  (default)",
                                   "nnodes = none  (default)"}));
}

TEST(LaunchHelp, FitsAScreenAndAllNamesEveryOption) {
  const std::string help = launch_help();
  EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 45);
  size_t longest = 0;
  for (size_t start = 0; start < help.size();) {
    const size_t end = help.find('\n', start);
    longest = std::max(longest, end - start);
    start = end + 1;
  }
  EXPECT_LE(longest, 80u);
  const std::string all = launch_help(/*all=*/true);
  for (const Option& option : launch_options()) {
    if (option.internal) continue;
    EXPECT_THAT(option.common ? help : all, HasSubstr("--" + option.key));
    EXPECT_THAT(all, HasSubstr("--" + option.key));
  }
  EXPECT_THAT(all, HasSubstr("mpirun: -H -hosts"));
  EXPECT_THAT(help, Not(HasSubstr("mpirun: -H")));
  size_t examples = 0;
  for (size_t at = 0; (at = help.find("\n  fleetrun ", at)) != std::string::npos; ++at) ++examples;
  EXPECT_EQ(examples, 4u);
}

TEST(LaunchOptions, SchemaAndFlags_AreTheSameList) {
  ASSERT_EQ(launch_schema().keys().size(), launch_options().size());
  for (size_t i = 0; i < launch_options().size(); ++i) {
    EXPECT_EQ(launch_schema().keys()[i].path, launch_options()[i].key);
  }
}

TEST(Arguments, HelpTopic_IsRead) {
  EXPECT_EQ(parse_arguments({"--help"}).help_on, "");
  EXPECT_EQ(parse_arguments({"--help", "all"}).help_on, "all");
  EXPECT_EQ(parse_arguments({"-h", "logs"}).help_on, "logs");
  EXPECT_EQ(parse_arguments({"-V"}).action, LaunchRequest::Action::kVersion);
}

TEST(Arguments, ShortFlags) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-t", "3", "-r", "1"},
                                                {"-t3", "-r1"},
                                                {"--tee=3", "--redirect", "1"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--log_overwrite", "prog", "-t", "--x="});
    const LaunchRequest request = parse_arguments(all);
    EXPECT_EQ(request.settings.text("tee"), "3");
    EXPECT_EQ(request.settings.text("redirects"), "1");
    EXPECT_TRUE(request.settings.boolean("log_overwrite"));
    EXPECT_EQ(request.program, (std::vector<std::string>{"prog", "-t", "--x="}));
  }
}

TEST(Arguments, WordsOfPaddlesDocuments_AreRead) {
  for (const char* level : {"--log_level=debug", "--log-level=Debug", "--log_level=DEBUG"}) {
    EXPECT_EQ(parse_arguments({level, "p"}).settings.text("log_level"), "DEBUG") << level;
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--log_overwrite", "True"},
                                                {"--log_overwrite=True"},
                                                {"--log_overwrite=1"},
                                                {"--log_overwrite"}}) {
    std::vector<std::string> all = words;
    all.emplace_back("true");
    const LaunchRequest request = parse_arguments(all);
    EXPECT_TRUE(request.settings.boolean("log_overwrite")) << words[0];
    EXPECT_EQ(request.program, (std::vector<std::string>{"true"}));
  }
  EXPECT_FALSE(
      parse_arguments({"--log_overwrite", "False", "p"}).settings.boolean("log_overwrite"));
}

TEST(Arguments, AfterTwoDashes_WordsAreTheProgramsOwn) {
  const std::vector<std::string> program = {"ls", "--color=", "--x", "y"};
  std::vector<std::string> all = {"--"};
  all.insert(all.end(), program.begin(), program.end());
  EXPECT_EQ(parse_arguments(all).program, program);
}

}  // namespace
}  // namespace fleet
