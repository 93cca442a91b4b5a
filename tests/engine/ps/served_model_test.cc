#include "ps/served_model.h"

#include <gmock/gmock.h>

#include "exec/plan.h"
#include "models/training.h"
#include "ops/partial_squares.h"
#include "ps/update_program.h"
#include "tests/engine/ps/update_job.h"
#include "tests/errors.h"
#include "train/session.h"

namespace fleet::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ServedModel, Adam_HasGradientsStatesAndItsCounter) {
  const Program program = program_of({.optimizer = R"({"name": "adam"})", .keeps = true}, true);
  const ServedModel model = served_model(program);
  ASSERT_EQ(model.parameters.size(), parameters_of_mlp().size());
  const ServedParameter& first = model.parameters[0];
  EXPECT_EQ(first.name, "fc1.weight");
  EXPECT_EQ(first.elements, 37 * 19);
  EXPECT_EQ(first.gradient, "fc1.weight@GRAD");
  EXPECT_THAT(first.states, ElementsAre("fc1.weight.moment1", "fc1.weight.moment2"));
  EXPECT_FALSE(first.whole);
  ASSERT_EQ(model.counters.size(), 1u);
  EXPECT_EQ(model.counters[0].name, "optimizer.step");
  EXPECT_EQ(model.counters[0].dtype, DType::kInt64);
  ASSERT_EQ(model.kept.size(), 2u);
  EXPECT_EQ(model.kept[0].name, "frozen");
  EXPECT_EQ(model.kept[1].name, "running_mean");
  EXPECT_THAT(model.checked, IsEmpty());
}

TEST(ServedModel, RulesWithNorms_NeedWholeParameters) {
  for (const std::string optimizer :
       {R"({"name": "lars"})", R"({"name": "lamb"})", R"({"name": "sgd", "clip": "norm"})"}) {
    const ServedModel model = served_model(program_of({.optimizer = optimizer}, true));
    EXPECT_TRUE(model.parameters[0].whole) << optimizer;
    EXPECT_THAT(model.shared_norms, IsEmpty()) << optimizer;
    EXPECT_EQ(place(model, 4, {.min_elements = 1, .alignment = 1}).blocks.size(),
              parameters_of_mlp().size());
  }
}

TEST(ServedModel, GlobalNorm_IsSharedBySeveralServers) {
  const std::string optimizer = R"({"name": "sgd", "clip": "global_norm"})";
  const ServedModel model = served_model(program_of({.optimizer = optimizer}, true));
  ASSERT_EQ(model.shared_norms.size(), 1u);
  EXPECT_THAT(model.shared_norms[0].parameters, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_FALSE(model.parameters[0].whole);
  EXPECT_THAT(norm_parts(model, place(model, 1)), IsEmpty());
  EXPECT_EQ(norm_parts(model, place(model, 2)).size(), parameters_of_mlp().size());
}

// Each part of the sum is then computed by one server.
TEST(ServedModel, BlocksOfASharedNorm_BeginAtItsParts) {
  ServedModel model;
  model.parameters = {{.name = "large", .elements = 5 * kSquaresPart + 7},
                      {.name = "small", .elements = 9}};
  model.shared_norms = {{.op = 0, .parameters = {0, 1}}};
  const Placement placement = place(model, 4);
  EXPECT_GT(placement.blocks.size(), 2u);
  int64_t parts = 0;
  for (const Block& block : placement.blocks) EXPECT_EQ(block.begin % kSquaresPart, 0);
  for (const NormParts& one : norm_parts(model, placement)) parts += one.count;
  EXPECT_EQ(parts, 7);
}

TEST(ServedModel, HashOfRule_DiffersWithItsSettings) {
  const auto hash = [](const std::string& optimizer) {
    return served_model(program_of({.optimizer = optimizer}, true)).hash_of_rule();
  };
  const uint64_t usual = hash(R"({"name": "momentum"})");
  EXPECT_EQ(hash(R"({"name": "momentum"})"), usual);
  EXPECT_NE(hash(R"({"name": "momentum", "momentum": 0.9000000001})"), usual);
  EXPECT_NE(hash(R"({"name": "momentum", "weight_decay": 0.1})"), usual);
  EXPECT_NE(hash(R"({"name": "momentum", "groups": ["fc2*: rate=0.1"]})"), usual);
}

// A Program with one parameter whose update `append` makes.
template <typename Append>
Error refusal(const Append& append) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const SectionId optimize = program.add_section("optimize", {});
  const VarId parameter = program.parameter("w", {4, 3}, {});
  const VarId gradient = program.feed("w@GRAD", DType::kFloat32, {4, 3});
  append(program, forward, optimize, parameter, gradient);
  return thrown_by([&] { served_model(program); });
}

