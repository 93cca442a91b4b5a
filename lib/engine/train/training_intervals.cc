#include "train/training_intervals.h"

namespace fleet {

TrainingIntervals::TrainingIntervals(const Job& job)
    : epochs(job.train.integer("epochs")),
      max_steps(job.train.integer("max_steps")),
      fetch_steps(job.train.integer("fetch_every")),
      evaluate_steps(job.train.integer("evaluate_every_steps")),
      evaluate_epochs(job.train.integer("evaluate_every")),
      save_steps(job.checkpoint.integer("every_steps")),
      save_epochs(job.checkpoint.integer("every_epochs")),
      compare_steps(job.train.integer("compare_ranks_every")) {}

}  // namespace fleet
