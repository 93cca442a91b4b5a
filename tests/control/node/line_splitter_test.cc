#include "node/line_splitter.h"

#include <gtest/gtest.h>

#include <vector>

namespace fleet {
namespace {

std::vector<std::string> pass(LineSplitter* lines, std::string_view output) {
  std::vector<std::string> all;
  lines->add(output);
  for (std::string_view line; lines->next(&line);) all.emplace_back(line);
  return all;
}

TEST(LineSplitter, WholeLines_HoweverTheyAreCut) {
  const std::string output = "first\n\nwindows\r\n10%\r20%\r\r\nsecond\n\rx\r\r\n\n\nlast";
  const std::vector<std::string> expected = {"first\n", "\n",   "windows\r\n", "10%\r",
                                             "20%\r",   "\r\n", "second\n",    "\r",
                                             "x\r",     "\r\n", "\n",          "\n"};
  for (size_t size = 1; size <= output.size(); ++size) {
    LineSplitter lines;
    std::vector<std::string> all;
    for (size_t at = 0; at < output.size(); at += size) {
      for (const std::string& line : pass(&lines, std::string_view(output).substr(at, size))) {
        all.push_back(line);
      }
    }
    EXPECT_EQ(all, expected) << size;
    EXPECT_EQ(lines.held(), "last");
    EXPECT_EQ(lines.rest(), "last");
    EXPECT_EQ(lines.rest(), "");
  }
}

TEST(LineSplitter, ReturnAtTheEnd_WaitsForWhatFollows) {
  LineSplitter lines;
  EXPECT_EQ(pass(&lines, "50%\r"), std::vector<std::string>{});
  EXPECT_EQ(lines.held(), "50%\r");
  EXPECT_EQ(pass(&lines, "\n"), std::vector<std::string>{"50%\r\n"});
  EXPECT_EQ(pass(&lines, "60%\r"), std::vector<std::string>{});
  EXPECT_EQ(pass(&lines, "7"), std::vector<std::string>{"60%\r"});
  EXPECT_EQ(lines.rest(), "7");
}

TEST(LineSplitter, EndlessLine_IsCutAndNothingIsLost) {
  for (const size_t size : {4096u, 1u << 20}) {
    LineSplitter lines;
    std::string all, input;
    size_t pieces = 0;
    for (size_t i = 0; i < (1u << 20) / size; ++i) {
      input = std::string(size, static_cast<char>('a' + i % 26));
      for (const std::string& line : pass(&lines, input)) {
        EXPECT_LE(line.size(), LineSplitter::kLongest + 2);
        all += line;
        ++pieces;
      }
    }
    for (const std::string& line : pass(&lines, "end\nnext\n")) all += line;
    EXPECT_EQ(all.size(), (1u << 20) + 9);
    EXPECT_TRUE(all.ends_with("end\nnext\n"));
    EXPECT_GE(pieces, 15u);
  }
}

}  // namespace
}  // namespace fleet
