#include "ps/dense_client.h"

#include <gmock/gmock.h>

#include "base/thread.h"
#include "tests/engine/ps/inline_server.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

using testing::HasSubstr;

const UpdateJob kSgd{.optimizer = R"({"name": "sgd"})", .keeps = true};

std::vector<float> values(UpdateExecutor& rank, const std::string& name) {
  return rank.executor().values<float>(rank.executor().program().find(name));
}

TEST(DenseClient, Begin_GivesTrainer0sVariablesToAll) {
  const Program program = program_of(kSgd, /*served=*/true);
  InlineServers servers(program, 2, 2);
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0), other = servers.client(program, 1);
  EXPECT_NE(first.saved(), second.saved());
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  EXPECT_EQ(first.saved(), second.saved());
}

TEST(DenseClient, Synchronize_GivesTrainer0sStatisticsToAll) {
  const Program program = program_of(kSgd, /*served=*/true);
  InlineServers servers(program, 2, 2);
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0), other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  const std::vector<float> mean = {7, 8, 9};
  first.executor().write(first.executor().program().find("running_mean"), mean);
  Thread waits("trainer1", [&] { other->synchronize(second.executor(), true); });
  one->synchronize(first.executor(), true);
  waits.join();
  EXPECT_EQ(values(second, "running_mean"), mean);
}

TEST(DenseClient, OtherOptimizer_IsRefused) {
  const Program program = program_of(kSgd, /*served=*/true);
  const Program other = program_of({.optimizer = R"({"name": "momentum"})", .keeps = true}, true);
  InlineServers servers(program, 2, 1);
  EXPECT_THAT(thrown_by([&] { servers.client(other, 0); }), IsUsageError("server 0"));
}

TEST(DenseClient, ServerThatDoesNotAnswer_IsNamed) {
  const Program program = program_of(kSgd, /*served=*/true);
  const ServedModel model = served_model(program);
  const auto connect = [](int server, ConnectionHandler&) -> std::shared_ptr<Connection> {
    throw Error(ErrorCode::kTimeout, "did not answer", "10.0.1." + std::to_string(server), "wait");
  };
  EXPECT_THAT(thrown_by([&] {
                DenseClient(model, place(model, 1), {.servers = {"10.0.1.0"}, .connect = connect});
              }),
              IsError(ErrorCode::kTimeout, "server 0 at 10.0.1.0"));
}

TEST(DenseClient, OtherCheckpoint_IsNamed) {
  const Program program = program_of(kSgd, /*served=*/true);
  InlineServers servers(program, 2, 2);
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0), other = servers.client(program, 1);
  one->begin(first.executor(), 3);
  EXPECT_THAT(thrown_by([&] { other->begin(second.executor(), 5); }),
              IsUsageError("server 0 at 10.0.1.0:6070"));
}

TEST(DenseClient, TrainerThatLeaves_IsNamedToTheOthers) {
  const Program program = program_of(kSgd, /*served=*/true);
  InlineServers servers(program, 2, 2);
  UpdateExecutor first(program, 1), second(program, 2);
  const auto one = servers.client(program, 0);
  auto other = servers.client(program, 1);
  one->begin(first.executor(), 0);
  other->begin(second.executor(), 0);
  other.reset();
  first.feed(random_gradients(1, 1)[0][0], 0.1f);
  first.run(0);
  EXPECT_THAT(thrown_by([&] { one->update(first.executor(), 0, 0.1); }),
              IsError(ErrorCode::kPeerLost, HasSubstr("trainer 1 at ")));
}

// --- Mailboxes --------------------------------------------------------------------------------

Message of_type(MessageType type) { return {.header = {.type = type}}; }

class Mailboxes : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kShort{1};
  ServerMailboxes boxes_{{"server 0 at a:1", "server 1 at b:2"}};
};

TEST_F(Mailboxes, Wait_SkipsAcceptedPushes) {
  boxes_.handler(0).received(nullptr, of_type(MessageType::kAccepted));
  boxes_.handler(0).received(nullptr, of_type(MessageType::kValues));
  EXPECT_EQ(boxes_.wait(0, MessageType::kValues, kShort).header.type, MessageType::kValues);
}

TEST_F(Mailboxes, SilentServer_IsNamed) {
  boxes_.handler(0).received(nullptr, of_type(MessageType::kValues));
  EXPECT_THAT(thrown_by([&] { boxes_.wait(1, MessageType::kValues, kShort); }),
              IsError(ErrorCode::kTimeout, "server 1 at b:2"));
}

TEST_F(Mailboxes, LostServer_EndsAWaitForAnother) {
  const Error why(ErrorCode::kPeerLost, "reset");
  boxes_.handler(1).closed(nullptr, &why);
  EXPECT_THAT(thrown_by([&] { boxes_.wait(0, MessageType::kValues, std::chrono::minutes(1)); }),
              IsError(ErrorCode::kPeerLost, "server 1 at b:2"));
}

// The reason comes before its effects.
TEST_F(Mailboxes, Failure_IsThrownRatherThanALostConnection) {
  boxes_.handler(0).closed(nullptr, nullptr);
  boxes_.handler(1).received(
      nullptr, delivered(failure_message({ErrorCode::kTimeout, "is late", "trainer 3", "wait"})));
  boxes_.handler(1).closed(nullptr, nullptr);
  EXPECT_THAT(thrown_by([&] { boxes_.wait(0, MessageType::kValues, kShort); }),
              IsError(ErrorCode::kTimeout, "trainer 3"));
}

TEST_F(Mailboxes, UnexpectedMessage_IsABug) {
  boxes_.handler(0).received(nullptr, of_type(MessageType::kStates));
  EXPECT_EQ(thrown_by([&] { boxes_.wait(0, MessageType::kValues, kShort); }).code(),
            ErrorCode::kInternal);
}

}  // namespace
}  // namespace fleet::ps
