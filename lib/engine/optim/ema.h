// The average of the weights over the updates (exponential moving average, EMA). Evaluation reads
// it instead of the weights.
//
// Update n, counted from 1, of each parameter and running statistic x:
//   average = decay_n * average + (1 - decay_n) * x,   decay_1 = 0
//   decay_n = decay, or with a warm-up min(decay, 1 - (1 + (n - 1) / gamma) ^ -power)
// as ModelEmaV3 of timm 1.0 (update_after_step 0), and in the arithmetic of torch.lerp. An update
// that is left out (found_inf) does not count.
#pragma once

#include "graph/program.h"

namespace fleet {

// The section of the updates; states "ema.<name>", and the number of updates so far: int64 [1].
inline constexpr char kEmaSection[] = "ema";
inline constexpr char kEmaPrefix[] = "ema.";
inline constexpr char kEmaUpdates[] = "optimizer.ema_updates";

// The rate of the average, float32 [1], in Programs of an optimizer that decides it: a temporary of
// section "optimize".
inline constexpr char kAverageRate[] = "optimizer.average_rate";

struct EmaOptions {
  double decay = 0.9999;
  bool warmup = false;
  double gamma = 1, power = 2.0 / 3;
  // 1 - decay_n, instead of the formula (kAverageRate). Statistics are then not averaged: they are
  // copied.
  VarId rate = kNoVar;
};

// Call after append_updates(). Gives an average to each parameter and state that section `evaluate`
// reads, to all other parameters, and to the statistics that section `forward` writes; makes
// `evaluate` read the averages; updates them when section `optimize` runs. found_inf: int32 [1],
// not 0 if an update is left out; kNoVar: none ever is. Until the first update the averages equal
// the weights: section "start_ema" copies them after the host has written any weights.
void append_ema(Program& program, SectionId forward, SectionId evaluate, SectionId optimize,
                VarId found_inf, const EmaOptions& options);

}  // namespace fleet
