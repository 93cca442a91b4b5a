// Whether and how a training continues from a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/checkpoint.h"

namespace fleet {

// Throws kUsage if the checkpoint in `folder` has another global batch or seed than this training,
// is behind the end of its epoch, has other classes, or another validation split: an evaluation
// would use samples that it was trained on. batches: per epoch; nullopt: a program that loads its
// data itself; the last three are then unknown.
void check_goes_on(const TrainingPosition& saved, const TrainingPosition& own,
                   std::optional<int64_t> batches, const std::string& folder);
// "was trained with the validation split 'a', this job's is none"; "" if both are the same.
std::string validation_difference(const TrainingPosition& saved, const TrainingPosition& own);
// A line if the rest of the epoch has other samples than it would have had: the training data or
// their order have changed within an epoch. "": they have not, or are unknown.
std::string changed_data(const TrainingPosition& saved, const TrainingPosition& own);
// The saved position, with the facts that this training has about its data.
TrainingPosition continued(TrainingPosition saved, const TrainingPosition& own);

}  // namespace fleet
