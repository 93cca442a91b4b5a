#include "ps/dense_server.h"

#include <gmock/gmock.h>

#include <cstring>

#include "tests/engine/ps/dense_server_fixture.h"

namespace fleet::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(DenseServerTest, Start_TellsTrainersWhenValuesAreThere) {
  for (int t = 0; t < kTrainers; ++t) EXPECT_EQ(texts(hello(t)).size(), 1u);
  EXPECT_THAT(texts(pull(1, 0)), IsEmpty());
  EXPECT_THAT(texts(initial()), ElementsAre("1 accepted", "2 values"));
  EXPECT_THAT(store_.calls, ElementsAre("load"));
}

TEST_F(DenseServerTest, AnyOrderOfArrival_AddsInTheOrderOfRanks) {
  start();
  std::vector<int> order = {0, 1, 2};
  int64_t step = 0;
  do {
    store_.calls.clear();
    for (const int t : order) push(t, step);
    ++step;
    EXPECT_THAT(store_.calls, ElementsAre("first 1", "add 2", "add 3", "update"));
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(server_->version(), 6);
}

TEST_F(DenseServerTest, Pull_IsAnsweredAfterTheLastPush) {
  start();
  push(1, 0);
  EXPECT_THAT(texts(pull(1, 1)), IsEmpty());
  push(0, 0);
  EXPECT_THAT(texts(push(2, 0)), ElementsAre("3 accepted", "2 values"));
  EXPECT_THAT(texts(pull(0, 1)), ElementsAre("1 values"));
}

TEST_F(DenseServerTest, RetriedPush_IsAppliedOnce) {
  start();
  push(0, 0);
  EXPECT_THAT(texts(push(0, 0)), ElementsAre("1 accepted"));
  push(1, 0);
  push(2, 0);
  EXPECT_THAT(texts(push(1, 0)), ElementsAre("2 accepted"));
  EXPECT_THAT(store_.calls, ElementsAre("first 1", "add 2", "add 3", "update"));
  EXPECT_EQ(server_->version(), 1);
}

TEST_F(DenseServerTest, LostPush_EndsTheJob) {
  start();
  push_again(0, 0, /*sequence=*/2);
  ASSERT_TRUE(server_->error());
  EXPECT_EQ(server_->error()->code(), ErrorCode::kInternal);
}

TEST_F(DenseServerTest, BadGradientOfOneTrainer_LeavesTheUpdateOutForAll) {
  start();
  push(0, 0);
  push(1, 0, {.learning_rate = 1, .bad_gradient = 5});
  push(2, 0, {.learning_rate = 1, .loss_is_bad = 1, .bad_gradient = 3});
  EXPECT_EQ(store_.calls.back(), "leave out");
  const Actions actions = pull(0, 1);
  ValuesHead head;
  std::memcpy(&head, actions[0].message->parts[0].data.data(), sizeof head);
  EXPECT_EQ(head.left_out, 1u);
  EXPECT_EQ(head.bad_gradient, 3u);
  for (int t = 0; t < kTrainers; ++t) push(t, 1);
  EXPECT_EQ(store_.calls.back(), "update");
}

TEST_F(DenseServerTest, SharedNorms_ComeFromTrainer0BeforeTheUpdate) {
  store_.shares = true;
  start();
  const auto norms = [&](int trainer, int64_t step) {
    return receive(trainer, {.type = MessageType::kNorms, .version = step},
                   {owned_bytes("1234567812345678", 16)});
  };
  for (int step = 0; step < 2; ++step) {
    store_.calls.clear();
    push(1, step);
    push(0, step);
    pull(2, step + 1);
    EXPECT_THAT(texts(push(2, step)), ElementsAre("3 accepted", "1 norms"));
    EXPECT_EQ(server_->version(), step);
    EXPECT_THAT(texts(norms(0, step)), ElementsAre("3 values"));
    EXPECT_THAT(store_.calls, ElementsAre("first 1", "add 2", "add 3", "norms 16", "update"));
  }
  norms(0, 1);  // nothing waits for it
  EXPECT_EQ(server_->error()->code(), ErrorCode::kInternal);
}

TEST_F(DenseServerTest, MissingNorms_AreTrainer0s) {
  store_.shares = true;
  start();
  for (int t = 0; t < kTrainers; ++t) push(t, 0);
  EXPECT_EQ(server_->next_deadline(), now_ + 10);
  EXPECT_THAT(sent_error(pass(10)), IsError(ErrorCode::kTimeout, "trainer 0 at host0"));
}

TEST_F(DenseServerTest, LostTrainer_IsNamedToAll) {
  start();
  push(0, 0);
  const Actions actions = closed(2);
  EXPECT_THAT(texts(actions),
              ElementsAre("1 failure and close", "2 failure and close", "3 failure and close"));
  EXPECT_THAT(sent_error(actions), IsError(ErrorCode::kPeerLost, "trainer 2 at host2"));
  EXPECT_EQ(server_->error()->code(), ErrorCode::kPeerLost);
  EXPECT_THAT(texts(push(1, 0)), IsEmpty());
}

TEST_F(DenseServerTest, OtherModel_IsRefusedNamingTheDifference) {
  const std::vector<std::pair<uint64_t HelloHead::*, std::string>> parts = {
      {&HelloHead::parameters, "parameters"},
      {&HelloHead::rule, "optimizer"},
      {&HelloHead::placement, "blocks"}};
  for (const auto& [member, word] : parts) {
    server_.emplace(DenseServerOptions{.own = hello_of(0), .timeout = 10}, store_, now_);
    hello(0);
    HelloHead other = hello_of(1);
    other.*member = 99;
    const Actions actions = hello(1, other);
    EXPECT_THAT(texts(actions),
                testing::UnorderedElementsAre("2 failure and close", "1 failure and close"));
    const Error error = sent_error(actions);
    EXPECT_THAT(error, IsUsageError("server 1"));
    EXPECT_THAT(error.failure(), HasSubstr(word));
    EXPECT_THAT(error.failure(), HasSubstr("trainer 1 at host1"));
  }
}

TEST_F(DenseServerTest, OtherNumbers_AreRefused) {
  HelloHead other = hello_of(0);
  other.trainers = 4;
  EXPECT_THAT(sent_error(hello(0, other)), IsUsageError("server 1"));
}

TEST_F(DenseServerTest, SecondProcessOfARank_IsRefused) {
  hello(0);
  EXPECT_THAT(sent_error(hello(1, hello_of(0))), IsUsageError("server 1"));
}

TEST_F(DenseServerTest, TrainersThatDoNotStart_AreNamed) {
  hello(1);
  EXPECT_EQ(server_->next_deadline(), 110);
  EXPECT_THAT(pass(9), IsEmpty());
  EXPECT_THAT(sent_error(pass(1)), IsError(ErrorCode::kTimeout, "trainer 0, trainer 2"));
}

TEST_F(DenseServerTest, TrainersThatDoNotPush_AreNamed) {
  start();
  pass(100);  // nobody waits
  EXPECT_FALSE(server_->error());
  push(1, 0);
  EXPECT_EQ(server_->next_deadline(), now_ + 10);
  EXPECT_THAT(pass(9), IsEmpty());
  EXPECT_THAT(sent_error(pass(1)),
              IsError(ErrorCode::kTimeout, "trainer 0 at host0, trainer 2 at host2"));
}

TEST_F(DenseServerTest, MissingInitialValues_AreTrainer0s) {
  for (int t = 0; t < kTrainers; ++t) hello(t);
  pull(1, 0);
  EXPECT_THAT(sent_error(pass(10)), IsError(ErrorCode::kTimeout, "trainer 0 at host0"));
}

TEST_F(DenseServerTest, OtherStepOrRate_NamesTheTrainer) {
  start();
  push(0, 0);
  EXPECT_THAT(sent_error(push(1, 0, {.learning_rate = 2})), IsUsageError("trainer 1 at host1"));
}

TEST_F(DenseServerTest, TrainersAtOtherSteps_AreNamed) {
  start();
  push_again(0, 4, 1);
  EXPECT_THAT(sent_error(push_again(1, 5, 1)), IsUsageError("trainer 1 at host1"));
}

TEST_F(DenseServerTest, States_WaitForWhatTrainer0SendsInTheSameCall) {
  start();
  const auto ask = [&](int trainer, uint64_t ordinal) {
    return receive(trainer, {.type = MessageType::kPullStates},
                   {bytes_of_head(StatesHead{.ordinal = ordinal, .sections = kKeptSection})});
  };
  EXPECT_THAT(texts(ask(1, 0)), ElementsAre("2 states"));
  EXPECT_THAT(texts(ask(1, 2)), IsEmpty());
  const float value = 0;
  const Actions actions = receive(
      0, {.type = MessageType::kInitial, .sequence = 2},
      {bytes_of_head(InitialHead{.sections = kKeptSection}), owned_bytes(&value, sizeof value)});
  EXPECT_THAT(texts(actions), ElementsAre("1 accepted", "2 states"));
  EXPECT_EQ(server_->version(), 0);
}

TEST_F(DenseServerTest, Goodbyes_EndTheServer) {
  start();
  for (int t = 0; t < kTrainers; ++t) {
    EXPECT_FALSE(server_->done());
    goodbye(t);
    closed(t);
  }
  EXPECT_TRUE(server_->done());
  EXPECT_FALSE(server_->error());
}

TEST_F(DenseServerTest, TrainerThatEndsEarly_IsNamed) {
  start();
  goodbye(1);
  EXPECT_THAT(sent_error(push(0, 0)), IsError(ErrorCode::kPeerLost, "trainer 1 at host1"));
}

TEST_F(DenseServerTest, MessageBeforeHello_EndsTheJob) {
  hello(0);
  EXPECT_THAT(texts(pull(1, 0)), ElementsAre("1 failure and close"));
}

TEST_F(DenseServerTest, PushOfAnotherSize_EndsTheJob) {
  start();
  receive(0, {.type = MessageType::kPush, .sequence = 1}, {});
  EXPECT_EQ(server_->error()->code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace fleet::ps
