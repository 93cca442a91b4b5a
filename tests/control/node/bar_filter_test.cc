#include <gtest/gtest.h>

#include "node/line_splitter.h"

namespace fleet {
namespace {

TEST(BarFilter, Bars_AreTakenOutAndLinesStay) {
  BarFilter filter;
  EXPECT_EQ(filter.pass("one\n\r[=>  ] 1/2\033[K\r[==> ] 2/2\033[K\r\033[Ktwo\n"), "one\ntwo\n");
}

TEST(BarFilter, CutAnywhere_GivesTheSame) {
  const std::string all = "a\n\r[=> ]\033[K\r\033[Kb\r\nc\rd\n\r[==>]\033[K";
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    BarFilter filter;
    std::string passed = filter.pass(all.substr(0, cut));
    passed += filter.pass(all.substr(cut));
    EXPECT_EQ(passed, "a\nb\r\nc\rd\n") << "cut at " << cut;
  }
}

TEST(BarFilter, CarriageReturnWithoutErase_PassesOnceTheLineEnds) {
  BarFilter filter;
  EXPECT_EQ(filter.pass("\r50 %"), "");
  EXPECT_EQ(filter.pass("\r100 %\n"), "\r50 %\r100 %\n");
  EXPECT_EQ(filter.pass("\r" + std::string(5000, 'x')).size(), 5001u);
}

}  // namespace
}  // namespace fleet
