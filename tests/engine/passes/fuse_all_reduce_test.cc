#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <set>
#include <sstream>

#include "models/model.h"
#include "models/training.h"
#include "passes/backward.h"
#include "passes/pass.h"

namespace fleet {
namespace {

Program trained(const std::string& model, int classes, double scale = 0.5) {
  Program program;
  const ModelDef& def = model_registry().get(model);
  const std::string json = "{\"num_classes\": " + std::to_string(classes) + "}";
  const Training training = build_training(
      program, {.model = model,
                .model_settings = ConfigTree::from_json(json, "test").validate(def.schema),
                .batch = 2,
                .columns = image_columns(def.image)});
  append_backward(program, training.forward, training.loss, scale);
  return program;
}

std::vector<const Op*> all_reduces(const Program& program) {
  std::vector<const Op*> ops;
  for (const Op& op : program.ops()) {
    if (op.type() == "all_reduce") ops.push_back(&op);
  }
  return ops;
}

size_t buckets(const std::string& model, int classes, double megabytes, int64_t count) {
  Program program = trained(model, classes);
  run_pass("fuse_all_reduce", program, {.ranks = 2}, {{"megabytes", megabytes}, {"count", count}});
  return all_reduces(program).size();
}

// The numbers Paddle's users know from their logs.
TEST(FuseAllReduce, Resnet50_MakesTheKnownNumberOfBuckets) {
  EXPECT_EQ(buckets("resnet50", 102, 16, 50), 6u);
  EXPECT_EQ(buckets("resnet50", 102, 32, 50), 5u);
  EXPECT_EQ(buckets("resnet50", 1000, 16, 50), 7u);
  EXPECT_EQ(buckets("resnet50", 1000, 32, 50), 5u);
}

TEST(FuseAllReduce, Fused_SaysSoInTheKnownWords) {
  std::ostringstream captured_log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(captured_log)));
  buckets("resnet50", 102, 16, 50);
  spdlog::set_default_logger(before);
  EXPECT_THAT(captured_log.str(),
              testing::HasSubstr(
                  "Find all_reduce operators: 161. To make the speed faster, some all_reduce "
                  "ops are fused during training, after fusion, the number of all_reduce "
                  "ops is 6."));
}

TEST(FuseAllReduce, NotFused_IsOneForEachGradient) {
  Program program = trained("resnet18", 10);
  run_pass("fuse_all_reduce", program, {.ranks = 2}, {{"fuse", false}});
  const auto ops = all_reduces(program);
  EXPECT_EQ(ops.size(), 62u);
  for (const Op* op : ops) EXPECT_EQ(op->inputs.size(), 1u);
}

TEST(FuseAllReduce, SeveralCommunicators_TakeTurnsEachWithItsStream) {
  for (bool one_after_another : {false, true}) {
    Program program = trained("resnet18", 10);
    run_pass("fuse_all_reduce", program, {.ranks = 2},
             {{"exact_count", int64_t{5}},
              {"communicators", int64_t{3}},
              {"one_after_another", one_after_another}});
    const auto ops = all_reduces(program);
    ASSERT_EQ(ops.size(), 13u);
    for (size_t i = 0; i < ops.size(); ++i) {
      EXPECT_EQ(ops[i]->attributes.integer("communicator"), static_cast<int64_t>(i % 3));
      EXPECT_EQ(ops[i]->stream, static_cast<int>(1 + i % 3));
      EXPECT_EQ(ops[i]->attributes.boolean("after_previous"), one_after_another);
    }
  }
}

TEST(FuseAllReduce, EachCommunicator_IsAGroupOfAllRanks) {
  Program program = trained("lenet", 10);
  program.add_group({.name = "another strategy's", .ranks = {0, 2}});
  run_pass("fuse_all_reduce", program, {.ranks = 4},
           {{"exact_count", int64_t{2}},
            {"communicators", int64_t{2}},
            {"inner_group_size", int64_t{2}}});
  ASSERT_EQ(program.groups().size(), 3u);
  for (int group : {1, 2}) {
    EXPECT_EQ(program.groups()[group].ranks, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(program.groups()[group].inner_group_size, 2);
  }
  const auto ops = all_reduces(program);
  ASSERT_GE(ops.size(), 2u);
  for (size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(ops[i]->attributes.integer("communicator"), static_cast<int64_t>(1 + i % 2));
    EXPECT_EQ(ops[i]->stream, static_cast<int>(1 + i % 2));
  }
}

TEST(FuseAllReduce, OneRank_ChangesNothing) {
  Program program = trained("lenet", 10);
  const std::string before = print_text(program);
  EXPECT_FALSE(run_pass("fuse_all_reduce", program, {.ranks = 1}));
  EXPECT_EQ(print_text(program), before);
}

TEST(FuseAllReduce, EveryGradient_IsReducedOnceInPlaceRightBehindItsBucketsLast) {
  Program program = trained("resnet50", 1000);
  run_pass("fuse_all_reduce", program, {.ranks = 2});
  std::set<VarId> reduced, written;
  const std::vector<Op>& ops = program.ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].type() != "all_reduce") {
      for (VarId id : ops[i].outputs) written.insert(id);
      continue;
    }
    EXPECT_EQ(ops[i].inputs, ops[i].outputs);
    EXPECT_EQ(ops[i].stream, 1);
    EXPECT_EQ(ops[i].attributes.text("op"), "sum");
    for (VarId id : ops[i].inputs) {
      EXPECT_TRUE(written.contains(id)) << "reduced before it is computed";
      EXPECT_TRUE(reduced.insert(id).second) << "reduced twice";
    }
    const std::vector<VarId>& last = ops[i - 1].outputs;
    EXPECT_TRUE(std::any_of(last.begin(), last.end(), [&](VarId id) {
      return std::find(ops[i].inputs.begin(), ops[i].inputs.end(), id) != ops[i].inputs.end();
    })) << "the bucket waits longer than it must";
  }
  for (VarId parameter : program.parameters()) {
    EXPECT_TRUE(reduced.contains(program.gradient(parameter))) << program.var(parameter).name;
  }
}

TEST(FuseAllReduce, Buckets_OverlapTheBackwardPass) {
  Program program = trained("resnet50", 1000);
  run_pass("fuse_all_reduce", program, {.ranks = 2});
  size_t behind = 0;  // operations behind the first allreduce
  bool seen = false;
  for (const Op& op : program.ops()) {
    seen |= op.type() == "all_reduce";
    behind += seen;
  }
  EXPECT_GT(behind, 100u);
}

TEST(FuseAllReduce, BeforeBackward_IsAnError) {
  Program program;
  program.add_section("forward", {});
  EXPECT_THROW(run_pass("fuse_all_reduce", program, {.ranks = 2}), Error);
}

TEST(FuseAllReduce, Twice_IsAnError) {
  Program program = trained("lenet", 10);
  run_pass("fuse_all_reduce", program, {.ranks = 2});
  EXPECT_THROW(run_pass("fuse_all_reduce", program, {.ranks = 2}), Error);
}

TEST(RunPass, UnknownOption_IsAnError) {
  Program program = trained("lenet", 10);
  EXPECT_THROW(run_pass("fuse_all_reduce", program, {.ranks = 2}, {{"megabites", 1.0}}), Error);
  EXPECT_THROW(run_pass("fuse_all_reduce", program, {.ranks = 2}, {{"megabytes", true}}), Error);
  EXPECT_THROW(run_pass("fuse_all_reduces", program, {}), Error);
}

}  // namespace
}  // namespace fleet
