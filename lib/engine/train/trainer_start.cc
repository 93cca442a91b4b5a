// The start of a Trainer: its folder, its data, and its initial state.
#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/file_status.h"
#include "base/log.h"
#include "train/device_settings.h"
#include "train/initial_weights.h"
#include "train/resume_checks.h"
#include "train/safetensors.h"
#include "train/saved_batches.h"
#include "train/start_comparison.h"
#include "train/trainer.h"
#include "train/unused_options.h"

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

Trainer::Trainer(const Job& job, Device& device, const TrainerOptions& options)
    : job_(job), device_(device), options_(options) {
  begun_ = monotonic_seconds();
  part_ = data_part(job, {.image = {}, .rank = options.rank, .world = options.world});
  data_ = std::make_unique<JobData>(job_, device_, part_);
  if (options.store && options.world > 1) {
    data_->compare(job_, {options.rank, options.world}, *options.store);
  }
  open_folder();
  const data::ImageShape image = data_->train().image();
  const uint64_t seed = static_cast<uint64_t>(job_.train.integer("seed"));
  runner_ =
      std::make_unique<StepRunner>(job_, Shape{image.channels, image.height, image.width}, device_,
                                   StepRunnerOptions{.rank = options.rank,
                                                     .world = options.world,
                                                     .nodes = options.nodes,
                                                     .communicator = options.communicator,
                                                     .control = options.control,
                                                     .store = options.store.get()});
  const int stages = runner_->session().stages();
  if (stages > 1) published_.in_pipeline(options.rank % stages, stages);
  position_ = {.seed = seed,
               .global_batch = data_->train().batch_size() * part_.parts,
               .merged_steps = runner_->session().merged_steps(),
               .model = job_.model_name,
               .card = data_->card(job_),
               .validation = data_->validation(job_),
               .data = data_->order(job_)};
  schedule_ = std::make_unique<Schedule>(job_.schedule, data_->train().batches(),
                                         job_.train.integer("epochs"), position_.global_batch);
  check_evaluates();
  if (schedule_->depends_on_evaluations() &&
      (!data_->test() || job_.train.integer("evaluate_every") == 0)) {
    throw Error(ErrorCode::kUsage, "the schedule needs evaluations, but there are none",
                "learning_rate.name " + job_.schedule.text("name"),
                "set test data (data.test) and set train.evaluate_every to 1 or more");
  }
  const bool evaluates = data_->test() && (job_.train.integer("evaluate_every") > 0 ||
                                           job_.train.integer("evaluate_every_steps") > 0);
  std::vector<std::string> metrics;
  for (const auto& [name, value] : evaluated_metrics()) {
    if (evaluates) metrics.push_back(name);
  }
  tracker_ = std::make_unique<EvaluationTracker>(job_, metrics);
  best_on_disk_ = tracker_->record().kept;
  if (is_leader() && schedule_->scale() != 1) {
    spdlog::info("learning rates x {:g}: the global batch is {}, they are meant for {}",
                 schedule_->scale(), position_.global_batch,
                 job_.schedule.integer("reference_batch"));
  }
  if (is_leader()) log_unused_options();
  load();
  const JobRank own{options.rank, options.world};
  std::unique_ptr<RankCoordinator> of_saver;  // the saver's thread takes its own turns
  if (saves_in_parts(runner_->executor().program())) {
    of_saver =
        std::make_unique<RankCoordinator>(options.control ? options.control : options.communicator,
                                          RankCoordinator::Actions::kUnlimited);
  }
  saver_ = std::make_unique<CheckpointSaver>(checkpoints(), runner_->executor(), own,
                                             std::move(of_saver));
  runner_->begin(position_.step);
  if (options.world > 1 && job_.train.integer("compare_ranks_every") > 0) {
    divergence_ =
        std::make_unique<DivergenceCheck>(runner_->executor(), device_, runner_->control(), own);
  }
  if (is_leader()) open_metrics();
  progress_ = std::make_unique<Progress>(Progress::Options{
      .width = is_leader() ? options.terminal_width : 0, .plain_seconds = 0, .write = {}});
}

Trainer::~Trainer() = default;

