// The job file: its schema, assembled from the declarations of tasks, models, data sources,
// optimizers, schedules and the strategy, and the checked settings.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"

namespace fleet {

// A table that parameter servers hold: a section tables.NAME.
struct JobTable {
  std::string name;
  int64_t dim = 0;  // 0: the model's
};

struct Job {
  Settings settings;  // every key
  Settings model, data, optimizer, schedule, train, checkpoint, comm,
      strategy;  // the sections of settings
  std::string model_name;
  std::string task;  // a name in task_registry() (models/task.h)
  std::vector<JobTable> tables = {};
};

// Sections of job files that modules above this one declare, such as the tables of parameter
// servers:
//   FLEET_JOB_SECTION(tables) { def.schema = ...; }
struct JobSectionDef {
  // Its keys, with the section's name in front.
  std::function<Schema(const ConfigTree&)> schema;
};

Registry<JobSectionDef>& job_sections();

#define FLEET_JOB_SECTION(name)                                                                   \
  FLEET_REGISTER(job_section_##name, ::fleet::JobSectionDef& def, ::fleet::job_sections().define, \
                 #name)

// The schema of the job that this tree describes; the names in the tree choose its parts. kUsage
// for an unknown model, source, optimizer or schedule.
Schema job_schema(const ConfigTree& tree);

// Moves values given under another name to their key (canonicalize_strategy_fields(), use_dali).
// kUsage if one key gets two values. The functions below call it first.
void canonicalize_keys(ConfigTree& tree);

// Applies overrides, "path=value" texts ("data.batch_size=64", "strategy.amp_configs={'incr_ratio':
// 3}"), over the tree; "path=null" removes a key or section, and "section={...}" replaces a
// section. If an override chooses another optimizer, schedule, model or source, keys that only the
// former one has are dropped. Returns a line for each section that loses keys this way. kUsage
// naming what is wrong.
std::vector<std::string> apply_overrides(ConfigTree& tree,
                                         const std::vector<std::string>& overrides);

// Sets data.batch_size to a rank's share of data.global_batch_size, if that is given. Returns a
// line if it replaces the job file's data.batch_size, else "". kUsage if both are given with equal
// precedence, or if the ranks cannot share it equally.
std::string divide_global_batch(ConfigTree& tree, int64_t ranks);

// The checked settings, including the fields of strategy.file; values in the tree take precedence
// over those. Rounds train.fetch_every to a multiple of the strategy's num_iteration_per_run.
Job make_job(const ConfigTree& tree);

}  // namespace fleet
