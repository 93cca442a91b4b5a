#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "optim/optimizer.h"
#include "passes/pass.h"

namespace fleet {
namespace {

// Updates of parameters p0, p1, ... with these gradients' types.
Program updates(const std::string& json, const std::vector<DType>& gradients) {
  Program program;
  const SectionId section = program.add_section("optimize", {});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  std::vector<VarId> parameters;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::string name = "p" + std::to_string(i);
    parameters.push_back(program.parameter(name, {3}, {}));
    program.set_gradient(parameters.back(), program.feed(name + "@GRAD", gradients[i], {3}));
  }
  ConfigTree tree = ConfigTree::from_json(json, "test");
  append_updates(program, section, parameters, rate,
                 tree.validate(optimizer_schema(*tree.peek("name"))));
  return program;
}

std::vector<size_t> sizes(const Program& program, const std::string& type, size_t others,
                          size_t each) {
  std::vector<size_t> found;
  for (const Op& op : program.ops()) {
    if (op.type() == type) found.push_back((op.inputs.size() - others) / each);
  }
  return found;
}

constexpr DType kF32 = DType::kFloat32, kBf16 = DType::kBFloat16;

TEST(FuseAllOptimizerOps, AlikeUpdates_BecomeOneAndSayIt) {
  std::ostringstream captured_log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(captured_log)));
  Program program = updates(R"({"name": "momentum"})", std::vector<DType>(161, kF32));
  EXPECT_TRUE(run_pass("fuse_all_optimizer_ops", program, {}));
  spdlog::set_default_logger(before);
  EXPECT_THAT(sizes(program, "momentum", 3, 3), testing::ElementsAre(161));
  EXPECT_THAT(
      captured_log.str(),
      testing::HasSubstr("Find momentum operators : 161, and 161 for dense gradients. To make "
                         "the speed faster, those optimization are fused during training."));
}

TEST(FuseAllOptimizerOps, Adam_CountsItsStepsOnce) {
  Program program = updates(R"({"name": "adam"})", {kF32, kF32});
  EXPECT_TRUE(run_pass("fuse_all_optimizer_ops", program, {}));
  EXPECT_THAT(sizes(program, "adam", 4, 4), testing::ElementsAre(2));
  EXPECT_EQ(program.ops().size(), 2u);
}

TEST(FuseAllOptimizerOps, OtherTypes_StayApart) {
  Program program = updates(R"({"name": "sgd"})", {kF32, kBf16, kF32, kBf16, kBf16});
  EXPECT_TRUE(run_pass("fuse_all_optimizer_ops", program, {}));
  EXPECT_THAT(sizes(program, "sgd", 3, 2), testing::UnorderedElementsAre(2, 3));
}

TEST(FuseAllOptimizerOps, OtherAttributes_StayApart) {
  Program program =
      updates(R"({"name": "sgd", "weight_decay": 1e-4, "exclude_from_weight_decay": ["p1"]})",
              {kF32, kF32, kF32});
  EXPECT_TRUE(run_pass("fuse_all_optimizer_ops", program, {}));
  EXPECT_THAT(sizes(program, "sgd", 3, 2), testing::UnorderedElementsAre(2, 1));
}

// Each gradient has a scale of its own.
TEST(FuseAllOptimizerOps, ClippedByTheirOwnNorms_StayApart) {
  Program program = updates(R"({"name": "sgd", "clip": "norm"})", {kF32, kF32});
  EXPECT_FALSE(run_pass("fuse_all_optimizer_ops", program, {}));
}

TEST(FuseAllOptimizerOps, ParameterReadInBetween_StaysApart) {
  Program program = updates(R"({"name": "sgd"})", {kF32, kF32});
  const Op reader = program.make_op(0, "relu", {program.find("p0")}, {program.temporary("seen")});
  program.ops().insert(program.ops().begin() + 1, reader);
  EXPECT_FALSE(run_pass("fuse_all_optimizer_ops", program, {}));
  EXPECT_EQ(program.ops().size(), 3u);
}

}  // namespace
}  // namespace fleet
