#include "base/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/terminal_width.h"
#include "base/text.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

CommandSyntax syntax() {
  CommandSyntax syntax{.program = "prog look",
                       .words = "JOB [-- WRAPPER...]",
                       .about = "looks at a job\nAnd more.",
                       .least = 1,
                       .most = 1,
                       .takes_rest = true,
                       .missing_word = "prog ls shows them"};
  syntax.options
      .integer({.key = "rank", .environment = {"TEST_RANK"}, .value = "R"}, 0, 0, 100, "which rank")
      .flag({.key = "follow", .aliases = {"f"}, .environment = {"TEST_FOLLOW"}}, "go on")
      .text({.key = "tee", .aliases = {"t"}, .value = "STREAMS", .optional = true}, "", "streams")
      .texts({.key = "ips", .value = "LIST", .optional = true, .spread = true}, "nodes")
      .flag({.key = "secretly", .internal = true}, "for programs");
  return syntax;
}

CommandLine read(const std::vector<std::string>& arguments) {
  auto line = read_command_line(syntax(), arguments);
  EXPECT_TRUE(line.has_value());
  return line.value_or(CommandLine{});
}

Error refusal(const std::vector<std::string>& arguments) {
  return thrown_by([&] { read_command_line(syntax(), arguments); });
}

TEST(CommandLine, ImpliedValue_IsThatOfTheOptionAlone) {
  CommandSyntax with = syntax();
  with.options.text({.key = "web", .value = "PORT", .optional = true, .implied = "9"}, "", "page");
  const auto read_web = [&](const std::vector<std::string>& words) {
    return read_command_line(with, words).value_or(CommandLine{});
  };
  EXPECT_FALSE(read_web({"job"}).settings.given("web"));
  EXPECT_EQ(read_web({"--web=7", "job"}).settings.text("web"), "7");
  const CommandLine alone = read_web({"--web", "job"});
  EXPECT_EQ(alone.settings.text("web"), "9");
  EXPECT_THAT(alone.words, ElementsAre("job"));  // no value of it
  EXPECT_THAT(command_help(with), HasSubstr("--web[=PORT]"));
}

TEST(CommandLine, EveryForm_IsRead) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"job", "--rank", "3", "-f", "-t", "1"},
        {"--rank=3", "--follow", "--tee=1", "job"},
        {"--rank=9", "-t1", "job", "--rank=3", "--follow=true"}}) {
    const CommandLine line = read(words);
    EXPECT_EQ(line.settings.integer("rank"), 3);
    EXPECT_TRUE(line.settings.boolean("follow"));
    EXPECT_EQ(line.settings.text("tee"), "1");
    EXPECT_THAT(line.words, ElementsAre("job"));
  }
  EXPECT_FALSE(read({"job", "--follow=false"}).settings.boolean("follow"));
  EXPECT_FALSE(read({"job", "--rank="}).settings.given("rank"));
  EXPECT_FALSE(read({"job", "--tee", ""}).settings.given("tee"));
}

TEST(CommandLine, DashesInNames_AreUnderscores) {
  CommandSyntax dashed = syntax();
  dashed.options
      .integer({.key = "nproc_per_node", .aliases = {"-np"}, .value = "N"}, 1, 0, 100, "ranks")
      .text({.key = "np", .value = "X"}, "", "something else");
  const auto value = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = words;
    all.emplace_back("job");
    return read_command_line(dashed, all)->settings.integer("nproc_per_node");
  };
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--nproc-per-node=2"},
                                                {"--nproc-per-node", "2"},
                                                {"--nproc-per_node=2"},
                                                {"-nproc_per_node", "2"},
                                                {"-np", "2"},
                                                {"-np=2"}}) {
    EXPECT_EQ(value(words), 2) << words[0];
  }
  EXPECT_EQ(value({"--np", "2"}), 1);
  EXPECT_EQ(value({"--tee=--nproc-per-node"}), 1);  // values stay as they are
}

TEST(CommandLine, LettersBehindALetter_AreNotItsValue) {
  EXPECT_THAT(refusal({"job", "-tall"}).what(),
              AllOf(HasSubstr("unknown option '-tall'"), Not(HasSubstr("corrected"))));
  EXPECT_EQ(read({"job", "-t0:3"}).settings.text("tee"), "0:3");
}

TEST(CommandLine, Values_AreTakenAsTheyAre) {
  for (const char* value : {"A=", "[fd00::1]", "[a,b]", "'quoted'", "\"quoted\"", "{}", "%%", "a b",
                            "-1", "--no-option-of-ours", "$HOME"}) {
    EXPECT_EQ(read({"job", "--tee", value}).settings.text("tee"), value);
    EXPECT_EQ(read({"job", std::string("--tee=") + value}).settings.text("tee"), value);
    EXPECT_EQ(read({"job", "-t", value}).settings.text("tee"), value);
  }
  EXPECT_EQ(read({"job", "--tee=--rank"}).settings.text("tee"), "--rank");
}

