// The speed of a training on tokens.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "observe/event_file.h"
#include "observe/meter.h"
#include "train/step_runner.h"

namespace fleet {

struct TokenSpeed {
  double tokens_per_second = 0;  // sum over all ranks
  // Model FLOPs utilization of this rank: three times the operations of its forward pass in the
  // time of a step, by the peak of the card's data sheet for the job's type. Recomputed operations
  // do not count. nullopt for a device whose peak is not known.
  std::optional<double> mfu;
  double seconds_left = 0;  // until the last step, without evaluations and checkpoints

  std::string text() const;  // "tokens/s: 468000, MFU: 38.1 %, left: 45:12"
  void add_to(EventLine* line) const;
};

class TokenSpeedMeter {
 public:
  // The runner's Plan and device decide the MFU.
  TokenSpeedMeter(StepRunner& runner, const Device& device);
  // After the runner's step: the tokens of this rank in it.
  void step_done(double tokens) {
    tokens_.add(tokens);
    operations_.add(operations_of_plan());
  }
  double total() const { return tokens_.total(); }
  // Collective. meter: has the times of the same steps; steps_left: until training ends.
  TokenSpeed measure(const StepMeter& meter, int64_t steps_left);

 private:
  StepRunner& runner_;
  MovingAverage tokens_;
  double operations_of_plan();
  // In a step: forward pass, and twice as many for the backward pass.
  std::map<int, double> by_plan_;
  MovingAverage operations_;
  std::optional<double> peak_;  // operations a second
};

}  // namespace fleet
