// Opens the sources of a job's splits. Internal to data; open_split() and open_unlabelled() are
// declared in pipeline.h.
#pragma once

#include <memory>

#include "base/config.h"
#include "data/pipeline.h"
#include "data/source.h"

namespace fleet::data {

// The parts of the job that the source of one split must know.
SourceContext source_context(const Settings& data, bool train, bool verbose,
                             const PipelineContext& context);
// Whether the settings name data for this split.
bool names_data(const Settings& data, bool train);
// kUsage: there are no training data.
[[noreturn]] void refuse_missing_data(const Settings& data);
// The source of one split, with data.validation_split. Null if `train` is false and no test split
// is configured. Errors as of make_pipeline().
std::unique_ptr<Source> open_source(const Settings& data, bool train,
                                    const PipelineContext& context);

}  // namespace fleet::data
