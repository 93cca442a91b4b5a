// The job file: which keys there are, put together from what models, data sources, optimizers,
// schedules and the strategy declare, and the checked settings.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

struct Job {
  Settings settings;                                                             // every key
  Settings model, data, optimizer, schedule, train, checkpoint, comm, strategy;  // its sections
  std::string model_name;
};

// The schema of the job that this tree describes: the parts its names choose. kUsage for an unknown
// model, source, optimizer or schedule.
Schema job_schema(const ConfigTree& tree);

// Overrides are "path=value" texts ("data.batch_size=64"), over what the tree has. kUsage naming
// what is wrong.
void apply_overrides(ConfigTree& tree, const std::vector<std::string>& overrides);

// The checked settings; the fields of strategy.file stand among them, below what is given.
Job make_job(const ConfigTree& tree);

}  // namespace fleet
