// Trainers that do not wait for each other, and a trainer that is lost.
#include <gmock/gmock.h>

#include <random>

#include "ps/dense_server.h"
#include "tests/engine/ps/dense_server_fixture.h"

namespace fleet::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ApartServerTest : public DenseServerTest {
 protected:
  void start_in(ServerMode mode) {
    HelloHead own = hello_of(0);
    own.mode = static_cast<uint32_t>(mode);
    server_.emplace(DenseServerOptions{.own = own, .timeout = 10}, store_, now_);
    for (int t = 0; t < kTrainers; ++t) {
      HelloHead head = hello_of(t);
      head.mode = own.mode;
      hello(t, head);
    }
    initial();
    store_.calls.clear();
  }
};

TEST_F(ApartServerTest, AsyncPush_IsAppliedOnArrival) {
  start_in(ServerMode::kAsync);
  EXPECT_THAT(texts(push(1, 0)), ElementsAre("2 accepted"));
  EXPECT_THAT(texts(pull(1, 0)), ElementsAre("2 values"));
  push(1, 1);
  EXPECT_THAT(texts(push(1, 1)), ElementsAre("2 accepted"));  // a retry
  push(0, 0, {.learning_rate = 7, .bad_gradient = 1});
  EXPECT_THAT(store_.calls,
              ElementsAre("first 2", "update", "first 2", "update", "first 1", "leave out"));
}

TEST_F(ApartServerTest, GeoPush_IsAddedToTheValues) {
  start_in(ServerMode::kGeo);
  push(2, 0);
  push(2, 0);
  push(0, 0);
  EXPECT_THAT(store_.calls, ElementsAre("add to values 3", "add to values 1"));
}

TEST_F(ApartServerTest, LostPush_EndsTheJob) {
  start_in(ServerMode::kAsync);
  push_again(0, 0, /*sequence=*/2);
  ASSERT_TRUE(server_->error());
}

// A log of random arrivals: a trainer that is `kStaleness` ahead gets no values to go on with.
TEST_F(ApartServerTest, PullOfAVersion_WaitsForTheSlowest) {
  constexpr int64_t kStaleness = 2;
  start_in(ServerMode::kAsync);
  std::mt19937 random(3);
  std::vector<int64_t> steps(kTrainers);
  std::vector<bool> waits(kTrainers);
  int64_t most = 0;
  for (int event = 0; event < 300; ++event) {
    const int t = static_cast<int>(random() % 4) % kTrainers;  // trainer 0 is faster
    if (waits[t]) continue;
    most = std::max(most, steps[t] - std::ranges::min(steps));
    const auto answered = [&](const Actions& actions) {
      for (const ServerAction& action : actions) {
        if (action.message->header.type != MessageType::kValues) continue;
        waits[action.connection - 1] = false;
      }
    };
    answered(push(t, steps[t]));
    steps[t] += 1;
    waits[t] = true;
    answered(pull(t, steps[t] - kStaleness));
    for (int other = 0; other < kTrainers; ++other) {
      EXPECT_EQ(waits[other], steps[other] - kStaleness > std::ranges::min(steps)) << event;
    }
  }
  EXPECT_EQ(most, kStaleness);
  EXPECT_EQ(server_->version(), std::ranges::min(steps));
}

TEST_F(ApartServerTest, TrainerThatHasEnded_IsNotWaitedFor) {
  start_in(ServerMode::kAsync);
  for (const int t : {0, 1}) push(t, 0);
  EXPECT_THAT(texts(pull(0, 1)), IsEmpty());
  EXPECT_THAT(texts(goodbye(2)), ElementsAre("1 values"));
  push(1, 1);
  EXPECT_FALSE(server_->error());
}

// A trainer receives the values of one version, whatever others push while they are being sent.
TEST_F(ApartServerTest, Values_StayUnchangedWhileTheyAreSent) {
  for (const ServerMode mode : {ServerMode::kAsync, ServerMode::kGeo}) {
    start_in(mode);
    store_.memory = {1, 2};
    const Actions answers = pull(0, 0);
    ASSERT_THAT(texts(answers), ElementsAre("1 values"));
    push(1, 0);
    EXPECT_NE(store_.memory[0], 1);
    EXPECT_THAT(sent_values(answers[0]), ElementsAre(1, 2));
  }
}

