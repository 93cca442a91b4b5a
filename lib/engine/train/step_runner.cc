#include "train/step_runner.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "train/job_task.h"
#include "train/resume_checks.h"
#include "train/start_comparison.h"

namespace fleet {

// Before the first step.
static TrainingPosition start_position(const Job& job, JobData* data,
                                       const StepRunnerOptions& options) {
  const DataPart part = data_part(job, {.rank = options.rank, .world = options.world});
  TrainingPosition position{.seed = static_cast<uint64_t>(job.train.integer("seed")),
                            .global_batch = job.data.integer("batch_size") * part.parts,
                            .model = job.model_name,
                            .task = job.task};
  if (data) {
    position.card = data->card(job);
    position.validation = data->validation(job);
    position.data = data->order(job);
  } else {
    const Shape image = image_of_columns(options.own.columns);
    position.card.classes = data::given_class_names(job.data, classes_of(job));
    for (int d = 0; d < image.rank(); ++d) position.card.image.push_back(image[d]);
  }
  return position;
}

StepRunner::StepRunner(const Job& job, JobData* data, Device& device,
                       const StepRunnerOptions& options)
    : device_(device), rank_(options.rank) {
  ProgramOptions session{.columns = options.own.columns,
                         .rank = options.rank,
                         .world = options.world,
                         .nodes = options.nodes,
                         .backend = device.backend()};
  if (data) session.columns = columns_of(data->train());
  session_ = std::make_unique<Session>(job, session, device, options.communicator);
  if (options.store && options.world > 1) {
    session_->compare_plans(*options.store, timeout_of(job));
  }
  session_->open_links(device);
  executor().set_recording(job.train.boolean("cuda_graph"));
  executor().set_checking(job.train.boolean("check_nan_inf"));
  traffic_.emplace(session_->communicators());
  make_prefetcher();
  control_ =
      std::make_unique<RankCoordinator>(options.control ? options.control : options.communicator);
  watch_.emplace(executor(), device, *control_, options.rank, on_nan_of(job));
  position_ = start_position(job, data, options);
  position_.merged_steps = session_->merged_steps();
  if (data) {
    data->train().set_merged_steps(position_.merged_steps);
    epoch_batches_ = data->train().batches();
  }
  schedule_.emplace(job.schedule, data ? data->train().batches() : options.own.batches,
                    job.train.integer("epochs"), position_.global_batch);
}

// Feeds that evaluations lack come last, so that they can be left out.
void StepRunner::make_prefetcher() {
  fed_ = session_->training().feeds;
  std::ranges::stable_sort(fed_, {}, &TrainingFeed::training_only);
  std::vector<VarId> vars;
  for (const TrainingFeed& feed : fed_) vars.push_back(feed.var);
  prefetcher_ = std::make_unique<DevicePrefetcher>(executor(), device_, vars);
}

void StepRunner::feed(const data::Batch& batch, const float& rate) {
  feeds_.clear();
  for (const TrainingFeed& feed : fed_) {
    const std::span<const std::byte> data =
        feed.name == "learning_rate" ? std::as_bytes(std::span(&rate, 1)) : batch.column(feed.name);
    if (feed.training_only && data.empty()) continue;
    FLEET_CHECK(!data.empty(), "a batch without " + feed.name);
    feeds_.push_back({feed.var, data});
  }
  prefetcher_->feed(feeds_);
}

void StepRunner::begin() {
  sync_.emplace(executor(), position_.step);  // checkpoints are saved after a sync
  session_->broadcast_all();
}

// The pipeline computes the class weights of an update for batches that follow each other. A
// program with its own loop may take others.
void StepRunner::check_order(const data::Batch& batch) {
  if (warned_of_order_ || session_->training().feed("class_weights") == kNoVar) return;
  if (epoch_batches_ == 0 || position_.step % position_.merged_steps == 0) return;
  const bool ended = position_.batch == epoch_batches_;
  const bool next = batch.epoch == position_.epoch && batch.index == position_.batch;
  if (next || (ended && batch.epoch == position_.epoch + 1 && batch.index == 0)) return;
  warned_of_order_ = true;
  if (rank_ != 0) return;
  spdlog::warn(
      "train.class_weights: the update of step {} adds up batches that do not follow each other "
      "(batch {} of epoch {} after batch {} of epoch {}), so the weights of its classes are not "
      "exact; end an epoch early only after a multiple of {} steps",
      position_.step, batch.index, batch.epoch, position_.batch - 1, position_.epoch,
      position_.merged_steps);
}

void StepRunner::train(const data::Batch& batch, bool fetch, double learning_rate) {
  FLEET_CHECK(sync_, "a step before begin()");
  check_order(batch);
  const float rate = static_cast<float>(learning_rate);
  feed(batch, rate);
  const StepInfo prepared = session_->prepare({.step = position_.step, .fetch = fetch}, rate);
  watch_->step_begins(prepared);
  traffic_->step_begins();
  executor().run(prepared);
  traffic_->step_done();
  prefetcher_->release();
  executor().check_communicators();
  position_.step += 1;
  position_.epoch = batch.epoch;
  position_.batch = batch.index + 1;
}

MetricSums StepRunner::evaluate(const data::Batch& batch) {
  const float no_rate = 0;
  feed(batch, no_rate);
  executor().run({.step = position_.step, .evaluate = true, .fetch = true});
  prefetcher_->release();
  return session_->read_metrics(true);
}

std::string StepRunner::observe(const MetricSums& evaluated) {
  const std::string line =
      schedule_->observe(position_.step, {evaluated.loss(), evaluated.headline()});
  position_.schedule = schedule_->state();
  return line;
}

void StepRunner::sync_ranks() {
  FLEET_CHECK(sync_, "an evaluation or a checkpoint before begin()");
  sync_->run(position_.step);
  session_->broadcast_statistics();
}

std::string StepRunner::resume(const TrainingPosition& saved) {
  schedule_->restore(saved.schedule);
  const std::string changed = changed_data(saved, position_);
  position_ = continued(saved, position_);
  return changed;
}

}  // namespace fleet
