#include <gmock/gmock.h>

#include "graph/program.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

TEST(Print, Text_HasFlagsGroupsStatesOfEachRankAndWhenSectionsRun) {
  Program program;
  const FlagId begin = program.add_flag("begin");
  program.add_group({.name = "data parallel", .ranks = {0, 2, 4, 6}, .inner_group_size = 2});
  const VarId mean = program.state("mean", {2}, {});
  const VarId residual = program.state("residual", {2}, {});
  program.var(residual).per_rank = true;
  const SectionId section = program.add_section("average", {.every = 4, .flag = begin});
  program.append(section, "scale", {mean}, {mean});
  const std::string text = print_text(program);
  EXPECT_THAT(text, HasSubstr("flag 0 is begin\n"));
  EXPECT_THAT(text, HasSubstr("communicator 0 is data parallel: ranks 0 2 4 6, in groups of 2\n"));
  EXPECT_THAT(text, HasSubstr("state mean: float32[2]\n"));
  EXPECT_THAT(text, HasSubstr("state residual: float32[2], of each rank\n"));
  EXPECT_THAT(text, HasSubstr("section average (training, every 4 steps, with flag 0)\n"));
}

}  // namespace
}  // namespace fleet
