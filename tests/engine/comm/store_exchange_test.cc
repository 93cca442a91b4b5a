#include "comm/store_exchange.h"

#include <gmock/gmock.h>

#include <atomic>

#include "base/thread.h"
#include "tensor/host.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

constexpr std::chrono::seconds kLongest{60};  // against hanging

struct Exchanges {
  std::shared_ptr<Store> store = make_memory_store();
  std::shared_ptr<StoreExchange> of(int rank, std::chrono::milliseconds timeout = kLongest) const {
    return std::make_shared<StoreExchange>(store, rank, 2, timeout);
  }
};

TEST(StoreExchange, Values_ComeByRank) {
  const Exchanges exchanges;
  const auto one = exchanges.of(0), other = exchanges.of(1);
  std::vector<std::string> seen;
  Thread thread("other", [&] { seen = other->all("b"); });
  EXPECT_THAT(one->all("a"), ElementsAre("a", "b"));
  thread.join();
  EXPECT_THAT(seen, ElementsAre("a", "b"));
  EXPECT_EQ(one->next(), 1);
}

// The lost rank had given its value to the others.
TEST(StoreExchange, ExchangeMadeAgain_HasTheValueThatOthersHaveSeen) {
  const Exchanges exchanges;
  const auto one = exchanges.of(0);
  exchanges.store->set("apart/0/1", "first");
  EXPECT_THAT(one->all("a"), ElementsAre("a", "first"));
  const auto again = exchanges.of(1);
  again->resume(0);
  EXPECT_THAT(again->all("second"), ElementsAre("a", "first"));
  Thread thread("one", [&] { one->all("c"); });
  EXPECT_THAT(again->all("d"), ElementsAre("c", "d"));  // a new one
  thread.join();
}

TEST(StoreExchange, RankThatIsGone_EndsTheWaitNamingIt) {
  const Exchanges exchanges;
  mark_as_gone(*exchanges.store, 1);
  EXPECT_THAT([&] { exchanges.of(0)->all("a"); },
              testing::Throws<Error>(IsError(ErrorCode::kPeerLost, "rank 1")));
}

TEST(StoreExchange, RankThatIsGone_MayBeMarkedAgain) {
  const Exchanges exchanges;
  mark_as_gone(*exchanges.store, 1);
  mark_as_gone(*exchanges.store, 1);
  EXPECT_THAT([&] { exchanges.of(0)->all("a"); },
              testing::Throws<Error>(IsError(ErrorCode::kPeerLost, "rank 1")));
}

// The other rank comes only after some calls.
TEST(StoreExchange, LongWait_CallsWhatItWasGiven) {
  const Exchanges exchanges;
  const auto one = exchanges.of(0), other = exchanges.of(1);
  std::atomic<int> calls = 0;
  Thread thread("other", [&] {
    while (calls < 3) std::this_thread::yield();
    other->all("b");
  });
  {
    const WhileWaiting waiting(*one, [&] { ++calls; });
    EXPECT_THAT(one->all("a"), ElementsAre("a", "b"));
  }
  thread.join();
}

TEST(StoreExchange, RankThatDoesNotCome_IsNamedAfterTheTimeout) {
  const Exchanges exchanges;
  EXPECT_THAT([&] { exchanges.of(0, 20ms)->all("a"); },
              testing::Throws<Error>(IsError(ErrorCode::kTimeout, "rank 1")));
}

TEST(StoreExchange, Forget_DropsOwnValuesOnly) {
  const Exchanges exchanges;
  const auto one = exchanges.of(0);
  exchanges.store->set("apart/0/1", "b");
  one->all("a");
  one->forget(1);
  EXPECT_EQ(exchanges.store->get("apart/0/0", 1s), "");
  EXPECT_EQ(exchanges.store->get("apart/0/1", 1s), "b");
}

TEST(StoreExchange, Communicator_SumsInTheOrderOfRanks) {
  const Exchanges exchanges;
  std::vector<double> sums(2);
  const auto run = [&](int rank) {
    const auto communicator = make_store_communicator(exchanges.of(rank));
    const std::vector<int> all = {0, 1};
    const auto part = communicator->split(all);
    HostStream stream("test");
    double& value = sums[static_cast<size_t>(rank)];
    value = rank == 0 ? 1.5 : 2;
    const View view{&value, 1, DType::kFloat64};
    part->all_reduce(view, view, ReduceOp::kSum, stream);
    part->barrier(stream);
    stream.synchronize();
  };
  Thread thread("other", [&] { run(1); });
  run(0);
  thread.join();
  EXPECT_THAT(sums, ElementsAre(3.5, 3.5));
}

}  // namespace
}  // namespace fleet
