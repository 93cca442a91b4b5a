#include "ps/explain.h"

#include <gmock/gmock.h>

#include "tests/engine/ps/click_trainers.h"
#include "tests/engine/ps/update_job.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ServersExplained, EachServer_HasItsBlocks) {
  const UpdateJob adam{.optimizer = R"({"name": "adam"})", .keeps = true};
  const ServersExplained all = servers_explained(program_of(adam, /*served=*/true), 2);
  ASSERT_EQ(all.servers.size(), 2u);
  EXPECT_THAT(all.servers[0].line, HasSubstr("server 0 holds 1 block of 1 parameter:"));
  EXPECT_THAT(all.servers[1].line, HasSubstr("server 1 holds 5 blocks of 5 parameters:"));
  ASSERT_EQ(all.servers[0].blocks.size(), 1u);
  EXPECT_EQ(all.servers[0].blocks[0].parameter, "fc2.weight");
  EXPECT_TRUE(all.servers[0].blocks[0].whole);
  EXPECT_EQ(all.servers[0].kept.size() + all.servers[1].kept.size(), 2u);
  size_t bytes = 0;
  for (const auto& [name, shape] : parameters_of_mlp()) bytes += shape.elements() * sizeof(float);
  EXPECT_GE(all.pulled_bytes, bytes);
  EXPECT_LT(all.pulled_bytes, bytes + 8 * parameters_of_mlp().size());
  EXPECT_EQ(all.pushed_bytes, all.pulled_bytes);
}

TEST(ServersExplained, ModeThatTheStartWouldRefuse_IsRefused) {
  const Program program =
      program_of({.optimizer = R"({"name": "sgd", "clip": "global_norm"})"}, /*served=*/true);
  EXPECT_NO_THROW(servers_explained(program, 2, {}, ServerMode::kSync));
  EXPECT_NO_THROW(servers_explained(program, 1, {}, ServerMode::kAsync));
  EXPECT_THAT(thrown_by([&] { servers_explained(program, 2, {}, ServerMode::kAsync); }),
              IsError(ErrorCode::kUnsupported, "optimizer.clip"));
}

// Trainers push differences of values, whatever the type of their gradients, and update the states.
TEST(ServersExplained, Geo_HasTheBytesOfDifferences) {
  const UpdateJob adam{.optimizer = R"({"name": "adam"})", .gradients = DType::kBFloat16};
  const Program program = program_of(adam, /*served=*/true);
  const ServersExplained sync = servers_explained(program, 2);
  const ServersExplained geo = servers_explained(program, 2, {}, ServerMode::kGeo);
  EXPECT_LT(sync.pushed_bytes, sync.pulled_bytes);
  EXPECT_EQ(geo.pushed_bytes, geo.pulled_bytes);
  EXPECT_THAT(sync.servers[0].line, testing::EndsWith("MiB with states"));
  EXPECT_THAT(geo.servers[0].line, testing::EndsWith("states that trainers begin with"));
}

TEST(HeldBlock, Text_HasTheRangeOfAPart) {
  EXPECT_EQ((HeldBlock{.parameter = "w", .end = 9, .whole = true}).text(), "w");
  EXPECT_EQ((HeldBlock{.parameter = "w", .begin = 3, .end = 9}).text(), "w [3, 9)");
}

// Bytes as the messages of a step have them.
TEST(ServersExplained, Tables_HaveShardsAndTheBytesOfAnId) {
  const Job job =
      click_job(R"({"name": "sgd"})", R"({"embedding": {"rule": {"name": "adagrad"}}})");
  const ClickTrainer trainer(job, 0, 2, 3);
  const ServersExplained all =
      servers_explained(trainer.program(), 3, tables_of(job, trainer.program()));
  ASSERT_EQ(all.tables.size(), 1u);
  const HeldTable& table = all.tables[0];
  EXPECT_EQ(table.name, "embedding");
  EXPECT_EQ(table.dim, 5);
  EXPECT_EQ(table.row_bytes, 24u);
  EXPECT_EQ(table.rule, "adagrad");
  ASSERT_EQ(table.shards.size(), 3u);
  EXPECT_EQ(table.shards[0].first, 0);
  EXPECT_EQ(table.shards[2].end, kVirtualShards);
  EXPECT_EQ(table.pulled_bytes, 4u * table.dim);
  EXPECT_EQ(table.pushed_bytes, 28u + 4u * table.dim);
  EXPECT_EQ(table.most_ids, kClickBatch * kClickSlots * kClickLength);
}

}  // namespace
}  // namespace fleet::ps
