// Results of an evaluation by class and sample, for people: evaluation.json and a line.
#pragma once

#include <string>
#include <vector>

#include "data/augment.h"
#include "data/source.h"
#include "models/task.h"
#include "train/job.h"

namespace fleet {

struct EvaluatedData {
  const data::Source* source = nullptr;   // null: samples have no names and no pictures
  std::vector<std::string> classes = {};  // names by label; may be empty
  bool upright = false;                   // data.exif is apply
  // Of images whose pixels are marked: how evaluations place them. Null: nothing is marked.
  const data::AugmentChain* chain = nullptr;
};

// The content of evaluation.json (docs/reference/metrics.md), at most about 1 MiB; "": the
// collector reports nothing. Reads the images of the worst samples.
std::string evaluation_file(const EvaluationCollector& collector, const EvaluatedData& data,
                            int64_t step, int64_t epoch);

// few: of EvaluationCollector. "classes with fewer than 10 samples in the evaluation, whose metrics
// are uncertain: cat (3), dog (none)"; "" without such classes.
std::string small_classes_line(const std::vector<int64_t>& support,
                               const std::vector<std::string>& classes,
                               const EvaluationCollector::Few& few = {});

}  // namespace fleet
