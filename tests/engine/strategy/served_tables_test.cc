#include "strategy/served_tables.h"

#include <gmock/gmock.h>

#include "models/network.h"
#include "passes/backward.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

// Two tables on the same ids, one of them through another shape, for training and evaluation.
struct Lookups {
  Program program;
  SectionId forward, evaluate;
  VarId loss = kNoVar;

  Lookups() {
    forward = program.add_section("forward", {.training = true});
    evaluate = program.add_section("evaluate", {.training = false, .evaluation = true});
    const VarId ids = program.feed("ids", DType::kInt64, {4, 3, 2});
    for (const SectionId section : {forward, evaluate}) {
      Network network(program, section, section == forward, kNoVar);
      const VarId items = network.table("items", ids, {.rows = 100, .dim = 5});
      const VarId list = network.reshape(ids, {4, 1, -1});
      const VarId bias = network.table("bias", list, {.rows = 100, .dim = 1});
      const VarId x = network.linear("fc", network.flatten(items), {.features = 1});
      const VarId sum = network.add(x, network.reshape(bias, {4, 1}));
      if (section == forward) loss = network.apply("mean", {sum});
    }
  }
};

TEST(ServedTables, Rows_BecomeFeedsOfABatch) {
  Lookups model;
  serve_tables(model.program, {{"items", 0}, {"bias", 1}});
  const std::vector<ServedTable> tables = served_tables(model.program);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].name, "bias");
  EXPECT_EQ(tables[0].column, "ids");
  EXPECT_EQ(tables[1].name, "items");
  EXPECT_EQ(tables[1].column, "ids");
  EXPECT_EQ(tables[1].dim, 5);
  EXPECT_EQ(tables[1].most, 24);
  const Var& rows = model.program.var(tables[1].rows);
  EXPECT_EQ(rows.kind, VarKind::kFeed);
  EXPECT_EQ(rows.shape, Shape({24, 5}));
  EXPECT_EQ(model.program.parameters().size(), 2u);  // those of fc
  EXPECT_EQ(tables[1].gradient, kNoVar);
  append_backward(model.program, model.forward, model.loss, 1, kNoVar,
                  {tables[0].rows, tables[1].rows});
  const VarId gradient = served_tables(model.program)[1].gradient;
  ASSERT_NE(gradient, kNoVar);
  EXPECT_EQ(model.program.var(gradient).shape, Shape({24, 5}));
}

TEST(ServedTables, OtherTables_StayParameters) {
  Lookups model;
  serve_tables(model.program, {{"items", 0}});
  EXPECT_EQ(served_tables(model.program).size(), 1u);
  EXPECT_EQ(model.program.var(model.program.find("bias.weight")).kind, VarKind::kParameter);
}

TEST(ServedTables, UnknownTable_NamesTheModels) {
  Lookups model;
  const Error error = thrown_by([&] { serve_tables(model.program, {{"item", 0}}); });
  EXPECT_EQ(error.where(), "tables.item");
  EXPECT_THAT(error.failure(), HasSubstr("items"));
}

TEST(ServedTables, AnotherDim_IsRefused) {
  Lookups model;
  EXPECT_THAT(thrown_by([&] {
                serve_tables(model.program, {{"items", 4}});
              }),
              IsUsageError("tables.items.dim"));
}

TEST(ServedTables, WeightWithOtherReaders_IsRefused) {
  Lookups model;
  model.program.emit(model.forward, "relu", {model.program.find("items.weight")});
  EXPECT_THAT(thrown_by([&] {
                serve_tables(model.program, {{"items", 0}});
              }),
              IsError(ErrorCode::kUnsupported, "tables.items"));
}

}  // namespace
}  // namespace fleet
