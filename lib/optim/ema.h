// The average of the weights over the updates (exponential moving average, EMA): what evaluation
// reads in their place.
//
// Update n, counted from 1, of each parameter and running statistic x:
//   average = decay_n * average + (1 - decay_n) * x,   decay_1 = 0
//   decay_n = decay, or with a warm-up min(decay, 1 - (1 + (n - 1) / gamma) ^ -power)
// as ModelEmaV3 of timm 1.0 (update_after_step 0), and in the arithmetic of torch.lerp. An update
// that is left out (found_inf) does not count.
#pragma once

#include <string>

#include "graph/program.h"

namespace fleet {

// The section of the updates; states "ema.<name>", and how many updates they have seen: int64 [1].
inline constexpr char kEmaSection[] = "ema";
inline constexpr char kEmaPrefix[] = "ema.";
inline constexpr char kEmaUpdates[] = "optimizer.ema_updates";

struct EmaOptions {
  double decay = 0.9999;
  bool warmup = false;
  double gamma = 1, power = 2.0 / 3;
};

// Behind append_updates(): gives each parameter and state that section `evaluate` reads an average,
// with all other parameters and the statistics that section `forward` writes; makes `evaluate` read
// the averages; updates them when section `optimize` runs. found_inf: int32 [1], not 0 where an
// update is left out; kNoVar: none is. Until the first update they are the weights themselves:
// section "start_ema" sees to it after the host wrote any.
void append_ema(Program& program, SectionId forward, SectionId evaluate, SectionId optimize,
                VarId found_inf, const EmaOptions& options);

}  // namespace fleet
