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
  explicit LoopServer(const Program& trainer, double timeout = 60, int trainers = 1,
                      ServerMode mode = ServerMode::kSync)
      : trainers_(trainers),
        mode_(mode),
        model_(served_model(trainer)),
        placement_(place(model_, 1)),
        device_(choose_device("cpu", 0).device),
        store_(make_block_store(server_program(trainer, model_, placement_, 0), model_, placement_,
                                0, *device_)),
        server_({.own = {.trainers = trainers,
                         .mode = static_cast<uint32_t>(mode),
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

  std::unique_ptr<DenseClient> client(int trainer = 0) {
    const auto connect = [this](int, ConnectionHandler& handler) {
      InProcessPair pair = connect_in_process(handler, loop_);
      ends_.push_back(pair.server);
      return pair.client;
    };
    return make_dense_client(model_, placement_,
                             DenseClientOptions{.trainer = trainer,
                                                .trainers = trainers_,
                                                .servers = {"here"},
                                                .settings = {.mode = mode_},
                                                .timeout = std::chrono::seconds(60),
                                                .connect = connect});
  }
  void run(const std::function<bool()>& stop = nullptr, const LostTrainers& lost = {}) {
    loop_.run(server_, stop, lost);
  }

 private:
  const int trainers_;
  const ServerMode mode_;
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

// The others may have to be told through a process that is gone.
TEST(ServerLoop, FailureToTellOfALostTrainer_IsTriedAgainWhileOthersTrain) {
  const Program program = program_of(kAdam, /*served=*/true);
  LoopServer server(program, /*timeout=*/60, /*trainers=*/2, ServerMode::kAsync);
  std::atomic<bool> stops = false;
  std::atomic<int> calls = 0;
  const LostTrainers lost{.stopping = [&] { return stops.load(); },
                          .on_abandoned =
                              [&](int trainer) {
                                EXPECT_EQ(trainer, 1);
                                if (++calls < 3)
                                  throw Error(ErrorCode::kPeerLost, "the store is gone");
                              }};
  Thread serves("server", [&] { server.run(nullptr, lost); });
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = server.client(0);
  auto other = server.client(1);
  train(*one, first, 1);
  other->begin(second.executor(), 0);
  other.reset();
  stops = true;
  while (calls < 3) std::this_thread::yield();
  first.feed(random_gradients(1, 1)[0][0], 0.1f);
  one->update(first.executor(), 1, 0.1f);
  one->finish();
  serves.join();
  EXPECT_EQ(calls, 3);
}

TEST(ServerLoop, AnyException_IsSentToTrainers) {
  const Program program = program_of(kAdam, /*served=*/true);
  LoopServer server(program);
  std::atomic<bool> fails = false;
  Thread serves("server", [&] {
    server.run([&] { return fails ? throw std::runtime_error("an accident") : false; });
  });
  UpdateExecutor rank(program, 1);
  const auto client = server.client();
  train(*client, rank, 1);
  fails = true;
  EXPECT_THAT(thrown_by([&] { serves.join(); }), IsError(ErrorCode::kInternal, "server 0"));
  rank.feed(random_gradients(1, 1)[0][0], 0.1f);
  EXPECT_THAT(thrown_by([&] { client->update(rank.executor(), 1, 0.1f); }),
              IsError(ErrorCode::kInternal, "server 0"));
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
