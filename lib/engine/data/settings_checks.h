// Checks of the job file's "data" section that need no data, or only labels. Internal to data.
#pragma once

#include <cstdint>

#include "base/config.h"
#include "data/pipeline.h"
#include "data/source.h"

namespace fleet::data {

// All but the warnings throw kUsage naming the key. Warnings are of rank 0.

// Not both data.validation_split and data.test.
void check_validation_split(const Settings& data);
// data.sampling fits data.shuffle.
void check_sampling(const Settings& data);
// data.repeats fits data.shuffle; warns where mixup would mix copies.
void check_repeats(const Settings& data, const PipelineContext& context);
// Warns if mixup and cutmix have nothing to mix. samples: the training set's size.
void check_mixing(const Settings& data, int64_t samples, const PipelineContext& context);
void check_channels(int channels);
// Warns of classes without images, which no network can learn; a list may have an error. Classes
// above the highest label are reported elsewhere. On every rank that calls it.
void warn_of_empty_classes(const Source& source, const PipelineContext& context);

}  // namespace fleet::data
