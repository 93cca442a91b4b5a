#include "base/home_folder.h"

#include <gmock/gmock.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "base/command_line.h"
#include "base/config.h"
#include "base/env.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct HomeFolder : ::testing::Test {
  HomeFolder() { ::setenv("HOME", "/h/me", 1); }
  ~HomeFolder() override {
    if (before) ::setenv("HOME", before->c_str(), 1);
  }
  const std::optional<std::string> before = get_env("HOME");
};

TEST_F(HomeFolder, LeadingTilde_IsTheHomeFolder) {
  EXPECT_EQ(expand_home("~"), "/h/me");
  EXPECT_EQ(expand_home("~/"), "/h/me/");
  EXPECT_EQ(expand_home("~/a/~b"), "/h/me/a/~b");
  for (const char* other : {"", "a", "a/~/b", "./~/b", "/~", "-", "auto"}) {
    EXPECT_EQ(expand_home(other), other);
  }
  ::setenv("HOME", "/h/me//", 1);
  EXPECT_EQ(expand_home("~/a"), "/h/me/a");
  ::setenv("HOME", "/", 1);
  EXPECT_EQ(expand_home("~/a"), "/a");
  EXPECT_EQ(expand_home("~"), "/");
}

TEST_F(HomeFolder, WithoutHome_IsThatOfTheUser) {
  const passwd* user = ::getpwuid(::geteuid());
  if (!user) GTEST_SKIP() << "this user has no entry";
  ::unsetenv("HOME");
  EXPECT_EQ(expand_home("~"), user->pw_dir);
  ::setenv("HOME", "", 1);
  EXPECT_EQ(expand_home("~"), user->pw_dir);
}

TEST_F(HomeFolder, OfAnotherUser_IsRefused) {
  for (const char* path : {"~you", "~you/x", "~~"}) {
    EXPECT_THAT(thrown_by([&] { expand_home(path, "--log_dir"); }), IsUsageError("--log_dir"));
    EXPECT_THAT(thrown_by([&] { expand_home(path); }), IsUsageError(path));
  }
}

TEST_F(HomeFolder, Variable_IsExpanded) {
  ::setenv("FLEET_TEST_PATH", "~/x", 1);
  EXPECT_EQ(get_env_path("FLEET_TEST_PATH"), "/h/me/x");
  ::setenv("FLEET_TEST_PATH", "~you", 1);
  EXPECT_THAT(thrown_by([] { get_env_path("FLEET_TEST_PATH"); }),
              IsUsageError("environment FLEET_TEST_PATH"));
  ::unsetenv("FLEET_TEST_PATH");
  EXPECT_EQ(get_env_path("FLEET_TEST_PATH"), std::nullopt);
}

TEST_F(HomeFolder, KeysThatArePaths_AreExpandedOthersAreNot) {
  Schema schema;
  schema.text("out", "", "a folder").as_path().texts("in", {}, "files").as_path();
  schema.text("name", "", "a name");
  const auto settings = [&](const std::string& json) {
    return ConfigTree::from_json(json, "job.json").validate(schema);
  };
  const Settings read = settings(R"({"out": "~/o", "in": ["~", "a", "~/b"], "name": "~/n"})");
  EXPECT_EQ(read.text("out"), "/h/me/o");
  EXPECT_THAT(read.texts("in"), ElementsAre("/h/me", "a", "/h/me/b"));
  EXPECT_EQ(read.text("name"), "~/n");
  ConfigTree tree;
  tree.set("out", "~/o", "--set");
  EXPECT_EQ(tree.validate(schema).text("out"), "/h/me/o");
  EXPECT_THAT(thrown_by([&] { settings(R"({"in": ["~you"]})"); }),
              IsUsageError(::testing::AllOf(HasSubstr("job.json"), HasSubstr("'in'"))));
}

TEST_F(HomeFolder, OptionsAndArguments_AreExpanded) {
  CommandSyntax syntax{.program = "prog", .words = "FOLDER...", .about = "", .most = 9};
  syntax.options
      .text({.key = "output", .environment = {"FLEET_TEST_OUTPUT"}, .value = "FILE"}, "", "a file")
      .text({.key = "on_end", .value = "COMMAND"}, "", "a command")
      .texts({.key = "log_dir", .value = "DIR", .repeats = true}, "folders");
  const auto read = [&](const std::vector<std::string>& words) {
    return read_command_line(syntax, words).value();
  };
  const CommandLine line =
      read({"--output=~/o", "--on_end=~/run", "--log_dir", "~/l", "~/w", "~x"});
  EXPECT_EQ(line.settings.text("output"), "/h/me/o");
  EXPECT_EQ(line.settings.text("on_end"), "~/run");  // a shell expands it
  EXPECT_THAT(line.settings.texts("log_dir"), ElementsAre("/h/me/l"));
  EXPECT_THAT(line.words, ElementsAre("/h/me/w", "~x"));
  ::setenv("FLEET_TEST_OUTPUT", "~/e", 1);
  EXPECT_EQ(read({}).settings.text("output"), "/h/me/e");
  ::unsetenv("FLEET_TEST_OUTPUT");
}

}  // namespace
}  // namespace fleet