TEST_F(ApartServerTest, TrainersOfOneAnswer_ShareACopy) {
  start_in(ServerMode::kAsync);
  for (const int t : {0, 1}) push(t, 0);
  for (const int t : {0, 1}) pull(t, 1);
  const Actions answers = push(2, 0);
  ASSERT_THAT(texts(answers), ElementsAre("3 accepted", "1 values", "2 values"));
  EXPECT_EQ(answers[1].message->parts.at(1).data.data(),
            answers[2].message->parts.at(1).data.data());
}

// Nothing changes them: no other trainer pushes, or this one has to push first.
TEST_F(ApartServerTest, ValuesThatNothingChanges_AreNotCopied) {
  const auto memory_sent = [&](const Actions& answers) -> const void* {
    EXPECT_THAT(texts(answers), ElementsAre("1 values"));
    return answers.at(0).message->parts.at(1).data.data();
  };
  start_in(ServerMode::kAsync);
  EXPECT_NE(memory_sent(pull(0, 0)), store_.memory.data());
  for (const int t : {1, 2}) goodbye(t);
  EXPECT_EQ(memory_sent(pull(0, 0)), store_.memory.data());
  start_in(ServerMode::kSync);
  EXPECT_EQ(memory_sent(pull(0, 0)), store_.memory.data());
}

// A checkpoint is of one state, whatever others push while it is being sent.
TEST_F(ApartServerTest, States_StayUnchangedWhileTheyAreSent) {
  start_in(ServerMode::kAsync);
  const Actions answers =
      receive(0, {.type = MessageType::kPullStates},
              {bytes_of_head(StatesHead{.sections = kValueSection | kStateSection})});
  ASSERT_THAT(texts(answers), ElementsAre("1 states"));
  push(1, 0);
  EXPECT_THAT(sent_values(answers[0]), ElementsAre(1, 2));
  EXPECT_EQ(store_.memory[0], 2);
}

// A signal may stop trainers after different steps.
TEST_F(ApartServerTest, TrainerInAMeeting_IsNotWaitedForUntilItsEnd) {
  start_in(ServerMode::kAsync);
  const auto meet = [&](int trainer) {
    return receive(trainer, {.type = MessageType::kMeeting}, {});
  };
  for (const int t : {0, 1, 2}) push(t, 0);
  for (const int t : {1, 2}) push(t, 1);
  EXPECT_THAT(texts(pull(1, 2)), IsEmpty());
  EXPECT_THAT(texts(meet(0)), ElementsAre("1 accepted", "2 values"));
  for (const int t : {1, 2}) meet(t);
  EXPECT_EQ(server_->version(), 2);
  push(1, 2);
  EXPECT_THAT(texts(pull(1, 3)), IsEmpty());
  push(0, 1);
  push(2, 2);
  EXPECT_EQ(server_->version(), 2);
  EXPECT_THAT(texts(push(0, 2)), ElementsAre("1 accepted", "2 values"));
}

// A process that has taken a trainer's place repeats its meeting, while another trainer waits in
// the next one.
TEST_F(ApartServerTest, RepeatedMeeting_DoesNotEndTheNextOne) {
  start_in(ServerMode::kAsync);
  const auto meet = [&](int trainer, uint64_t ordinal) {
    return receive(trainer, {.type = MessageType::kMeeting, .sequence = ordinal}, {});
  };
  for (const int t : {0, 1, 2}) push(t, 0);
  meet(1, 8);
  for (const int t : {0, 2}) meet(t, 7);
  push(0, 1);
  push(2, 1);
  push(2, 2);
  EXPECT_THAT(texts(pull(0, 2)), ElementsAre("1 values"));  // does not wait for trainer 1
  EXPECT_EQ(server_->version(), 2);
}

TEST_F(ApartServerTest, TrainerThatIsBehind_IsNamedAfterTheTimeout) {
  start_in(ServerMode::kAsync);
  for (const int t : {0, 2}) push(t, 0);
  pull(0, 1);
  pass(11);
  ASSERT_TRUE(server_->error());
  EXPECT_THAT(*server_->error(), IsError(ErrorCode::kTimeout, "trainer 1 at host1"));
}