TEST(ServedModel, UpdatesThatServersCannotMake_AreRefused) {
  EXPECT_THAT(
      refusal([](Program& program, SectionId, SectionId optimize, VarId w, VarId) {
        const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
        const VarId rows = program.feed("rows", DType::kInt64, {2});
        const VarId values = program.feed("values", DType::kFloat32, {2, 3});
        program.append(optimize, "sgd_rows", {rate, kNoVar, kNoVar, kNoVar, rows, values, w}, {w});
      }),
      IsError(ErrorCode::kUnsupported, "the sparse embedding 'w'"));
  EXPECT_THAT(refusal([](Program& program, SectionId forward, SectionId, VarId w, VarId g) {
                program.append(forward, "elementwise_sub", {w, g}, {w});
              }),
              IsError(ErrorCode::kUnsupported, "strategy"));
  EXPECT_THAT(refusal([](Program& program, SectionId, SectionId optimize, VarId, VarId g) {
                const VarId scale = program.state("loss_scaling", {1}, {});
                program.emit(optimize, "check_finite_and_unscale", {scale, g});
              }),
              IsError(ErrorCode::kUnsupported, "strategy.amp"));
  EXPECT_THAT(refusal([](Program& program, SectionId, SectionId optimize, VarId, VarId g) {
                program.emit(optimize, "softmax", {g});
              }),
              IsError(ErrorCode::kUnsupported, "strategy and optimizer"));
}

// --- Programs of whole jobs -------------------------------------------------------------------

Program program_of_job(const std::vector<std::string>& overrides) {
  ConfigTree tree = ConfigTree::from_json(R"({"model": {"name": "mlp", "num_classes": 4},
      "data": {"source": "synthetic", "batch_size": 4,
               "image": {"channels": 1, "height": 8, "width": 8}},
      "optimizer": {"name": "momentum"}, "learning_rate": {"name": "constant", "base": 0.1}})",
                                          "test");
  apply_overrides(tree, overrides);
  return build_program(make_job(tree), {.columns = image_columns({1, 8, 8})}).program;
}

// Every element of every parameter has a place on some server, and servers can plan their Programs.
void expect_served(const Program& program, int servers) {
  const ServedModel model = served_model(program);
  EXPECT_EQ(model.parameters.size(), program.parameters().size());
  const Placement placement = place(model, servers, {.min_elements = 1024});
  int64_t elements = 0, want = 0;
  for (const VarId id : program.parameters()) want += program.var(id).shape.elements();
  for (int s = 0; s < servers; ++s) {
    ServerProgram server = server_program(program, model, placement, s);
    for (const auto& block : server.blocks) {
      elements += server.program.var(block.value).shape.elements();
    }
    plan_program(std::move(server.program), {});
  }
  EXPECT_EQ(elements, want);
}

TEST(ServedModel, JobsOfEachOptimizer_CanBeServed) {
  for (const std::string& name : optimizer_registry().names()) {
    // See below.
    if (name == "muon" || name == "adafactor" || name.starts_with("schedule_free")) continue;
    SCOPED_TRACE(name);
    expect_served(program_of_job({"optimizer={'name': '" + name + "'}"}), 2);
  }
}

TEST(ServedModel, JobsWithOptions_CanBeServed) {
  const std::vector<std::vector<std::string>> all = {
      {"strategy.fuse_all_optimizer_ops=true"},
      {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"},
      {"train.on_nan=skip"},
      {"train.on_nan=continue"},
      {"strategy.amp=true"},
      {"strategy.lamb=true", "optimizer.name=adam"},
      {"train.ema=0.9", "train.evaluate_every=1"},
      {"optimizer.clip=value"},
      {"optimizer.clip=norm"},
      {"optimizer.groups=['*bias: rate=2']"},
      {"optimizer.layer_decay=0.5"}};
  for (const auto& options : all) {
    SCOPED_TRACE(options[0]);
    expect_served(program_of_job(options), 2);
  }
}

TEST(ServedModel, GradientMerge_PushesTheSums) {
  const Program program =
      program_of_job({"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=2"});
  const ServedModel model = served_model(program);
  const VarId gradient = program.find(model.parameters[0].gradient);
  EXPECT_EQ(program.var(gradient).kind, VarKind::kState);
  for (const ServedVar& kept : model.kept) EXPECT_NE(kept.name, model.parameters[0].gradient);
}

TEST(ServedModel, JobsThatServersDoNotSupport_AreRefused) {
  const auto refuse = [](const std::vector<std::string>& options) {
    const Program program = program_of_job(options);
    return thrown_by([&] { served_model(program); });
  };
  EXPECT_THAT(refuse({"train.weights_dtype=bfloat16"}),
              IsError(ErrorCode::kUnsupported, "train.weights_dtype"));
  for (const char* steps : {"optimizer={'name': 'muon'}", "optimizer={'name': 'adafactor'}",
                            "optimizer={'name': 'schedule_free_sgd'}", "optimizer.clip=adaptive"}) {
    EXPECT_THAT(refuse({steps}), IsError(ErrorCode::kUnsupported, "strategy and optimizer"))
        << steps;
  }
}

}  // namespace
}  // namespace fleet::ps
