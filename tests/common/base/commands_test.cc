#include "base/commands.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/errors.h"

namespace fleet {
namespace {

int defined = 0;

FLEET_COMMAND(second) {
  defined += 1;
  def.syntax = {.program = "tests second", .about = "the second of two commands", .most = 1};
  def.run = [](const CommandLine& line) { return static_cast<int>(line.words.size()) + 3; };
}

FLEET_COMMAND(first) {
  defined += 1;
  def.syntax = {.program = "tests first", .about = "the first of two commands\nIts second line."};
  def.run = [](const CommandLine&) { return 0; };
}

TEST(Commands, UnknownName_DefinesNone) {
  const int before = defined;
  EXPECT_EQ(find_command("train.py"), nullptr);
  EXPECT_EQ(defined, before);
}

TEST(Commands, All_SortedByNameAndDefinedOnce) {
  ASSERT_EQ(commands().size(), 2u);
  EXPECT_EQ(commands()[0].name, "first");
  EXPECT_EQ(commands()[1].name, "second");
  EXPECT_EQ(commands()[0].summary(), "the first of two commands");
  EXPECT_EQ(find_command("second"), &commands()[1]);
  EXPECT_EQ(defined, 2);
}

TEST(Commands, Found_Runs) { EXPECT_EQ(run_command(*find_command("second"), {"word"}), 4); }

TEST(Commands, NameTwice_IsRefused) {
  EXPECT_THAT(thrown_by([] { register_command("first", [](Command&) {}); }),
              IsError(ErrorCode::kInternal));
}

}  // namespace
}  // namespace fleet