TEST(CommandLine, AfterDoubleDash_BelongsToProgram) {
  const CommandLine line = read({"job", "--", "gdb", "--rank=7", "--help", "--"});
  EXPECT_THAT(line.rest, ElementsAre("gdb", "--rank=7", "--help", "--"));
  EXPECT_EQ(line.settings.integer("rank"), 0);
}

TEST(CommandLine, ListWithoutItsQuotes_IsPutTogether) {
  EXPECT_THAT(read({"--ips=a,", "b,", "c", "job"}).settings.texts("ips"),
              ElementsAre("a", "b", "c"));
  EXPECT_EQ(read({"job", "--ips=a,b,", "--rank=3"}).settings.integer("rank"), 3);
}

TEST(CommandLine, FlagOverEnvironmentOverDefault) {
  ::setenv("TEST_RANK", "5", 1);
  ::setenv("TEST_FOLLOW", "1", 1);
  const CommandLine line = read({"job"});
  EXPECT_EQ(line.settings.integer("rank"), 5);
  EXPECT_EQ(line.settings.origin("rank"), "environment TEST_RANK");
  EXPECT_TRUE(line.settings.boolean("follow"));
  EXPECT_EQ(read({"job", "--rank=6"}).settings.origin("rank"), "--rank");
  ::unsetenv("TEST_RANK");
  ::unsetenv("TEST_FOLLOW");
}

TEST(CommandLine, Mistakes_AreNamed) {
  EXPECT_THAT(refusal({"job", "--ranks=3"}), IsUsageError(""));
  EXPECT_THAT(refusal({"job", "--xyzzyplugh"}), IsUsageError(""));
  EXPECT_STREQ(refusal({"job", "--rank"}).what(), "--rank: it needs a value; write --rank=R");
  EXPECT_THAT(refusal({"job", "--tee", "--rank=3"}), IsUsageError(""));
  EXPECT_NO_THROW(read({"job", "--tee", "--overlap"}));  // of another program
  EXPECT_THAT(refusal({"job", "--rank=101"}), IsUsageError("--rank"));
  EXPECT_THAT(refusal({"job", "--follow=maybe"}), IsUsageError("--follow"));
  EXPECT_THAT(refusal({"job", "gdb"}), IsUsageError("look"));
  EXPECT_THAT(refusal({}), IsUsageError("look"));
}

TEST(CommandLine, AllMistakes_AreReportedTogether_WithTheCorrectedLine) {
  EXPECT_STREQ(refusal({"job", "--ranks", "3", "--xyzzyplugh", "-x", "--folow", "-f"}).what(),
               "4 options cannot be used:\n"
               "  look: unknown option '--ranks'; did you mean '--rank'?\n"
               "  look: unknown option '--xyzzyplugh'; see prog look --help\n"
               "  look: unknown option '-x'; see prog look --help\n"
               "  look: unknown option '--folow'; did you mean '--follow'?");
  EXPECT_THAT(refusal({"job", "--ranks", "3", "--folow", "-f"}).what(),
              HasSubstr("\ncorrected: prog look job --rank 3 --follow -f"));
  EXPECT_THAT(refusal({"--rnak=3", "a job"}).what(),
              AllOf(HasSubstr("did you mean '--rank'?"),
                    HasSubstr("corrected: prog look --rank=3 'a job'")));
  // A missing value cannot be guessed.
  EXPECT_THAT(refusal({"job", "--folow", "--rank"}).what(),
              AllOf(HasSubstr("unknown option '--folow'"), HasSubstr("--rank: it needs a value")));
}

// The line without it would look at another job.
TEST(CommandLine, WordGivenAsAnOption_IsAWordOfTheCorrectedLine) {
  for (const char* given : {"--job_id=x", "--job-id=x", "--job=x"}) {
    EXPECT_THAT(refusal({given, "-f"}).what(),
                AllOf(HasSubstr("unknown option '--job"), HasSubstr("without an option"),
                      HasSubstr("\ncorrected: prog look x -f")));
  }
  EXPECT_THAT(refusal({"--job_id", "x"}).what(), HasSubstr("\ncorrected: prog look x"));
  EXPECT_THAT(refusal({"--task=x", "job"}).what(), Not(HasSubstr("corrected")));
}

TEST(CommandLine, FlagsOfOneLetter_AreNotGuessed) {
  for (const char* flag : {"-x", "-v", "-F", "--f", "--z"}) {
    EXPECT_EQ(refusal({"job", flag}).failure(),
              "look: unknown option '" + std::string(flag) + "'; see prog look --help");
  }
}

TEST(CommandLine, StartOfAName_IsCompletedInTheCorrectedLine) {
  EXPECT_THAT(
      refusal({"job", "--foll"}).what(),
      AllOf(HasSubstr("did you mean '--follow'?"), HasSubstr("corrected: prog look job --follow")));
}

