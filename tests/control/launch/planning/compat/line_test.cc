// Options of other launchers on fleetrun's command line.
#include "launch/planning/compat/line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/error.h"
#include "launch/planning/arguments.h"
#include "launch/planning/options.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "" if the message has none.
std::string corrected_line(const Error& error) {
  const std::string text = error.what(), begin = "\ncorrected: ";
  const size_t at = text.rfind(begin);
  return at == std::string::npos ? "" : text.substr(at + begin.size());
}

Error line_error(const std::vector<std::string>& arguments) {
  return thrown_by([&] { parse_arguments(arguments); });
}

TEST(CompatOptions, EachSaysOneThing) {
  for (const CompatOption& option : compat_options()) {
    const int said =
        !option.ignored.empty() + !option.refused.empty() + (option.translate != nullptr);
    EXPECT_EQ(said, 1) << option.flags[0];
    EXPECT_FALSE(option.of.empty()) << option.flags[0];
    for (const std::string& flag : option.flags) EXPECT_TRUE(flag.starts_with("-")) << flag;
  }
}

// An earlier option with the same flag shadows this one unless their values differ.
TEST(CompatOptions, SharedFlags_AreDistinguishedByTheirValues) {
  std::set<std::string> taken;
  for (const OptionGroup* group : {&launch_option_group(), &inspect_options()}) {
    for (const Option& option : group->options()) {
      for (const std::string& flag : option.flags()) taken.insert(canonical_flag(flag));
    }
  }
  for (const CompatOption& option : compat_options()) {
    for (const std::string& flag : option.flags) {
      EXPECT_TRUE(!taken.contains(canonical_flag(flag)) || option.when) << flag;
      taken.insert(canonical_flag(flag));
    }
  }
}

// may_be_foreign() is a list, because a start has no time to find it out.
TEST(CompatOptions, OurOptionsWithAFlagOfAnotherLauncher_MayBeForeign) {
  std::set<std::string> shared;
  for (const CompatOption& option : compat_options()) {
    for (const std::string& flag : option.flags) shared.insert(canonical_flag(flag));
  }
  for (const OptionGroup* group : {&launch_option_group(), &inspect_options()}) {
    for (const Option& option : group->options()) {
      const std::vector<std::string> flags = option.flags();
      const bool is_shared = std::any_of(flags.begin(), flags.end(), [&](const auto& flag) {
        return shared.contains(canonical_flag(flag));
      });
      EXPECT_EQ(may_be_foreign(option), is_shared) << option.key;
    }
  }
}

TEST(CompatLine, OptionsWithoutMeaning_AreAcceptedAndNamed) {
  const LaunchRequest request = parse_arguments({"--oversubscribe", "--nproc_per_node=2", "p"});
  EXPECT_EQ(request.settings.integer("nproc_per_node"), 2);
  EXPECT_THAT(request.ignored, HasSubstr("--oversubscribe ("));
  EXPECT_THAT(parse_arguments({"--nproc_per_node=2", "p", "--oversubscribe"}).ignored, IsEmpty());
}

TEST(CompatLine, IdleOptions_OfOneReason_StandTogether) {
  EXPECT_EQ(ignored_flags_text({{"--a", "x"}, {"--b", "x"}, {"-c", "y"}}), "--a, --b (x), -c (y)");
}

TEST(CompatLine, OptionsWithoutEffect_AreLeftOutOfTheCorrectedLine) {
  EXPECT_EQ(corrected_line(line_error({"--oversubscribe", "--ipss=127.0.0.1", "p", "-x"})),
            "fleetrun --ips=127.0.0.1 p -x");
}

// Without them, the line would be another job.
TEST(CompatLine, RefusedOptions_HaveNoCorrectedLine) {
  EXPECT_EQ(corrected_line(line_error({"--heter_workers", "a:1", "--ipss=127.0.0.1", "p"})), "");
  EXPECT_EQ(corrected_line(line_error({"--xpus=0,1", "--nproc_per_node=2", "p"})), "");
}

TEST(CompatLine, VariablesOfSeveralOptions_StandOnceInTheCorrectedLine) {
  EXPECT_EQ(corrected_line(line_error({"-x", "A=1", "-x", "B=2", "--ipss=127.0.0.1", "p"})),
            "fleetrun --export=A=1,B=2 --ips=127.0.0.1 p");
}

TEST(CompatLine, RanksOfTheJob_MustDivideByItsNodes) {
  const auto ranks = [](std::vector<std::string> words) {
    words.emplace_back("p");
    return parse_arguments(words).settings.integer("nproc_per_node");
  };
  EXPECT_EQ(ranks({"-np", "4"}), 4);
  EXPECT_EQ(ranks({"-n8", "--nnodes=2", "--master=10.0.0.1"}), 4);
  EXPECT_EQ(ranks({"--num_processes=8", "--nnodes=2", "--master=10.0.0.1"}), 4);
  EXPECT_EQ(ranks({"-np", "8", "--ips=a,b"}), 4);
  EXPECT_THAT(line_error({"-np", "7", "--ips=a,b", "p"}).what(),
              AllOf(HasSubstr("7 cannot be divided by 2"), HasSubstr("--nproc_per_node=N")));
  EXPECT_THAT(line_error({"-np", "7", "--nnodes=1:2", "p"}), IsUsageError());
  EXPECT_THAT(line_error({"-np", "9", "-H", "a:4,b:4", "p"}), IsUsageError());
  EXPECT_THAT(line_error({"-np", "4", "--nproc_per_node=2", "p"}), IsUsageError());
  EXPECT_THAT(line_error({"-np", "four", "p"}), IsUsageError("-np"));
}

