// Options of a job that are given, and have no effect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program.h"
#include "train/job.h"

namespace fleet {

struct JobFacts {
  int world = 1;
  bool evaluates = true;     // there are test data
  int64_t steps = 0;         // of all epochs; 0: not known
  int64_t data_classes = 0;  // that the training labels name; 0: not known
};

// A line on each key that the user gave and nothing uses, with the reason. What the strategy, the
// device and the update rules say themselves is not among them.
std::vector<std::string> unused_options(const Job& job, const JobFacts& facts);

// The same for names of parameters in the optimizer section that fit none of the program's.
std::vector<std::string> unused_parameter_names(const Job& job, const Program& program);

}  // namespace fleet
