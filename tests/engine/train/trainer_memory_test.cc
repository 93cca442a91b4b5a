#include "train/trainer_memory.h"

#include <gmock/gmock.h>

#include "tests/errors.h"

namespace fleet {
namespace {

TrainingPosition at(int64_t step, int64_t epoch, int64_t batch) {
  TrainingPosition position;
  position.step = step;
  position.epoch = epoch;
  position.batch = batch;
  return position;
}

std::vector<int64_t> moved(TrainingPosition position, int64_t step, int64_t batches) {
  move_to(step, batches, &position);
  return {position.step, position.epoch, position.batch};
}

using testing::ElementsAre;

// The servers have the updates up to step 6; the meeting was within the next one.
TEST(MoveTo, EarlierStep_IsTrainedAgain) {
  EXPECT_THAT(moved(at(7, 1, 2), 6, 5), ElementsAre(6, 1, 1));
  EXPECT_THAT(moved(at(7, 1, 2), 4, 5), ElementsAre(4, 0, 4));
  EXPECT_THAT(moved(at(10, 2, 0), 9, 5), ElementsAre(9, 1, 4));
  EXPECT_ANY_THROW(moved(at(1, 0, 1), -1, 5));
}

TEST(MoveTo, StepsOverEpochs_EndAtTheEndOfOne) {
  EXPECT_THAT(moved(at(10, 2, 1), 10, 5), ElementsAre(10, 2, 1));
  EXPECT_THAT(moved(at(10, 2, 1), 13, 5), ElementsAre(13, 2, 4));
  EXPECT_THAT(moved(at(10, 2, 1), 14, 5), ElementsAre(14, 2, 5));
  EXPECT_THAT(moved(at(10, 2, 1), 15, 5), ElementsAre(15, 3, 1));
  EXPECT_THAT(moved(at(0, 0, 0), 12, 5), ElementsAre(12, 2, 2));
  EXPECT_THAT(moved(at(5, 0, 5), 5, 5), ElementsAre(5, 0, 5));
}

TEST(TrainerMemories, Saved_IsWhatTheNextProcessLoads) {
  const auto store = make_memory_store();
  StoreExchange exchange(store, 0, 1, std::chrono::seconds(60));
  TrainerMemories own(*store, exchange, 0);
  exchange.all("x");
  TrainingPosition position = at(7, 1, 2);
  position.model = "mlp";
  position.schedule = {0.1, 3};
  own.save({.position = position, .evaluated = 6, .shares = 4});
  StoreExchange again(store, 0, 1, std::chrono::seconds(60));
  const TrainerMemory memory = TrainerMemories(*store, again, 0).load();
  EXPECT_EQ(memory.position.step, 7);
  EXPECT_EQ(memory.position.batch, 2);
  EXPECT_EQ(memory.position.schedule, position.schedule);
  EXPECT_EQ(memory.evaluated, 6);
  EXPECT_EQ(memory.shares, 4u);
  EXPECT_EQ(again.next(), 1);
}

TEST(TrainerMemories, LostBeforeTheStart_CannotBeReplaced) {
  const auto store = make_memory_store();
  StoreExchange exchange(store, 1, 2, std::chrono::seconds(60));
  EXPECT_THAT([&] { TrainerMemories(*store, exchange, 1).load(); },
              testing::Throws<Error>(IsError(ErrorCode::kStale, "rank 1")));
}

}  // namespace
}  // namespace fleet