// Checks that the output folder is writable before training starts.
void Trainer::open_folder() {
  output_ = job_.train.text("output");
  if (is_leader()) {
    run_folder_ = std::make_unique<RunFolder>(
        run_folder_options(job_, {.run = options_.run, .restarted = options_.restarted}));
    output_ = run_folder_->path();
    spdlog::info("output folder: {}", output_);
    if (options_.world > 1) options_.store->set("run_folder", output_);
  } else if (output_.empty()) {
    output_ = options_.store->get("run_folder", timeout_of(job_));
  }
}

// Reports all options that have no effect.
void Trainer::log_unused_options() {
  const JobFacts facts{.world = options_.world,
                       .evaluates = data_->test() != nullptr,
                       .steps = data_->train().batches() * job_.train.integer("epochs"),
                       .data_classes = data_->fingerprint().classes};
  for (const std::string& line : unused_options(job_, facts)) spdlog::warn("{}", line);
  for (const auto& line : unused_parameter_names(job_, runner_->executor().program())) {
    spdlog::warn("{}", line);
  }
}

// A run that was restarted, and had already marked the output folder as its own, continues from the
// checkpoints there, whatever checkpoint.resume says. One rank that sees the mark suffices: if the
// others do not see its checkpoints, the job must not begin again. None writes before all have
// checked.
void Trainer::load() {
  const std::string weights = job_.checkpoint.text("weights");
  if (!weights.empty()) {
    WeightsOptions options{.skip = job_.checkpoint.texts("weights_skip")};
    if (evaluates_only()) options.classes = position_.card.classes;
    for (const auto& line : load_weights(weights, options, runner_->executor())) {
      if (is_leader()) spdlog::info("{}: {}", weights, line);
    }
  }
  double own = options_.restarted && is_of_run(output_, options_.run) ? 1 : 0;
  runner_->control().sum({&own, 1});
  continues_run_ = own > 0;
  const std::vector<double> steps = resume_on_all_ranks(continues_run_);
  if (is_leader() && !weights.empty() && resumed_step_ >= 0) {
    spdlog::warn("checkpoint.weights has no effect: the job resumes from a checkpoint");
  }
  check_same_start(steps);
  if (!evaluates_only()) forget_missing_best();
  if (is_leader() && !evaluates_only() && saved_step_ >= 0) set_newer_checkpoints_aside();
  if (evaluates_only() && weights.empty() && resumed_step_ < 0) {
    throw Error(ErrorCode::kUsage, "there is nothing to evaluate", "train.evaluate_only",
                "set checkpoint.weights to a file, or checkpoint.resume to a checkpoint's folder");
  }
  const bool saves = job_.checkpoint.boolean("at_end") ||
                     job_.checkpoint.integer("every_steps") > 0 ||
                     job_.checkpoint.integer("every_epochs") > 0 || tracker_->keeps_best();
  if (saves && saves_in_parts(runner_->executor().program())) {
    check_folder_is_shared(output_, {options_.rank, options_.world}, runner_->control());
  }
  if (is_leader()) mark_as_of_run(output_, options_.run);
}