TEST(CommandLine, WordsThatNobodyTakes_AreRefused) {
  CommandSyntax none = syntax();
  none.takes_rest = false;
  EXPECT_THROW(read_command_line(none, {"job", "--", "x"}), Error);
}

TEST(CommandLine, OptionThatRepeats_IsTheListOfItsValues) {
  CommandSyntax syntax;
  syntax.options.texts({.key = "set", .value = "KEY=VALUE", .repeats = true}, "override a key");
  const auto line = read_command_line(syntax, {"--set", "a=[1, 2]", "--set=b=\"x\"", "--set=c"});
  EXPECT_THAT(line->settings.texts("set"), ElementsAre("a=[1, 2]", "b=\"x\"", "c"));
  EXPECT_THAT(read_command_line(syntax, {"--set", "d=1,2"})->settings.texts("set"),
              ElementsAre("d=1,2"));
  EXPECT_THAT(read_command_line(syntax, {})->settings.texts("set"), IsEmpty());
}

TEST(CommandHelp, ListsTheVisibleOptions) {
  EXPECT_EQ(read_command_line(syntax(), {"--rank=none", "-h"}), std::nullopt);
  const std::string help = command_help(syntax());
  EXPECT_THAT(help, AllOf(HasSubstr("usage: prog look [options] JOB [-- WRAPPER...]\n"),
                          HasSubstr("And more.\n"), HasSubstr("  --rank R "),
                          HasSubstr("(default 0)\n"), HasSubstr("  -f, --follow "),
                          HasSubstr("  -t, --tee STREAMS"), Not(HasSubstr("secretly"))));
}

// Standard output of a test is no terminal.
TEST(CommandHelp, FitsTheWidth) {
  CommandSyntax known = syntax();
  known.about = "looks at a job" + [] {
    std::string more;
    for (int i = 0; i < 40; ++i) more += " for long";
    return more;
  }();
  known.more = "And more" + std::string(60, '.') + " of it, with a line that is far too long\n";
  std::string text;
  for (int i = 0; i < 40; ++i) text += "word" + std::to_string(i) + " ";
  known.options.text({.key = "far", .value = "X"}, "end", text + "last");
  const std::string help = command_help(known);
  size_t continued = 0;
  for (const std::string_view line : lines_of(help)) {
    EXPECT_LE(line.size(), 80u) << line;
    continued += line.starts_with(std::string(26, ' ') + "word") ? 1 : 0;
  }
  EXPECT_GE(continued, 4u);
  EXPECT_THAT(help, HasSubstr("last (default end)\n"));
}

TEST(WrappedText, BreaksAtBlanks) {
  EXPECT_EQ(wrapped_text("ab cd ef", 0, 5), "ab cd\nef");
  EXPECT_EQ(wrapped_text("a: cd ef", 3, 6), "a: cd\n   ef");
  EXPECT_EQ(wrapped_text("abcdefgh i", 0, 5), "abcdefgh\ni");
  EXPECT_EQ(wrapped_text("  two  blanks", 0, 80), "  two  blanks");
  EXPECT_EQ(wrapped_lines("a b\n\n c d e\n", 4), "a b\n\n c d\ne\n");
}

TEST(ReadCommandLine, EmptyValue_IsRefusedWhereItMeansNothing) {
  CommandSyntax known = syntax();
  known.options.texts({.key = "token", .value = "T", .repeats = true, .never_empty = true}, "");
  for (const std::vector<std::string>& given : {std::vector<std::string>{"job", "--token", ""},
                                                {"job", "--token="},
                                                {"job", "--token=x", "--token="}}) {
    const Error error = thrown_by([&] { read_command_line(known, given); });
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.failure(), HasSubstr("--token"));
  }
  const auto line = read_command_line(known, {"job", "--token=x", "--tee="});
  EXPECT_THAT(line->settings.texts("token"), ElementsAre("x"));
}

TEST(RunCommand, HelpIsPrinted_ElseItRuns) {
  int ran = 0;
  const Command command{.name = "look", .syntax = syntax(), .run = [&](const CommandLine& line) {
                          ++ran;
                          return static_cast<int>(line.settings.integer("rank"));
                        }};
  EXPECT_EQ(command.summary(), "looks at a job");
  EXPECT_EQ(run_command(command, {"--help"}), 0);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(run_command(command, {"job", "--rank=4"}), 4);
}

TEST(ReadOptions, FirstPlainWord_EndsThem) {
  const CommandSyntax known = syntax();
  const ParsedOptions words = read_options(known.options.options(), {"-f", "prog", "--rank", "-f"},
                                           PositionalWords::kEndOptions);
  EXPECT_EQ(words.options.size(), 1u);
  EXPECT_THAT(words.words, ElementsAre("prog", "--rank", "-f"));
  EXPECT_THAT(words.rest, IsEmpty());
}

}  // namespace
}  // namespace fleet
