#include "base/terminal_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

namespace fleet {
namespace {

TEST(ResolveOutput, PlainText_StaysAsItIs) {
  EXPECT_EQ(resolve_output("one\n  two\n\nthree"), "one\n  two\n\nthree");
  EXPECT_EQ(resolve_output(""), "");
}

TEST(ResolveOutput, CarriageReturn_OverwritesFromTheLeft) {
  EXPECT_EQ(resolve_output("10%|#    |\r20%|##   |"), "20%|##   |");
  EXPECT_EQ(resolve_output("a long line\rshort"), "shortg line");
  EXPECT_EQ(resolve_output("dos\r\nlines\r\n"), "dos\nlines\n");
}

TEST(ResolveOutput, ErasedLine_IsGone) {
  EXPECT_EQ(resolve_output("50% of it\r\033[Kdone"), "done");
  EXPECT_EQ(resolve_output("50% of it\033[2K\rdone"), "done");
  EXPECT_EQ(resolve_output("abcdef\033[3D\033[1KX"), "   Xef");
}

TEST(ResolveOutput, CursorMovement_IsFollowed) {
  EXPECT_EQ(resolve_output("bar 1\nbar 2\n\033[2A\rBAR 1\n\nend"), "BAR 1\nbar 2\nend");
  EXPECT_EQ(resolve_output("ab\b\bX"), "Xb");
  EXPECT_EQ(resolve_output("abc\033[1GX\033[2CY"), "XbcY");
  EXPECT_EQ(resolve_output("a\tb"), "a       b");
}

TEST(ResolveOutput, TitlesClipboardAndTheirLike_AreDropped) {
  EXPECT_EQ(resolve_output("a\033]0;title\007b"), "ab");
  EXPECT_EQ(resolve_output("a\033]52;c;cm0gLXJm\033\\b"), "ab");
  EXPECT_EQ(resolve_output("a\033Pq#0;2;0\033\\b"), "ab");
  EXPECT_EQ(resolve_output("a\033_Gf=100;AAAA\033\\b"), "ab");
  EXPECT_EQ(resolve_output("a\033(0b\033=c\033>d\007e\033cf"), "abcdef");
  EXPECT_EQ(resolve_output("a\033[?1049hb\033[6nc\033[2Jd\033[10;10He"), "abcde");
}

TEST(ResolveOutput, C1ControlsInUtf8_AreControls) {
  EXPECT_EQ(resolve_output("a\u009d0;title\007b\u009b31mc"), "abc");
  EXPECT_EQ(resolve_output("a\u0085b"), "ab");
}

TEST(ResolveOutput, UnendedSequence_EndsWithItsLine) {
  EXPECT_EQ(resolve_output("a\033]0;never ended\nError: here"), "a\nError: here");
  EXPECT_EQ(resolve_output("a\033[12;\nError: here"), "a\nError: here");
}

TEST(ResolveOutput, BytesThatAreNoUtf8_AreReplaced) {
  EXPECT_EQ(resolve_output("a\xff\xc3(b\xe2\x82"), "a\uFFFD\uFFFD(b\uFFFD");
  EXPECT_EQ(resolve_output("gr\u00fc\u00df \u4f60\u597d \U0001f600"),
            "gr\u00fc\u00df \u4f60\u597d \U0001f600");
  EXPECT_EQ(resolve_output("\xc0\xaf\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // overlong; a surrogate
}

TEST(ResolveOutput, DirectionMarks_AreDropped) {
  EXPECT_EQ(resolve_output("rank \u202e1 si sihT\u202c"), "rank 1 si sihT");
}

TEST(ResolveOutput, WideCharacters_TakeTwoColumns) {
  EXPECT_EQ(resolve_output("\u4f60\u597dab\r1234"), "1234ab");
  EXPECT_EQ(resolve_output("\u4f60b\rX"), "X b");  // half of one is overwritten
}

TEST(ResolveOutput, Colors_OnlyWhereTheyAreKept) {
  const std::string text = "\033[1;31mError\033[0m: \033[5;8;32mhidden\033[m";
  EXPECT_EQ(resolve_output(text), "Error: hidden");
  EXPECT_EQ(resolve_output(text, true), "\033[1;31mError\033[0m: \033[32mhidden\033[0m");
}

TEST(ResolveOutput, ColorWithoutEnd_EndsWithItsLine) {
  EXPECT_EQ(resolve_output("\033[31mred\nred", true), "\033[31mred\033[0m\n\033[31mred\033[0m");
  EXPECT_EQ(resolve_output("\033[38;2;1;5;8mx", true), "\033[38;2;1;5;8mx\033[0m");
}

TEST(ResolveOutput, HugeMovements_TakeNoMemory) {
  std::string text;
  for (int i = 0; i < 8000; ++i) text += "\033[999999999G.\n\033[999999999B";
  EXPECT_LT(resolve_output(text).size(), 1u << 20);
}

TEST(EscapeControls, WhatATerminalObeys_IsWrittenOut) {
  EXPECT_EQ(escape_controls("a\033]0;x\007\n\tb\r\x7f"), "a\\x1b]0;x\\x07\n\tb\\x0d\\x7f");
  EXPECT_EQ(escape_controls("\u009b31m\u202e\xff"), "\\xc2\\x9b31m\\xe2\\x80\\xae\\xff");
  EXPECT_EQ(escape_controls(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escape_controls("gr\u00fcn"), "gr\u00fcn");
}

TEST(EscapeControls, Colors_AreKeptWhereTheyMay) {
  EXPECT_EQ(escape_controls("\033[31mred\033[0m", true), "\033[31mred\033[0m");
  EXPECT_EQ(escape_controls("\033[31mred"), "\\x1b[31mred");
  EXPECT_EQ(escape_controls("\033[2J", true), "\\x1b[2J");
}

TEST(CutToColumns, WideCharactersAndStrangeBytes_CountAsShown) {
  const std::string wide = "\u6a21\u578b\u6a21\u578b";  // of two columns each
  EXPECT_EQ(cut_to_columns(wide, 8), wide);
  EXPECT_EQ(cut_to_columns(wide, 7), "\u6a21\u578b...");
  EXPECT_EQ(cut_to_columns(wide, 6), "\u6a21...");
  EXPECT_EQ(cut_front_to_columns(wide, 8), wide);
  EXPECT_EQ(cut_front_to_columns(wide, 7), "...\u6a21\u578b");
  EXPECT_EQ(cut_front_to_columns(wide, 6), "...\u578b");
  EXPECT_EQ(cut_front_to_columns("/data/run/log2", 10), "...un/log2");
  EXPECT_EQ(cut_to_columns("\x80\x80\x80\x80\x80", 4), "\x80...");
  EXPECT_EQ(cut_to_columns("abc", 2), "..");
}

TEST(ShownName, LongOrStrange_IsCutAndEscaped) {
  EXPECT_EQ(shown_name("nightly-7"), "nightly-7");
  EXPECT_EQ(shown_name("a\nb\033c"), "a\\nb\\x1bc");
  EXPECT_EQ(shown_name(std::string(100, 'x'), 10), "xxxxxxx...");
  EXPECT_EQ(shown_name("\u4f60\u597d\u4f60\u597d", 7), "\u4f60\u597d...");
}

TEST(TerminalFilter, PiecesOfASequence_AreOneSequence) {
  TerminalFilter filter(true);
  EXPECT_EQ(filter.pass("50%\r\033"), "50%\r");
  EXPECT_EQ(filter.pass("[K\033]0;ti"), "\033[K");
  EXPECT_EQ(filter.pass("tle\007ok \xe4\xbd"), "ok ");
  EXPECT_EQ(filter.pass("\xa0\033[3"), "\u4f60");
  EXPECT_EQ(filter.pass("1mred\033[A\033[2J\n"), "\033[31mred\n");
}

TEST(TerminalFilter, WithoutColors_DropsThem) {
  TerminalFilter filter(false);
  EXPECT_EQ(filter.pass("\033[31mred\033[0m\n"), "red\n");
}

struct WantsColors : ::testing::Test {
  WantsColors() {
    for (const char* name : {"NO_COLOR", "FORCE_COLOR", "TERM"}) ::unsetenv(name);
    EXPECT_EQ(::pipe(ends), 0);
  }
  ~WantsColors() override {
    ::close(ends[0]);
    ::close(ends[1]);
    for (const char* name : {"NO_COLOR", "FORCE_COLOR"}) ::unsetenv(name);
  }
  int ends[2];
};

TEST_F(WantsColors, Pipe_OnlyWhereForced) {
  ::setenv("TERM", "xterm", 1);
  EXPECT_FALSE(wants_colors(ends[1]));
  ::setenv("FORCE_COLOR", "1", 1);
  EXPECT_TRUE(wants_colors(ends[1]));
  ::setenv("FORCE_COLOR", "0", 1);
  EXPECT_FALSE(wants_colors(ends[1]));
}

TEST_F(WantsColors, NoColor_WinsOverForce) {
  ::setenv("FORCE_COLOR", "1", 1);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_colors(ends[1]));
}

TEST_F(WantsColors, Terminal_UnlessItIsDumb) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(wants_colors(terminal));
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(wants_colors(terminal));
  ::unsetenv("TERM");
  EXPECT_FALSE(wants_colors(terminal));
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_colors(terminal));
  ::close(terminal);
}

}  // namespace
}  // namespace fleet
