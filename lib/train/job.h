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

// Puts what is given under another name where its key is (name_strategy_fields(), use_dali). kUsage
// where one key has two values. The functions below do it first.
void name_keys(ConfigTree& tree);

// Overrides are "path=value" texts ("data.batch_size=64", "strategy.amp_configs={'incr_ratio':
// 3}"), over what the tree has; "path=null" removes a key or section, and "section={...}" replaces
// a section. Where one chooses another optimizer, schedule, model or source, what belongs to the
// former only goes. Returns a line on each section that so loses keys. kUsage naming what is wrong.
std::vector<std::string> apply_overrides(ConfigTree& tree,
                                         const std::vector<std::string>& overrides);

// Sets data.batch_size to a rank's part of data.global_batch_size, where that is given. Returns a
// line if it replaces the job file's data.batch_size, else "". kUsage where both are given alike,
// or the ranks cannot share it equally.
std::string divide_global_batch(ConfigTree& tree, int64_t ranks);

// The checked settings; the fields of strategy.file stand among them, below what is given.
// train.fetch_every is a multiple of the strategy's num_iteration_per_run.
Job make_job(const ConfigTree& tree);

}  // namespace fleet
