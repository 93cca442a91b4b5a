// The batches of the checkpoint that a job continues from: strategy.auto keeps their size, which
// counts the steps of the whole run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/job.h"
#include "train/run_folder.h"

namespace fleet {

// One start of a run, which a launcher may start again.
struct RunStart {
  std::string run = {};    // identifies all starts of one job; "": it has only one
  bool restarted = false;  // it was started before
};

RunFolderOptions run_folder_options(const Job& job, const RunStart& start);

struct SavedBatches {
  int64_t step = 0;
  int64_t global_batch = 0;  // samples per step, over all ranks
  int64_t merged_steps = 1;  // steps of an update
};

// Nullopt if the job starts a new run, or if its newest checkpoint cannot be used. Changes no file.
std::optional<SavedBatches> saved_batches(const Job& job, const RunStart& start);

}  // namespace fleet
