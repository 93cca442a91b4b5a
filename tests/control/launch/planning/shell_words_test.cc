#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/planning/arguments.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ShellWords, Quotes_KeepBlanksTogether) {
  EXPECT_THAT(shell_words("-o 'ProxyCommand=ssh -W %h:%p jump'  -p 22", "x"),
              ElementsAre("-o", "ProxyCommand=ssh -W %h:%p jump", "-p", "22"));
  EXPECT_THAT(shell_words(R"(--comment="a \"b\" c" d\ e '')", "x"),
              ElementsAre("--comment=a \"b\" c", "d e", ""));
  EXPECT_THAT(shell_words("  ", "x"), IsEmpty());
  EXPECT_THAT(shell_words("$HOME *", "x"), ElementsAre("$HOME", "*"));
}

TEST(ShellWords, QuoteThatIsNotClosed_IsRefused) {
  EXPECT_THROW(shell_words("a 'b", "--via_options"), Error);
}

}  // namespace
}  // namespace fleet
