// Servers in processes of their own, which are suspended.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "base/env.h"
#include "base/thread.h"
#include "ps/client.h"
#include "ps/server.h"
#include "tests/engine/ps/ends.h"
#include "tests/engine/ps/other_process.h"
#include "tests/engine/ps/update_job.h"

namespace fleet::ps {
namespace {

constexpr char kServerAddress[] = "FLEET_PS_TEST_SERVER";
constexpr int kSuspended = 2;  // trainers
constexpr std::chrono::seconds kServerTimeout{3}, kSuspension{5};

TEST(ServerProcessMain, DISABLED_Serves) {
  run_server(program_of({}, /*served=*/true), {.address = get_env(kServerAddress).value(),
                                               .trainers = kSuspended,
                                               .timeout = kServerTimeout});
}

// Its timeout passes meanwhile. The second trainer comes only afterwards, and is not accused.
TEST(SuspendedServer, Resumed_GoesOn) {
  const Program program = program_of({}, /*served=*/true);
  const std::string address = "127.0.0.1:" + std::to_string(30000 + ::getpid() % 10000);
  TestProcess process("ServerProcessMain.DISABLED_Serves", {{kServerAddress, address}});
  const auto connect = [&](int trainer) {
    return connect_servers(program, {.servers = {address},
                                     .trainer = trainer,
                                     .trainers = kSuspended,
                                     .connect_timeout = kBound,
                                     .timeout = kBound});
  };
  std::vector<std::unique_ptr<ParameterExchange>> trainers;
  trainers.push_back(connect(0));
  process.send(SIGSTOP);
  std::this_thread::sleep_for(kSuspension);
  process.send(SIGCONT);
  trainers.push_back(connect(1));
  std::vector<Thread> threads;
  for (int t = 0; t < kSuspended; ++t) {
    threads.emplace_back("trainer", [&, t] {
      UpdateExecutor rank(program, 1);
      trainers[t]->begin(rank.executor(), 0);
      rank.feed(random_gradients(1, kSuspended)[0][t], 0.1f);
      rank.run(0);
      trainers[t]->update(rank.executor(), 0, 0.1f);
      trainers[t]->finish();
    });
  }
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(process.wait(), 0);
}

}  // namespace
}  // namespace fleet::ps