TEST(CompatLine, FlagsOfSeveralLaunchers_AreReadByTheirCompany) {
  EXPECT_EQ(corrected_line(line_error({"-N", "2", "p"})), "fleetrun --nproc_per_node=2 p");
  EXPECT_EQ(
      parse_arguments({"-N", "2", "--bind-to", "none", "p"}).settings.integer("nproc_per_node"), 2);
  EXPECT_EQ(corrected_line(line_error({"-N", "2", "--mpi=pmix", "p"})),
            "srun --ntasks-per-node=1 --nodes=2 fleetrun p");
  EXPECT_EQ(parse_arguments({"--host=10.0.0.1", "p"}).settings.text("host"), "10.0.0.1");
  EXPECT_EQ(parse_arguments({"-t", "3", "p"}).settings.text("tee"), "3");
  EXPECT_EQ(corrected_line(line_error({"-t", "01:00:00", "p"})),
            "srun --ntasks-per-node=1 --time=01:00:00 fleetrun p");
}

// mpirun -npernode 2 -np 4 uses the first two nodes.
TEST(CompatLine, RanksOfTheJobAndOfANode_ChooseTheFirstNodes) {
  const auto nodes = [](std::vector<std::string> words) {
    words.emplace_back("p");
    return list_text(parse_arguments(words).config.nodes.listed.value);
  };
  EXPECT_EQ(nodes({"-np", "4", "-npernode", "2", "-H", "a:8,b:8,c:8"}), "a:2,b:2");
  EXPECT_EQ(nodes({"-np", "4", "--map-by", "ppr:2:node", "-H", "a:8,b:8"}), "a:2,b:2");
  EXPECT_EQ(nodes({"-n", "2", "-ppn", "2", "-hosts", "a,b"}), "a");
  EXPECT_THAT(line_error({"-np", "6", "-npernode", "2", "-H", "a:8,b:8", "p"}), IsUsageError());
  EXPECT_THAT(line_error({"-np", "4", "-npernode", "2", "-H", "a:1,b:8", "p"}), IsUsageError());
}

TEST(CompatLine, SeveralPrograms_AreRefused) {
  EXPECT_THAT(line_error({"-n", "1", "a", ":", "-n", "2", "b"}), IsUsageError(":"));
  EXPECT_THAT(line_error({"--bind-to", "core", "a", "1", ":", "b"}), IsUsageError(":"));
  EXPECT_EQ(parse_arguments({"--nproc_per_node=2", "a", ":", "b"}).program.size(), 3u);
}

// Each task of srun is a rank; the step that starts fleetrun has one task a node.
TEST(CompatLine, CoresOfARank_AreThoseOfItsNodeForSrun) {
  EXPECT_EQ(corrected_line(line_error({"-p", "v", "--gres=gpu:8", "--ntasks=8",
                                       "--ntasks-per-node=8", "--cpus-per-task=16", "p"})),
            "srun --ntasks-per-node=1 --gres=gpu:8 --partition=v --cpus-per-task=128 fleetrun "
            "--nproc_per_node=8 p");
}

TEST(CompatLine, InAnAllocation_SlurmTakesWhatIsIts) {
  ::setenv("SLURM_JOB_ID", "7", 1);
  ::setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
  const Settings settings =
      parse_arguments({"-N2", "-n8", "--gres=gpu:4", "--exclusive", "p"}).settings;
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_JOB_NODELIST");
  EXPECT_EQ(settings.text("via"), "slurm");
  EXPECT_EQ(settings.text("nnodes"), "2");
  EXPECT_EQ(settings.integer("nproc_per_node"), 4);
  EXPECT_EQ(settings.text("via_options"), "--gres=gpu:4 --exclusive");
}

TEST(CompatLine, EtcdIsNotNeeded) {
  EXPECT_THAT(parse_arguments({"--master=etcd://10.0.0.1:2379", "p"}).ignored,
              AllOf(HasSubstr("--master ("), HasSubstr("needs no etcd")));
  EXPECT_EQ(corrected_line(line_error({"--master", "etcd://10.0.0.1:2379", "--nnodes=2", "p"})),
            "fleetrun --master=10.0.0.1 --nnodes=2 p");
  const LaunchRequest request = parse_arguments(
      {"--elastic_server=127.0.0.1:2379", "--np=2:4", "--master=10.0.0.1", "train.py"});
  EXPECT_EQ(request.settings.text("nnodes"), "2:4");
  EXPECT_THAT(request.ignored, AllOf(HasSubstr("--elastic_server ("), HasSubstr("needs no etcd")));
}

TEST(CompatLine, DevicesOfOthers_AreRefusedByName) {
  for (const char* flag : {"--xpus=0,1", "--npus=0", "--mlus=0,1", "--selected_npus=0"}) {
    EXPECT_THAT(line_error({flag, "p"}), IsUsageError()) << flag;
  }
}

}  // namespace
}  // namespace fleet