// The step of the checkpoint that each rank loaded; -1: none. With "auto" all ranks together skip a
// damaged one.
std::vector<double> Trainer::resume_on_all_ranks(bool continues_run) {
  const std::string root = checkpoints();
  // A run that has not saved yet begins as it did before.
  const bool own = continues_run && latest_checkpoint(root).has_value();
  const std::string wanted = own ? "auto" : job_.checkpoint.text("resume");
  for (int64_t below = kForever;;) {
    const auto folder = wanted == "auto" ? latest_checkpoint(root, below) : std::nullopt;
    std::optional<LoadedCheckpoint> loaded;
    std::string damage;
    const std::vector<double> steps = runner_->control().all_succeed("load the checkpoint", [&] {
      if (below != kForever && !folder) {
        throw Error(ErrorCode::kUsage, "every checkpoint is damaged", root,
                    "repair one, or set checkpoint.resume to \"no\" to start a new run");
      }
      try {
        if (folder || (wanted != "auto" && wanted != "no"))
          loaded = load_to_resume(folder.value_or(wanted));
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
      if (wanted == "no" && !evaluates_only()) set_aside_other_checkpoints();
      return steps;
    }
    if (damaged - steps.begin() == options_.rank) {  // one line, as all ranks may see it
      spdlog::warn("{}: using the previous checkpoint", damage);
    }
    below = static_cast<int64_t>(-2 - *damaged);
  }
}

void Trainer::set_aside_other_checkpoints() {
  if (!is_leader()) return;
  const auto aside = set_checkpoints_aside(checkpoints());
  if (aside) spdlog::info("checkpoints of an earlier run are now in {}", *aside);
}

// The run continues from an older checkpoint of its folder: a later start must not take a newer
// one.
void Trainer::set_newer_checkpoints_aside() {
  for (auto newest = latest_checkpoint(checkpoints());
       newest && step_of_checkpoint(*newest) > saved_step_;
       newest = latest_checkpoint(checkpoints())) {
    spdlog::info("the run continues from step {}: {} is now {}", saved_step_, *newest,
                 set_aside(*newest).value_or("gone"));
  }
}

// Changes only the executor's values: another rank may find its part damaged, and all of them take
// an older checkpoint then.
Trainer::LoadedCheckpoint Trainer::load_to_resume(const std::string& folder) {
  LoadedCheckpoint loaded{.folder = folder};
  const auto accept = [&](const TrainingPosition& saved) {
    if (!evaluates_only()) check_goes_on(saved, position_, data_->train().batches(), folder);
    check_same_classes(
        saved.card.classes, position_.card.classes, folder,
        "use the data it was trained with, or checkpoint.weights to train a new head");
    check_validation(saved, folder);
  };
  loaded.position = load_checkpoint(
      folder, job_.model_name, runner_->executor(),
      {.own = {options_.rank, options_.world}, .note = &loaded.note, .accept = accept});
  return loaded;
}

void Trainer::resume(const LoadedCheckpoint& loaded) {
  const auto& [folder, saved, note] = loaded;
  schedule_->restore(saved.schedule);
  tracker_->restore(saved.evaluations);
  const std::string changed = changed_data(saved, position_);
  position_ = continued(saved, position_);
  resumed_step_ = saved.step;
  namespace fs = std::filesystem;
  std::error_code error;
  const bool own =
      fs::equivalent(fs::path(folder + "/..").lexically_normal(), checkpoints(), error);
  if (own) saved_step_ = kept_step_ = saved.step;
  if (!own && !evaluates_only()) {
    set_aside_other_checkpoints();
    // The best checkpoint is not in this folder.
    tracker_->restore_best({.metric = tracker_->record().kept.metric});
  }
  position_.evaluations = tracker_->record();
  best_on_disk_ = tracker_->record().kept;
  continues_run_ |= own;
  if (is_leader()) {
    spdlog::info("resumed from {}: step {}, epoch {}, batch {}", folder, saved.step, saved.epoch,
                 saved.batch);
    if (!note.empty()) spdlog::info("{}", note);
    if (!changed.empty() && !evaluates_only()) spdlog::warn("{}", changed);
  }
}

// After a return to an older checkpoint, the best one of that time may have been removed. Rank 0
// decides: others may not see the folder.
void Trainer::forget_missing_best() {
  const BestValue best = tracker_->record().kept;
  double missing = 0;
  if (is_leader() && best.step >= 0) {
    missing = path_exists(folder_of_step(checkpoints(), best.step)) ? 0 : 1;
  }
  runner_->control().sum({&missing, 1});
  if (missing == 0) return;
  if (is_leader()) {
    spdlog::info("the best checkpoint, of step {}, is gone: the best {} counts from here",
                 best.step, best.metric);
  }
  tracker_->restore_best({.metric = best.metric});
  position_.evaluations = tracker_->record();
  best_on_disk_ = tracker_->record().kept;
}

void Trainer::check_validation(const TrainingPosition& saved, const std::string& folder) const {
  if (!evaluates_only()) return fleet::check_validation(saved, position_, folder);
  const std::string difference = validation_difference(saved, position_);
  if (is_leader() && !difference.empty() && !position_.validation.empty()) {
    spdlog::warn("{} {}: it may have been trained on samples that it is evaluated on", folder,
                 difference);
  }
}

void Trainer::check_evaluates() const {
  if (!evaluates_only() || data_->test()) return;
  throw Error(ErrorCode::kUsage, "there are no test data", "train.evaluate_only", "set data.test");
}

}  // namespace fleet
