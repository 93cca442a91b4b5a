// Options of other launchers on fleetrun's command line.
#include "launch/compat/line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "launch/arguments.h"
#include "launch/options.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string usage_error(const std::vector<std::string>& arguments) {
  try {
    parse_arguments(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(CompatOptions, EachSaysOneThing) {
  for (const CompatOption& option : compat_options()) {
    const int said = !option.idle.empty() + !option.refused.empty() + (option.translate != nullptr);
    EXPECT_EQ(said, 1) << option.flags[0];
    EXPECT_FALSE(option.of.empty()) << option.flags[0];
    for (const std::string& flag : option.flags) EXPECT_TRUE(flag.starts_with("-")) << flag;
  }
}

// What ours has too would never be read as theirs, unless its values tell it.
TEST(CompatOptions, FlagsOfOurs_AreTakenByTheirValuesOnly) {
  std::set<std::string> ours;
  for (const OptionGroup* group : {&launch_option_group(), &look_at_options()}) {
    for (const Option& option : group->options()) {
      for (const std::string& flag : option.flags()) ours.insert(canonical_flag(flag));
    }
  }
  for (const CompatOption& option : compat_options()) {
    for (const std::string& flag : option.flags) {
      EXPECT_EQ(ours.contains(canonical_flag(flag)), option.when != nullptr) << flag;
    }
  }
}

TEST(CompatLine, OptionsWithoutMeaning_AreAcceptedAndNamed) {
  const LaunchRequest request = parse_arguments({"--standalone", "--nproc_per_node=2", "p"});
  EXPECT_EQ(request.settings.integer("nproc_per_node"), 2);
  EXPECT_THAT(request.idle, HasSubstr("--standalone ("));
  EXPECT_THAT(parse_arguments({"--nproc_per_node=2", "p", "--standalone"}).idle, IsEmpty());
}

TEST(CompatLine, IdleOptions_OfOneReason_StandTogether) {
  EXPECT_EQ(idle_text({{"--a", "x"}, {"--b", "x"}, {"-c", "y"}}), "--a, --b (x), -c (y)");
}

TEST(CompatLine, RefusedOptions_AreLeftOutOfTheCorrectedLine_WithTheirValues) {
  EXPECT_EQ(
      usage_error({"--heter_workers", "a:1", "--standalone", "--ip=127.0.0.1", "p", "-x"}),
      "2 options cannot be used:\n"
      "  --heter_workers a:1: heterogeneous parameter servers are not supported; leave it out\n"
      "  unknown option '--ip'; did you mean '--ips'?\n"
      "corrected: fleetrun --ips=127.0.0.1 p -x");
}

}  // namespace
}  // namespace fleet
