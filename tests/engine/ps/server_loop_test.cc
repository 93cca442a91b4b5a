// Servers with threads and connections of their own.
#include "ps/server_loop.h"

#include <gmock/gmock.h>

#include "base/running_clock.h"
#include "base/thread.h"
#include "ps/client.h"
#include "ps/server.h"
#include "tests/engine/ps/inline_server.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

const UpdateJob kAdam{.optimizer = R"({"name": "adam"})"};

// A server behind connections in this process.
class LoopServer {
 public:
  explicit LoopServer(const Program& trainer, double timeout = 60)
      : model_(served_model(trainer)),
        placement_(place(model_, 1)),
        device_(choose_device("cpu", 0).device),
        store_(make_block_store(server_program(trainer, model_, placement_, 0), model_, placement_,
                                0, *device_)),
        server_({.own = {.trainers = 1,
                         .parameters = model_.hash_of_parameters(),
                         .rule = model_.hash_of_rule(),
                         .placement =
                             hash_of(placement_, model_.placed_parameters(), model_.placed_vars())},
                 .timeout = timeout},
                *store_, running_seconds()) {}

  // The handler must not be called any more.
  ~LoopServer() {
    for (const auto& end : ends_) end->disconnect(std::chrono::seconds(10));
  }

  std::unique_ptr<DenseClient> client() {
    const auto connect = [this](int, ConnectionHandler& handler) {
      InProcessPair pair = connect_in_process(handler, loop_);
      ends_.push_back(pair.server);
      return pair.client;
    };
    return std::make_unique<DenseClient>(
        model_, placement_,
        DenseClientOptions{
            .servers = {"here"}, .timeout = std::chrono::seconds(60), .connect = connect});
  }
  void run(const std::function<bool()>& stop = nullptr) { loop_.run(server_, stop); }

 private:
  const ServedModel model_;
  const Placement placement_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<BlockStore> store_;
  DenseServer server_;
  ServerLoop loop_;
  std::vector<std::shared_ptr<Connection>> ends_;
};

void train(DenseClient& client, UpdateExecutor& rank, int steps) {
  const Gradients gradients = random_gradients(steps, 1);
  client.begin(rank.executor(), 0);
  for (int step = 0; step < steps; ++step) {
    rank.feed(gradients[step][0], 0.1f);
    rank.run(step);
    client.update(rank.executor(), step, 0.1f);
  }
}

TEST(ServerLoop, Goodbye_EndsIt) {
  const Program program = program_of(kAdam, /*served=*/true);
  LoopServer server(program);
  Thread serves("server", [&] { server.run(); });
  UpdateExecutor rank(program, 1);
  const auto client = server.client();
  train(*client, rank, 2);
  client->finish();
  serves.join();
}

TEST(ServerLoop, LostTrainer_IsThrown) {
  const Program program = program_of(kAdam, /*served=*/true);
  LoopServer server(program);
  Thread serves("server", [&] { server.run(); });
  server.client().reset();
  EXPECT_THAT(thrown_by([&] { serves.join(); }),
              IsError(ErrorCode::kPeerLost, testing::HasSubstr("trainer 0")));
}

TEST(ServerLoop, NoTrainer_IsATimeout) {
  const Program program = program_of(kAdam, /*served=*/true);
  LoopServer server(program, /*timeout=*/0.05);
  EXPECT_THAT(thrown_by([&] { server.run(); }), IsError(ErrorCode::kTimeout, "trainer 0"));
}

TEST(ServerLoop, Stop_EndsItAndTellsTrainers) {
  const Program program = program_of(kAdam, /*served=*/true);
  LoopServer server(program);
  std::atomic<bool> stop = false;
  Thread serves("server", [&] { server.run([&] { return stop.load(); }); });
  UpdateExecutor rank(program, 1);
  const auto client = server.client();
  train(*client, rank, 1);
  stop = true;
  serves.join();
  rank.feed(random_gradients(1, 1)[0][0], 0.1f);
  EXPECT_THAT(thrown_by([&] { client->update(rank.executor(), 1, 0.1f); }),
              IsError(ErrorCode::kPeerLost, "server 0"));
}

// Over a port of this machine: run_server() and connect_servers().
TEST(RunServer, TrainerOfItsJob_GetsTheUpdates) {
  const Program program = program_of(kAdam, /*served=*/true);
  const std::string address = "127.0.0.1:" + std::to_string(20000 + ::getpid() % 10000);
  Thread serves("server", [&] {
    run_server(program, {.address = address, .timeout = std::chrono::seconds(60)});
  });
  UpdateExecutor rank(program, 1), alone(program_of(kAdam, /*served=*/false), 1);
  const auto exchange = connect_servers(program, {.servers = {address},
                                                  .connect_timeout = std::chrono::seconds(60),
                                                  .timeout = std::chrono::seconds(60)});
  EXPECT_THAT(exchange->text(), testing::HasSubstr("sync"));
  train(dynamic_cast<DenseClient&>(*exchange), rank, 3);
  exchange->synchronize(rank.executor(), /*with_states=*/true);
  exchange->finish();
  serves.join();
  const Gradients gradients = random_gradients(3, 1);
  for (int step = 0; step < 3; ++step) {
    alone.feed(gradients[step][0], 0.1f);
    alone.run(step);
  }
  EXPECT_EQ(rank.saved(), alone.saved());
}

}  // namespace
}  // namespace fleet::ps
