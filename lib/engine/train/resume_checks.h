// Whether and how a training continues from a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/checkpoint.h"
#include "train/training_intervals.h"

namespace fleet {

// Throws kUsage if the checkpoint in `folder` has another task, global batch, seed, tokenizer
// or network than this training (of older checkpoints the last two are not known), is behind the
// end of its epoch, has other classes, or another validation split: an evaluation would use samples
// that it was trained on. batches: per epoch; nullopt: a program that loads its data itself; the
// last three are then unknown.
void check_goes_on(const TrainingPosition& saved, const TrainingPosition& own,
                   std::optional<int64_t> batches, const std::string& folder);
// The position for checkpoint.new_data: the start of the next epoch if the data or the global batch
// are not the checkpoint's, else the saved position. kUsage if the checkpoint
// is within an update of merged steps.
TrainingPosition at_new_data(TrainingPosition saved, const TrainingPosition& own,
                             const std::string& folder);
// "was trained with the validation split 'a', this job's is none"; "" if both are the same.
std::string validation_difference(const TrainingPosition& saved, const TrainingPosition& own);
// "was trained with the tokenizer a.json (hash 0123456789abcdef), this job's is b.json (hash ...)";
// "" if both have the same content, or one is unknown.
std::string tokenizer_difference(const data::TokenizerIdentity& saved,
                                 const data::TokenizerIdentity& own);
// A line if the rest of the epoch has other samples than it would have had: the training data or
// their order have changed within an epoch. "": they have not, or are unknown.
std::string changed_data(const TrainingPosition& saved, const TrainingPosition& own);
// Says which keys to raise if no step is left to train at this position; "" if some are left.
// batches: per epoch.
std::string reached_end(const TrainingPosition& at, const TrainingIntervals& intervals,
                        int64_t batches);
// The saved position, with the facts that this training has about its data.
TrainingPosition continued(TrainingPosition saved, const TrainingPosition& own);

}  // namespace fleet
