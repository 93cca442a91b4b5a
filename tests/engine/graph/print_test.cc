#include <gmock/gmock.h>

#include "graph/program.h"

namespace fleet {
namespace {

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
  EXPECT_EQ(text,
            "flag 0 is begin\ncommunicator 0 is data parallel: ranks 0 2 4 6, in groups of "
            "2\nstate mean: float32[2]\nstate residual: float32[2], of each rank\nsection average "
            "(training, every 4 steps, with flag 0)\n  mean: float32[2] = scale(mean)\n");
}

}  // namespace
}  // namespace fleet
