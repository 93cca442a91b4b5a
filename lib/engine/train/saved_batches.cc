#include "train/saved_batches.h"

#include "train/checkpoint.h"

namespace fleet {

RunFolderOptions run_folder_options(const Job& job, const RunStart& start) {
  const std::string name = job.train.text("name");
  return {.output = job.train.text("output"),
          .name = name.empty() ? job.model_name : name,
          .resumes = job.checkpoint.text("resume") == "auto",
          .run = start.run,
          .restarted = start.restarted};
}

// The checkpoint that Trainer takes, unless it is damaged.
static std::optional<std::string> checkpoint_to_resume(const Job& job, const RunStart& start) {
  const std::string folder = folder_to_continue(run_folder_options(job, start));
  const auto latest = folder.empty() ? std::nullopt : latest_checkpoint(folder + "/checkpoints");
  const std::string& wanted = job.checkpoint.text("resume");
  const bool continues = start.restarted && latest && is_of_run(folder, start.run);
  if (continues || wanted == "auto") return latest;
  if (wanted == "no") return std::nullopt;
  return wanted;
}

std::optional<SavedBatches> saved_batches(const Job& job, const RunStart& start) {
  const auto folder = checkpoint_to_resume(job, start);
  const auto position = folder ? position_of_checkpoint(*folder) : std::nullopt;
  if (!position) return std::nullopt;
  return SavedBatches{position->step, position->global_batch, position->merged_steps};
}

}  // namespace fleet
