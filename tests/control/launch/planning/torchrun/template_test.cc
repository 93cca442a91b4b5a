#include <gtest/gtest.h>

#include "launch/planning/rank_commands.h"

namespace fleet {
namespace {

std::string fill(const std::string& text) {
  return fill_template(text, {{"rank", "3"}, {"role_name", "trainer"}});
}

// As Python's string.Template(text).safe_substitute(rank=3, role_name="trainer").
TEST(Template, FillsAsPythonDoes) {
  EXPECT_EQ(fill("[${role_name}$rank]:"), "[trainer3]:");
  EXPECT_EQ(fill("$rank.$rank-${rank}x"), "3.3-3x");
  EXPECT_EQ(fill("$$5 and $$rank"), "$5 and $rank");
  EXPECT_EQ(fill("$ranks ${other} $other $"), "$ranks ${other} $other $");
  EXPECT_EQ(fill("${rank ${} $1 $-"), "${rank ${} $1 $-");
  EXPECT_EQ(fill(""), "");
}

}  // namespace
}  // namespace fleet
