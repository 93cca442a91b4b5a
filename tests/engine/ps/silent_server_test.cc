// Every wait of a trainer ends, and names the server that does not answer.
#include <gmock/gmock.h>

#include "tests/engine/ps/inline_server.h"
#include "tests/engine/ps/local_training.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr char kSilent[] = "server 1 at 10.0.1.1:6070";

struct Mode {
  const char* name;
  ServerSettings settings;
};

class SilentServer : public ::testing::TestWithParam<Mode> {
 protected:
  // begin(), then one of two servers falls silent.
  SilentServer()
      : program_(program_of({.averages = !GetParam().settings.apart()}, /*served=*/true)),
        servers_(program_, 2, 1, kOddBlocks, false, {}, GetParam().settings),
        rank_(program_, 1),
        client_(servers_.client(program_, 0, 0, std::chrono::milliseconds(50))) {
    client_->begin(rank_.executor(), 0);
    servers_.all[1]->fall_silent();
  }
  void step(int64_t step) {
    rank_.feed(gradients_at(rank_.executor(), 0), kLocalRate);
    rank_.run(step);
    client_->update(rank_.executor(), step, kLocalRate);
  }
  const Program program_;
  InlineServers servers_;
  UpdateExecutor rank_;
  const std::unique_ptr<DenseClient> client_;
};

// In async, when the queue is full or the staleness too large.
TEST_P(SilentServer, Steps_EndNamingIt) {
  EXPECT_THAT(thrown_by([&] {
                for (int64_t at = 0; at < 20; ++at) step(at);
              }),
              IsError(ErrorCode::kTimeout, kSilent));
}

TEST_P(SilentServer, Evaluation_EndsNamingIt) {
  EXPECT_THAT(thrown_by([&] {
                if (client_->apart()) step(0);
                client_->settle(rank_.executor());
                client_->synchronize(rank_.executor(), /*with_states=*/false);
              }),
              IsError(ErrorCode::kTimeout, kSilent));
}

TEST_P(SilentServer, Checkpoint_EndsNamingIt) {
  EXPECT_THAT(thrown_by([&] { client_->synchronize(rank_.executor(), /*with_states=*/true); }),
              IsError(ErrorCode::kTimeout, kSilent));
}

INSTANTIATE_TEST_SUITE_P(
    Modes, SilentServer,
    ::testing::Values(Mode{"Sync", {}},
                      Mode{"AsyncQueue", {.mode = ServerMode::kAsync, .queue_size = 2}},
                      Mode{"AsyncStaleness", {.mode = ServerMode::kAsync, .max_staleness = 0}},
                      Mode{"Geo", {.mode = ServerMode::kGeo, .geo_steps = 2}}),
    [](const auto& mode) { return std::string(mode.param.name); });

}  // namespace
}  // namespace fleet::ps
