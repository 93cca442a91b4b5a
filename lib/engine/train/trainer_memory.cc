#include "train/trainer_memory.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/json.h"

namespace fleet {

TrainerMemories::TrainerMemories(Store& store, StoreExchange& exchange, int rank)
    : store_(store), exchange_(exchange), rank_(rank) {}

std::string TrainerMemories::key() const { return "apart/memory/" + std::to_string(rank_); }

void TrainerMemories::save(TrainerMemory memory) {
  memory.exchanges = exchange_.next();
  const Json all = {{"position", position_text(memory.position)},
                    {"evaluated", memory.evaluated},
                    {"exchanges", memory.exchanges},
                    {"shares", memory.shares}};
  store_.set(key(), all.dump());
  // All trainers have come to this meeting, and had saved the previous one.
  exchange_.forget(std::exchange(last_, memory.exchanges));
}

TrainerMemory TrainerMemories::load() {
  constexpr std::chrono::milliseconds kAtOnce(100);
  const std::string name = "rank " + std::to_string(rank_);
  try {
    const Json all = Json::parse(store_.get(key(), kAtOnce));
    TrainerMemory memory{
        .position = position_from_text(all.at("position").get<std::string>(), name),
        .evaluated = all.at("evaluated").get<int64_t>(),
        .exchanges = all.at("exchanges").get<int64_t>(),
        .shares = all.at("shares").get<uint64_t>()};
    exchange_.resume(memory.exchanges);
    last_ = memory.exchanges;
    return memory;
  } catch (const JsonError& error) {
    throw Error(ErrorCode::kInternal, error.what(), "the memory of " + name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    throw Error(ErrorCode::kStale, "was lost before it had begun, so no process can replace it",
                name, "start the job again");
  }
}

void move_to(int64_t step, int64_t batches, TrainingPosition* position) {
  int64_t left = step - position->step;
  position->step = step;
  for (; left < 0; ++left) {
    if (position->batch == 0) {
      position->epoch -= 1;
      position->batch = batches;
    }
    position->batch -= 1;
    FLEET_CHECK(position->batch >= 0 && position->epoch >= 0, "a position before the first one");
  }
  while (left > 0) {
    if (position->batch >= batches) {
      position->epoch += 1;
      position->batch = 0;
    }
    const int64_t part = std::min(left, batches - position->batch);
    FLEET_CHECK(part > 0, "an epoch without batches");
    position->batch += part;
    left -= part;
  }
}

}  // namespace fleet
