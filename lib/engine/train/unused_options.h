// Options of a job that are set but have no effect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program.h"
#include "train/job.h"

namespace fleet {

struct JobFacts {
  int world = 1;
  bool evaluates = true;     // whether there are test data
  int64_t steps = 0;         // in all epochs; 0: unknown
  int64_t data_classes = 0;  // number of classes in the training labels; 0: unknown
};

// A line for each key that the user gave and nothing uses, with the reason. Excludes what the
// strategy, the device and the update rules report themselves.
std::vector<std::string> unused_options(const Job& job, const JobFacts& facts);

// Like the above, for parts of parameter names in the optimizer section that fit none of the
// program's. Patterns that match none are errors: check_parameter_patterns().
std::vector<std::string> unused_parameter_names(const Job& job, const Program& program);

// Likewise: keys about tables of the model, if parameter servers hold all tables of the program.
std::vector<std::string> unused_table_keys(const Job& job, const Program& program);

}  // namespace fleet
