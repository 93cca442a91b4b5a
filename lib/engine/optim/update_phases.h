// Updates where some parameters are trained only from a later phase of training on
// (train/freezing.h).
#pragma once

#include <map>

#include "optim/optimizer.h"

namespace fleet {

// The phases, from 1 on, from which parameters are trained; others: 0.
using TrainedFrom = std::map<VarId, int>;

// append_updates(). The parameters of each phase have a number of updates of their own, as
// parameters in PyTorch, whose states begin with their first gradients: the states
// "optimizer.step", "optimizer.step.phase1", ...
void append_updates_by_phase(Program& program, SectionId optimize,
                             const std::vector<VarId>& parameters, VarId learning_rate,
                             const Settings& settings, const GradientScaling& scaling,
                             uint64_t seed, const TrainedFrom& trained_from);

inline constexpr char kStepOfPhase[] = "optimizer.step.phase";

}  // namespace fleet