// A process that takes the place of a trainer. Connection t + 11 is the next one's of trainer t.
class LostTrainerTest : public ApartServerTest {
 protected:
  LostTrainerTest() { start_in(ServerMode::kAsync); }
  Actions hello_again(int trainer, uint32_t incarnation = 1) {
    HelloHead head = hello_of(trainer);
    head.mode = static_cast<uint32_t>(ServerMode::kAsync);
    head.incarnation = incarnation;
    return receive_from(trainer + 11, {.type = MessageType::kHello}, {bytes_of_head(head)});
  }
  Actions push_from(int connection, int64_t step, uint64_t sequence) {
    const float value = 9;
    return receive_from(
        connection, {.type = MessageType::kPush, .sequence = sequence, .version = step},
        {bytes_of_head(PushHead{.learning_rate = 1}), owned_bytes(&value, sizeof value)});
  }
  Actions receive_from(int connection, MessageHeader header, const std::vector<Bytes>& parts) {
    std::vector<std::byte> payload;
    for (const Bytes& part : parts) {
      payload.insert(payload.end(), part.data.begin(), part.data.end());
    }
    return server_->step(
        Received{connection, "again", {header, {owned_bytes(payload.data(), payload.size())}}},
        now_);
  }
};

TEST_F(LostTrainerTest, Replacement_GoesOnFromTheLastPush) {
  push(1, 0);
  push(1, 1);
  EXPECT_THAT(texts(closed(1)), IsEmpty());
  EXPECT_FALSE(server_->error());
  const Actions actions = hello_again(1);
  ASSERT_THAT(texts(actions), ElementsAre("12 hello"));
  EXPECT_EQ(actions[0].message->header.version, 2);
  EXPECT_THAT(texts(push_from(12, 2, 1)), ElementsAre("12 accepted"));  // its own sequence
  EXPECT_EQ(store_.calls.size(), 6u);
}

TEST_F(LostTrainerTest, ReplacementBeforeTheLossIsKnown_EndsTheOldConnection) {
  push(1, 0);
  const Actions actions = hello_again(1);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(actions[0].connection, 2);
  EXPECT_TRUE(actions[0].close);
  store_.calls.clear();
  EXPECT_THAT(texts(push(1, 1)), IsEmpty());  // in flight
  EXPECT_THAT(texts(closed(1)), IsEmpty());
  EXPECT_THAT(store_.calls, IsEmpty());
  EXPECT_THAT(texts(push_from(12, 1, 1)), ElementsAre("12 accepted"));
}

TEST_F(LostTrainerTest, OlderProcess_IsRefusedAlone) {
  closed(1);
  hello_again(1, 2);
  EXPECT_THAT(texts(hello_again(1, 1)), ElementsAre("12 failure and close"));
  EXPECT_FALSE(server_->error());
}

TEST_F(LostTrainerTest, WithoutReplacement_EndsTheJobNamingItAfterTheTimeout) {
  closed(1);
  EXPECT_EQ(server_->next_deadline(), now_ + 10);
  pass(9);
  EXPECT_FALSE(server_->error());
  pass(1);
  ASSERT_TRUE(server_->error());
  EXPECT_THAT(*server_->error(), IsError(ErrorCode::kPeerLost, "trainer 1 at host1"));
}

// The bound on staleness holds until its place is taken.
TEST_F(LostTrainerTest, PullsThatWaitForIt_AreAnsweredOnceItsReplacementPushes) {
  for (const int t : {0, 2}) push(t, 0);
  closed(1);
  EXPECT_THAT(texts(pull(0, 1)), IsEmpty());
  hello_again(1);
  EXPECT_THAT(texts(push_from(12, 0, 1)), ElementsAre("12 accepted", "1 values"));
}

TEST_F(LostTrainerTest, JobThatStops_EndsWithoutIt) {
  for (const int t : {0, 2}) push(t, 0);
  closed(1);
  pull(0, 1);
  std::vector<int> abandoned;
  EXPECT_THAT(texts(server_->abandon_lost(&abandoned)), ElementsAre("1 values"));
  EXPECT_THAT(abandoned, ElementsAre(1));
  EXPECT_THAT(texts(hello_again(1)), ElementsAre("12 failure and close"));
  for (const int t : {0, 2}) goodbye(t);
  EXPECT_TRUE(server_->done());
  EXPECT_FALSE(server_->error());
}

TEST_F(LostTrainerTest, BeforeTheStart_EndsTheJob) {
  HelloHead own = hello_of(0);
  own.mode = static_cast<uint32_t>(ServerMode::kAsync);
  server_.emplace(DenseServerOptions{.own = own, .timeout = 10}, store_, now_);
  hello(1, [&] {
    HelloHead head = own;
    head.trainer = 1;
    return head;
  }());
  closed(1);
  ASSERT_TRUE(server_->error());
  EXPECT_THAT(*server_->error(), IsError(ErrorCode::kPeerLost, "trainer 1 at host1"));
}

}  // namespace
}  // namespace fleet::ps
