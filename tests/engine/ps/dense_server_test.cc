#include "ps/dense_server.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <map>
#include <random>

#include "tests/errors.h"

namespace fleet::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kTrainers = 3;

// One float: values and gradients are lists of texts.
class RecordingStore : public BlockStore {
 public:
  void load(uint32_t, std::span<const std::byte> data) override {
    FLEET_CHECK(data.size() == sizeof(float), "another size");
    calls.push_back("load");
  }
  std::vector<Bytes> read(uint32_t) const override {
    return {{.data = std::as_bytes(std::span(memory)), .owner = memory_owner}};
  }
  void add(std::span<const std::byte> gradients, bool first) override {
    float value = 0;
    std::memcpy(&value, gradients.data(), sizeof value);
    calls.push_back((first ? "first " : "add ") + std::to_string(static_cast<int>(value)));
  }
  bool has_low_types() const override { return false; }
  void add_low_types(const std::vector<std::span<const std::byte>>&) override {}
  bool shares_norms() const override { return shares; }
  Bytes norms() override { return owned_bytes("12345678", 8); }
  void set_norms(std::span<const std::byte> parts) override {
    calls.push_back("norms " + std::to_string(parts.size()));
  }
  void add_to_values(std::span<const std::byte> differences) override {
    float value = 0;
    std::memcpy(&value, differences.data(), sizeof value);
    calls.push_back("add to values " + std::to_string(static_cast<int>(value)));
    memory[0] += value;
  }
  void update(float, bool left_out) override {
    calls.push_back(left_out ? "leave out" : "update");
    memory[0] += 1;
  }

  std::vector<std::string> calls;
  std::array<float, 2> memory = {1, 2};
  std::shared_ptr<int> memory_owner = std::make_shared<int>();
  bool shares = false;
};

class DenseServerTest : public ::testing::Test {
 protected:
  using Actions = std::vector<ServerAction>;

  static HelloHead hello_of(int trainer) {
    return {.trainer = trainer,
            .trainers = kTrainers,
            .server = 1,
            .servers = 2,
            .parameters = 11,
            .rule = 12,
            .placement = 13};
  }

  // Connection t + 1 is trainer t's.
  Actions receive(int trainer, MessageHeader header, std::vector<Bytes> parts) {
    std::vector<std::byte> payload;
    for (const Bytes& part : parts) {
      payload.insert(payload.end(), part.data.begin(), part.data.end());
    }
    const Bytes one = owned_bytes(payload.data(), payload.size());
    return server_->step(
        Received{trainer + 1, "host" + std::to_string(trainer), {.header = header, .parts = {one}}},
        now_);
  }
  Actions hello(int trainer) { return hello(trainer, hello_of(trainer)); }
  Actions hello(int trainer, const HelloHead& head) {
    return receive(trainer, {.type = MessageType::kHello}, {bytes_of_head(head)});
  }
  Actions initial(int64_t version = 0) {
    const float value = 0;
    return receive(
        0, {.type = MessageType::kInitial, .sequence = 1, .version = version},
        {bytes_of_head(InitialHead{.sections = kAllSections}), owned_bytes(&value, sizeof value)});
  }
  // The gradient is trainer + 1.
  Actions push(int trainer, int64_t step, PushHead head = {.learning_rate = 1}) {
    return push_again(trainer, step, static_cast<uint64_t>(step + 1), head);
  }
  Actions push_again(int trainer, int64_t step, uint64_t sequence,
                     PushHead head = {.learning_rate = 1}) {
    const auto value = static_cast<float>(trainer + 1);
    return receive(trainer, {.type = MessageType::kPush, .sequence = sequence, .version = step},
                   {bytes_of_head(head), owned_bytes(&value, sizeof value)});
  }
  Actions pull(int trainer, int64_t version) {
    return receive(trainer, {.type = MessageType::kPull, .version = version}, {});
  }
  Actions goodbye(int trainer) { return receive(trainer, {.type = MessageType::kGoodbye}, {}); }
  Actions closed(int trainer) { return server_->step(Closed{trainer + 1, "reset"}, now_); }
  Actions pass(double seconds) {
    now_ += seconds;
    return server_->step(TimePassed(), now_);
  }
  void start() {
    for (int t = 0; t < kTrainers; ++t) hello(t);
    initial();
    store_.calls.clear();
  }

  // "1 values", "2 failure and close", by connection.
  static std::vector<std::string> texts(const Actions& actions) {
    static const std::map<MessageType, std::string> kNames = {
        {MessageType::kHello, "hello"},       {MessageType::kValues, "values"},
        {MessageType::kStates, "states"},     {MessageType::kNorms, "norms"},
        {MessageType::kAccepted, "accepted"}, {MessageType::kFailure, "failure"}};
    std::vector<std::string> all;
    for (const ServerAction& action : actions) {
      all.push_back(std::to_string(action.connection) + " " +
                    kNames.at(action.message->header.type) + (action.close ? " and close" : ""));
    }
    return all;
  }
  // Behind the head.
  static std::vector<float> sent_values(const ServerAction& action) {
    std::vector<float> all;
    for (size_t i = 1; i < action.message->parts.size(); ++i) {
      const std::span<const std::byte> data = action.message->parts[i].data;
      const auto* first = reinterpret_cast<const float*>(data.data());
      all.insert(all.end(), first, first + data.size() / sizeof(float));
    }
    return all;
  }
  // The error that trainer 0 receives.
  static Error sent_error(const Actions& actions) {
    for (const ServerAction& action : actions) {
      if (action.message->header.type != MessageType::kFailure) continue;
      const Bytes payload = action.message->parts[0];
      return error_of({.header = action.message->header, .parts = {payload}});
    }
    ADD_FAILURE() << "no failure was sent";
    return {ErrorCode::kInternal, ""};
  }

  RecordingStore store_;
  double now_ = 100;
  std::optional<DenseServer> server_{
      std::in_place, DenseServerOptions{.own = hello_of(0), .timeout = 10}, store_, now_};
};

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

// --- Trainers that do not wait for each other -------------------------------------------------

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
