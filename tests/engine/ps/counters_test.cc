// What servers and trainers count for the launcher.
#include <gmock/gmock.h>

#include "observe/rank_progress.h"
#include "ps/server_counters.h"
#include "ps/trainer_counters.h"
#include "tests/engine/ps/inline_server.h"
#include "tests/engine/ps/tables/some_table.h"

namespace fleet::ps {
namespace {

Message of_size(MessageType type, size_t bytes, uint16_t table = 0, uint32_t count = 0) {
  const auto data = std::make_shared<std::vector<std::byte>>(bytes);
  return {.header = {.type = type, .table = table, .count = count},
          .parts = {{.data = *data, .owner = data}}};
}

TEST(TrainerCounters, Messages_AreCountedUntilTheyAreAnswered) {
  ProgressReader reader;
  TrainerCounters counters(2, 0, ServerProgressWriter(reader.path()));
  counters.sent(0, of_size(MessageType::kPush, 100));
  counters.sent(0, of_size(MessageType::kPull, 0));
  counters.sent(1, of_size(MessageType::kPush, 40));
  counters.sent(1, of_size(MessageType::kPush, 7, /*table=*/1, 3));
  counters.sent(1, of_size(MessageType::kGoodbye, 5));
  counters.received(0, of_size(MessageType::kAccepted, 0));
  counters.received(1, of_size(MessageType::kAccepted, 0));
  EXPECT_EQ(counters.use().answer[0], 0) << "its pull is open";
  EXPECT_GT(counters.use().answer[1], 0);
  counters.received(0, of_size(MessageType::kValues, 60));
  EXPECT_FALSE(reader.read_use());
  counters.updated();
  const auto use = reader.read_use();
  ASSERT_TRUE(use);
  EXPECT_EQ(use->updates, 1);
  EXPECT_EQ(use->pushes, 3);
  EXPECT_EQ(use->pulls, 1);
  EXPECT_EQ(use->sent, 147);
  EXPECT_EQ(use->received, 60);
  EXPECT_GT(use->answer[0], 0);
}

TEST(TrainerCounters, Evaluations_DoNotCount) {
  TrainerCounters counters(1, 0, ServerProgressWriter());
  counters.count(false);
  counters.sent(0, of_size(MessageType::kPull, 100, 1, 10));
  counters.received(0, of_size(MessageType::kValues, 60, 1, 10));
  counters.count(true);
  EXPECT_EQ(counters.use().sent, 0);
  EXPECT_EQ(counters.use().received, 0);
  EXPECT_EQ(counters.use().answer[0], 0);
}

TEST(TrainerCounters, Line_HasMeansSinceThePreviousOne) {
  TrainerCounters counters(2, 16, ServerProgressWriter());
  EventLine first("train"), second("train"), none("train");
  counters.sent(0, of_size(MessageType::kPush, 100));
  counters.updated(4, 2);
  counters.updated(2, 0);
  counters.add_to(&first);
  counters.updated(8, 1);
  counters.add_to(&second);
  counters.add_to(&none);
  EXPECT_THAT(first.json(0), testing::HasSubstr(R"("pushed_bytes":50)"));
  EXPECT_THAT(first.json(0), testing::HasSubstr(R"("push_queue":3)"));
  EXPECT_THAT(first.json(0), testing::HasSubstr(R"("staleness":1)"));
  EXPECT_THAT(second.json(0), testing::HasSubstr(R"("push_queue":8)"));
  EXPECT_TRUE(none.values().empty());
}

// In sync, a step of a trainer has one push and one pull for each server.
TEST(TrainerCounters, StepsInSync_HaveTheBytesOfTheBlocks) {
  const Program program = program_of({}, /*served=*/true);
  InlineServers servers(program, 2, 1);
  UpdateExecutor rank(program, 1);
  ProgressReader reader;
  ::setenv(kEnvProgressFile, reader.path().c_str(), 1);
  const auto client = servers.client(program, 0);
  ::unsetenv(kEnvProgressFile);
  client->begin(rank.executor(), 0);
  const Gradients gradients = random_gradients(3, 1);
  for (int step = 0; step < 3; ++step) {
    rank.feed(gradients[step][0], 0.1f, 1.f);
    rank.run(step);
    client->update(rank.executor(), step, 0.1);
  }
  const auto use = reader.read_use();
  ASSERT_TRUE(use);
  EXPECT_EQ(use->updates, 3);
  EXPECT_EQ(use->servers, 2);
  EXPECT_EQ(use->pushes, 6);
  EXPECT_EQ(use->pulls, 6);
  int64_t bytes = 0;
  for (const auto& [name, shape] : parameters_of_mlp()) bytes += 4 * shape.elements();
  EXPECT_GE(use->sent, 3 * bytes);
  EXPECT_LT(use->sent, 3 * (bytes + 400));
  EXPECT_GE(use->received, 3 * bytes);
  EXPECT_GE(use->values_wait, 0);
  client->finish();
}

struct ServerCountersTest : testing::Test {
  ServerCountersTest() {
    DenseServerOptions options{.own = {.trainers = 1, .server = 0, .servers = 1}, .tables = &host};
    const Program program = program_of({}, /*served=*/true);
    const ServedModel model = served_model(program);
    const Placement placement = place(model, 1);
    store = make_block_store(server_program(program, model, placement, 0), model, placement, 0,
                             *device);
    server.emplace(options, *store, 0);
  }
  ProgressReader reader;
  TableHost host{{}, 0, 1, 1};
  std::unique_ptr<Device> device = choose_device("cpu", 0).device;
  std::unique_ptr<BlockStore> store;
  std::optional<DenseServer> server;
  ServerCounters counters{"host:6170", 6, 1000, false, host, ServerProgressWriter(reader.path())};
};

// In geo, a trainer asks for the changes of others, without naming their ids.
TEST(ServerCountersOfTables, Rows_AreThoseOfAnswers) {
  const Program program = program_of({}, /*served=*/true);
  const ServedModel model = served_model(program);
  const Placement placement = place(model, 1);
  const std::unique_ptr<Device> device = choose_device("cpu", 0).device;
  const auto store =
      make_block_store(server_program(program, model, placement, 0), model, placement, 0, *device);
  TableHost host({some_settings("'dim': 4")}, 0, 1, 1, ServerMode::kGeo);
  const DenseServer server({.own = {.trainers = 1}, .tables = &host}, *store, 0);
  ServerCounters counters("host:6170", 6, 1000, true, host, ServerProgressWriter());
  counters.received(of_size(MessageType::kPull, 16, /*table=*/1, 0));
  counters.sent(of_size(MessageType::kValues, 60, /*table=*/1, 7));
  counters.received(of_size(MessageType::kPush, 60, /*table=*/1, 3));
  counters.publish(server, 0, 10);
  EXPECT_EQ(counters.counts().table[0].pulled, 7);
  EXPECT_EQ(counters.counts().table[0].pushed, 3);
}

TEST_F(ServerCountersTest, Work_IsPublished) {
  counters.received(of_size(MessageType::kPush, 100));
  counters.received(of_size(MessageType::kPull, 8));
  counters.received(of_size(MessageType::kPull, 8, /*table=*/3, 5));
  counters.sent(of_size(MessageType::kValues, 60));
  counters.worked(0.25);
  EXPECT_FALSE(reader.read_server());
  counters.publish(*server, 4, 10);
  auto seen = reader.read_server();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->address.view(), "host:6170");
  EXPECT_EQ(seen->state, ServerState::kStarting);
  EXPECT_EQ(seen->blocks, 6);
  EXPECT_EQ(seen->pushes, 1);
  EXPECT_EQ(seen->pulls, 1);
  EXPECT_EQ(seen->received, 116);
  EXPECT_EQ(seen->sent, 60);
  EXPECT_EQ(seen->busy, 250'000'000);
  EXPECT_EQ(seen->queued, 4);
  counters.received(of_size(MessageType::kPush, 100));
  counters.publish(*server, 0, 10.1);
  EXPECT_EQ(reader.read_server()->pushes, 1) << "too early";
  counters.publish(*server, 0, 10.3);
  EXPECT_EQ(reader.read_server()->pushes, 2);
}

}  // namespace
}  // namespace fleet::ps
