// The state of a trainer in the job's Store, from which another process can take its place if it is
// lost (parameter servers in async and geo).
#pragma once

#include <cstdint>
#include <string>

#include "comm/store_exchange.h"
#include "store/store.h"
#include "train/checkpoint.h"

namespace fleet {

// The state at the last meeting of all trainers.
struct TrainerMemory {
  TrainingPosition position;  // without the model card
  int64_t evaluated = -1;     // the step of the last evaluation; -1: none
  int64_t exchanges = 0;      // StoreExchange::next()
  uint64_t shares = 0;        // ParameterExchange::shares()
};

// For the training thread.
class TrainerMemories {
 public:
  // All must outlive it.
  TrainerMemories(Store& store, StoreExchange& exchange, int rank);
  // After the start, and after each meeting: no trainer makes earlier meetings again, so their
  // values are dropped.
  void save(TrainerMemory memory);
  // In the place of a lost trainer: what it has saved. Its later exchanges are made again. kStale
  // if it was lost before it had begun.
  TrainerMemory load();

 private:
  std::string key() const;

  Store& store_;
  StoreExchange& exchange_;
  const int rank_;
  int64_t last_ = 0;  // exchanges at the last save
};

// Moves a position to this step, which may be an earlier one: that of the last update, if the
// memory is of a step within one (gradient_merge). batches: those in an epoch. The end of an epoch
// is not yet the start of the next one.
void move_to(int64_t step, int64_t batches, TrainingPosition* position);

}  // namespace fleet
