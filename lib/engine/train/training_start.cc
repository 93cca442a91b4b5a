#include "train/training_start.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/file_status.h"
#include "base/log.h"
#include "models/text/language_models.h"
#include "train/foreign_weights.h"
#include "train/initial_weights.h"
#include "train/language_weights.h"
#include "train/resume_checks.h"
#include "train/run_folder.h"
#include "train/safetensors.h"
#include "train/unfinished_checkpoints.h"

namespace fleet {

// saved: the step of the checkpoint that each rank loaded, by rank; -1: none.
static void check_same_start(const std::vector<double>& saved) {
  const auto start = [&](size_t rank) {
    const std::string who = "rank " + std::to_string(rank);
    return saved[rank] < 0
               ? who + " found no checkpoint"
               : who + " resumed from step " + std::to_string(static_cast<int64_t>(saved[rank]));
  };
  for (size_t rank = 1; rank < saved.size(); ++rank) {
    if (saved[rank] == saved[0]) continue;
    throw Error(ErrorCode::kUsage, start(0) + ", " + start(rank), "train.output",
                "use a folder that all nodes share, or copy the checkpoint to each node");
  }
}

TrainingStart::TrainingStart(const Job& job, const std::string& folder, int64_t batches,
                             const Parts& parts, JobRank own)
    : job_(job),
      root_(folder + "/checkpoints"),
      folder_(folder),
      batches_(batches),
      parts_(parts),
      own_(own) {}

// Returns missing_normalization() of them.
std::string TrainingStart::load_weights(const std::string& path) {
  StepRunner& runner = parts_.runner;
  HeadWeights heads;
  TensorFile file = read_job_weights(job_, path, &heads);
  WeightsOptions options = weights_options(job_, path, file.metadata);
  options.skip.insert(options.skip.end(), heads.missing.begin(), heads.missing.end());
  options.unused = heads.unused;
  std::string warning = missing_normalization(job_, path, file.metadata);
  std::vector<std::string> lines = std::move(heads.lines);
  for (auto& line : fleet::load_weights(std::move(file), path, options, runner.executor())) {
    lines.push_back(std::move(line));
  }
  for (const std::string& line : lines) {
    if (is_leader()) spdlog::info("{}: {}", path, line);
  }
  return warning;
}

void TrainingStart::load(bool marked) {
  auto& [runner, policy, tracker] = parts_;
  const std::string given = job_.checkpoint.text("weights");
  const std::string weights = given.empty() ? model_weights(job_) : given;
  std::string warning;
  if (is_leader()) remove_unfinished_checkpoints(root_);
  if (weights.empty()) {
    check_weights_skip(job_, runner.executor().program());
  } else {
    warning = load_weights(weights);
  }
  double own = marked ? 1 : 0;
  runner.control().sum({&own, 1});
  continues_ = own > 0;
  const std::vector<double> steps = resume_on_all_ranks();
  if (is_leader() && !given.empty() && resumed_step_ >= 0) {
    spdlog::warn("checkpoint.weights has no effect: the job resumes from a checkpoint");
  } else if (is_leader() && !warning.empty()) {
    spdlog::warn("{}", warning);
  } else if (is_leader() && weights.empty() && resumed_step_ < 0 &&
             job_.model_name == kHuggingFaceModel) {
    spdlog::info("{} has no weights: training starts from initial values",
                 job_.model.text(kHuggingFaceFolder));
  }
  check_same_start(steps);
  forget_missing_best();
  if (is_leader() && policy.saved_step() >= 0) set_newer_checkpoints_aside();
  if ((policy.saves() || tracker.keeps_best()) && saves_in_parts(runner.executor().program())) {
    check_folder_is_shared(folder_, own_, runner.control());
  }
}

// The step of the checkpoint that each rank loaded; -1: none. With "auto" all ranks together skip a
// damaged one.
std::vector<double> TrainingStart::resume_on_all_ranks() {
  // A run that has not saved yet begins as it did before.
  const bool own = continues_ && latest_checkpoint(root_).has_value();
  const std::string wanted = own ? "auto" : job_.checkpoint.text("resume");
  for (int64_t below = kForever;;) {
    const auto folder = wanted == "auto" ? latest_checkpoint(root_, below) : std::nullopt;
    std::optional<LoadedCheckpoint> loaded;
    std::string damage;
    const std::vector<double> steps =
        parts_.runner.control().all_succeed("load the checkpoint", [&] {
          if (below != kForever && !folder) {
            throw Error(ErrorCode::kUsage, "every checkpoint is damaged", root_,
                        "repair one, or set checkpoint.resume to \"no\" to start a new run");
          }
          try {
            if (folder || (wanted != "auto" && wanted != "no"))
              loaded = load_checkpoint(folder.value_or(wanted));
            return loaded ? static_cast<double>(loaded->position.step) : -1.0;
          } catch (const DamagedFile& error) {
            if (wanted != "auto") throw;
            damage = error.where() + ": " + error.failure();
            return -2.0 - static_cast<double>(step_of_checkpoint(*folder));
          }
        });
    const auto damaged =
        std::find_if(steps.begin(), steps.end(), [](double step) { return step < -1; });
    if (damaged == steps.end()) {
      if (loaded) resume(*loaded);
      if (wanted == "no") set_aside_other_checkpoints();
      return steps;
    }
    if (damaged - steps.begin() == own_.rank) {  // one line for an error that all ranks may see
      spdlog::warn("{}: using the previous checkpoint", damage);
    }
    below = static_cast<int64_t>(-2 - *damaged);
  }
}

void TrainingStart::set_aside_other_checkpoints() {
  if (!is_leader()) return;
  const auto aside = set_checkpoints_aside(root_);
  if (aside) spdlog::info("checkpoints of an earlier run are now in {}", *aside);
}

// The run continues from an older checkpoint of its folder: a later start must not take a newer
// one.
void TrainingStart::set_newer_checkpoints_aside() {
  const int64_t saved = parts_.policy.saved_step();
  for (auto newest = latest_checkpoint(root_); newest && step_of_checkpoint(*newest) > saved;
       newest = latest_checkpoint(root_)) {
    spdlog::info("the run continues from step {}: {} is now {}", saved, *newest,
                 set_aside(*newest).value_or("gone"));
  }
}

// Changes only the executor's values: another rank may find its part damaged, and all of them take
// an older checkpoint then.
TrainingStart::LoadedCheckpoint TrainingStart::load_checkpoint(const std::string& folder) {
  LoadedCheckpoint loaded{.folder = folder};
  const TrainingPosition& own = parts_.runner.position();
  const bool new_data = job_.checkpoint.boolean("new_data");
  const auto place = [&](const TrainingPosition& saved) {
    return new_data ? at_new_data(saved, own, folder) : saved;
  };
  const auto accept = [&](const TrainingPosition& saved) {
    check_goes_on(place(saved), own, batches_, folder);
  };
  loaded.position =
      fleet::load_checkpoint(folder, job_.model_name, parts_.runner.executor(),
                             {.own = own_,
                              .note = &loaded.note,
                              .merged_rows = &loaded.merged_rows,
                              .accept = accept,
                              .may_lack = [this](const std::string& state) {
                                return parts_.runner.session().phases().begins_later(state);
                              }});
  loaded.position = place(loaded.position);
  return loaded;
}

void TrainingStart::resume(const LoadedCheckpoint& loaded) {
  const auto& [folder, saved, note, merged_rows] = loaded;
  const auto& [runner, policy, tracker] = parts_;
  const std::string changed = runner.resume(saved, folder, merged_rows);
  tracker.restore(saved.evaluations);
  resumed_step_ = saved.step;
  namespace fs = std::filesystem;
  std::error_code error;
  const bool own = fs::equivalent(fs::path(folder + "/..").lexically_normal(), root_, error);
  if (own) policy.restore(saved.step);
  BestValue best = tracker.record().kept;
  if (!own) {
    set_aside_other_checkpoints();
    best = {.metric = best.metric};  // the best checkpoint is not in this folder
  }
  set_best(best);
  continues_ |= own;
  if (is_leader()) {
    spdlog::info("resumed from {}: step {}, epoch {}, batch {}", folder, saved.step, saved.epoch,
                 saved.batch);
    if (!note.empty()) spdlog::info("{}", note);
    if (!changed.empty()) spdlog::warn("{}", changed);
  }
}

void TrainingStart::set_best(const BestValue& best) {
  parts_.tracker.restore_best(best);
  parts_.policy.restore_best(best);
  parts_.runner.position().evaluations = parts_.tracker.record();
}

// After a return to an older checkpoint, the best one of that time may have been removed. Rank 0
// decides: others may not see the folder.
void TrainingStart::forget_missing_best() {
  const BestValue best = parts_.tracker.record().kept;
  double missing = 0;
  if (is_leader() && best.step >= 0) {
    missing = path_exists(folder_of_step(root_, best.step)) ? 0 : 1;
  }
  parts_.runner.control().sum({&missing, 1});
  if (missing == 0) return;
  if (is_leader()) {
    spdlog::info("the best checkpoint, of step {}, is gone: the best {} counts from here",
                 best.step, best.metric);
  }
  set_best({.metric = best.metric});
}

}  // namespace fleet
