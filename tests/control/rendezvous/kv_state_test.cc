#include "rendezvous/kv_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Kv : public testing::Test {
 protected:
  Kv() { state.open(1); }
  // Waits for a key; the answer lands in answers[name].
  KvState::Ticket wait(const std::string& name, const std::string& key,
                       std::chrono::milliseconds timeout, int generation = 1) {
    const auto ticket = state.get(generation, key, now, now + timeout,
                                  [this, name](KvState::Answer a) { answers.emplace(name, a); });
    run();
    return ticket;
  }
  void run() {
    for (const auto& done : state.take_ready()) done();
  }
  ErrorCode code(const std::string& name) { return answers.at(name).error.value().code(); }

  KvState::Time now{};
  KvState state;
  std::map<std::string, KvState::Answer> answers;
};

TEST_F(Kv, GetAfterSet_AnswersAtOnce) {
  const std::string id(128, '\0');
  EXPECT_FALSE(state.set(1, "id", id));
  wait("r", "id", 0ms);
  EXPECT_EQ(answers.at("r").value, id);
}

TEST_F(Kv, GetBeforeSet_AllWaitersAnswered) {
  wait("a", "k", 1s);
  wait("b", "k", 1s);
  wait("other", "x", 1s);
  EXPECT_TRUE(answers.empty());
  EXPECT_FALSE(state.set(1, "k", "v"));
  run();
  EXPECT_EQ(answers.at("a").value, "v");
  EXPECT_EQ(answers.at("b").value, "v");
  EXPECT_EQ(state.waiters(), 1u);
}

TEST_F(Kv, DeadlinePasses_TimesOutNamingKey) {
  wait("a", "k", 10ms);
  EXPECT_EQ(state.next_deadline(), now + 10ms);
  now += 9ms;
  state.advance(now);
  run();
  EXPECT_TRUE(answers.empty());
  now += 1ms;
  state.advance(now);
  run();
  EXPECT_EQ(code("a"), ErrorCode::kTimeout);
  EXPECT_EQ(answers.at("a").error->where(), "k");
  EXPECT_THAT(answers.at("a").error->what(), HasSubstr("0.01 s"));
  EXPECT_FALSE(state.next_deadline());
}

TEST_F(Kv, NoTimeToWait_TimesOutAtOnce) {
  wait("a", "k", 0ms);
  EXPECT_EQ(code("a"), ErrorCode::kTimeout);
}

TEST_F(Kv, Cancelled_NeverAnswered) {
  const auto ticket = wait("a", "k", 1s);
  wait("b", "k", 1s);
  EXPECT_TRUE(state.cancel(ticket));
  EXPECT_FALSE(state.cancel(ticket));
  EXPECT_FALSE(state.set(1, "k", "v"));
  run();
  EXPECT_FALSE(answers.contains("a"));
  EXPECT_TRUE(answers.contains("b"));
}

TEST_F(Kv, Add_CountsAndWakesWaiters) {
  wait("a", "n", 1s);
  EXPECT_EQ(state.add(1, "n", 2).value, "2");
  run();
  EXPECT_EQ(answers.at("a").value, "2");
  EXPECT_EQ(state.add(1, "n", -5).value, "-3");
}

TEST_F(Kv, AddToWhatIsNoCounter_Refused) {
  EXPECT_FALSE(state.set(1, "k", "text"));
  EXPECT_EQ(state.add(1, "k", 1).error->code(), ErrorCode::kUsage);
  EXPECT_FALSE(state.set(1, "max", "9223372036854775807"));
  EXPECT_THAT(state.add(1, "max", 1).error->what(), HasSubstr("overflows"));
}

TEST_F(Kv, WrongGeneration_Stale) {
  EXPECT_FALSE(state.set(1, "k", "old"));
  wait("waiting", "never", 1s);
  state.open(2);
  run();
  EXPECT_EQ(code("waiting"), ErrorCode::kStale);
  EXPECT_EQ(state.set(1, "k", "v")->code(), ErrorCode::kStale);
  EXPECT_EQ(state.add(1, "k", 1).error->code(), ErrorCode::kStale);
  wait("old", "k", 1s, 1);
  EXPECT_EQ(code("old"), ErrorCode::kStale);
  wait("new", "k", 0ms, 2);  // another generation's value is never seen
  EXPECT_EQ(code("new"), ErrorCode::kTimeout);
}

TEST_F(Kv, BeforeTheJobRuns_Stale) {
  KvState fresh;
  EXPECT_EQ(fresh.set(1, "k", "v")->code(), ErrorCode::kStale);
}

TEST_F(Kv, Closed_EveryoneHearsWhy) {
  wait("a", "k", 1s);
  state.close(Error(ErrorCode::kPeerLost, "rank 3 failed"));
  state.close(Error(ErrorCode::kPeerLost, "second reason"));
  run();
  EXPECT_EQ(answers.at("a").error->failure(), "rank 3 failed");
  EXPECT_EQ(state.set(1, "k", "v")->failure(), "rank 3 failed");
  EXPECT_EQ(state.add(1, "k", 1).error->code(), ErrorCode::kPeerLost);
}

// All ranks of a large job wait for one key: the end reaches them at once, not after minutes.
TEST_F(Kv, ManyWaitersForOneKey_AreAnsweredWithoutLookingAtEachOther) {
  constexpr int kMany = 100'000;
  int answered = 0;
  for (int i = 0; i < kMany; ++i) {
    state.get(1, "k", {}, KvState::Time() + 1s, [&](KvState::Answer) { ++answered; });
  }
  state.close(Error(ErrorCode::kPeerLost, "over"));
  for (const auto& done : state.take_ready()) done();
  EXPECT_EQ(answered, kMany);
  EXPECT_EQ(state.waiters(), 0u);
}

TEST(KvLimits, Passed_Refused) {
  KvState state({.key = 4, .value = 8, .total = 20, .keys = 2, .waiters = 1});
  state.open(1);
  EXPECT_EQ(state.set(1, "12345", "")->code(), ErrorCode::kUsage);
  EXPECT_EQ(state.set(1, "k", "123456789")->code(), ErrorCode::kUsage);
  EXPECT_FALSE(state.set(1, "k", "12345678"));
  EXPECT_FALSE(state.set(1, "k", "12345678"));  // replaced, not added up
  EXPECT_FALSE(state.set(1, "l", ""));
  EXPECT_THAT(state.set(1, "m", "")->what(), HasSubstr("2 keys"));
  EXPECT_THAT(state.set(1, "k", "12345678") ? "refused" : "fits", HasSubstr("fits"));
  EXPECT_FALSE(state.set(1, "l", "12345678"));
  KvState tight({.total = 10});
  tight.open(1);
  EXPECT_FALSE(tight.set(1, "k", "12345678"));
  EXPECT_THAT(tight.set(1, "l", "1")->what(), HasSubstr("full"));
  int answered = 0;
  const auto count = [&](KvState::Answer) { ++answered; };
  state.get(1, "w", {}, KvState::Time() + 1s, count);
  state.get(1, "w", {}, KvState::Time() + 1s, count);
  for (const auto& done : state.take_ready()) done();
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(state.waiters(), 1u);
}

}  // namespace
}  // namespace fleet
