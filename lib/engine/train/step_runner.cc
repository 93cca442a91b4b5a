#include "train/step_runner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "comm/peer_wait_timer.h"
#include "optim/swa.h"
#include "train/job_task.h"
#include "train/merged_rows.h"
#include "train/resume_checks.h"
#include "train/start_comparison.h"
#include "train/trainer_memory.h"

namespace fleet {

// Before the first step.
static TrainingPosition start_position(const Job& job, JobData* data,
                                       const StepRunnerOptions& options) {
  const DataPart part = data_part(job, {.rank = options.rank, .world = options.world});
  TrainingPosition position{.seed = static_cast<uint64_t>(job.train.integer("seed")),
                            .global_batch = job.data.integer("batch_size") * part.parts,
                            .model = job.model_name,
                            .task = job.task,
                            .settings = weight_settings(job)};
  if (data) {
    position.card = data->card(job);
    position.validation = data->validation(job);
    position.data = data->order(job);
    position.tokenizer = data->train().source().tokenizer();
  } else {
    const Shape image = image_of_columns(options.own.columns);
    position.card.classes = data::given_class_names(job.data, classes_of(job));
    for (int d = 0; d < image.rank(); ++d) position.card.image.push_back(image[d]);
  }
  return position;
}

// Sums of the gradients of rows are saved in the ranks' parts, which checkpoints have for those of
// dense gradients.
static void check_merging(const Program& program, int64_t merged_steps) {
  if (merged_steps == 1 || served_tables(program).empty() || !rank_states(program).empty()) return;
  throw Error(ErrorCode::kUnsupported,
              "gradient_merge needs a model with other parameters than tables on servers",
              "strategy.gradient_merge", "remove it, or leave a table out of the section tables");
}

StepRunner::StepRunner(const Job& job, JobData* data, Device& device,
                       const StepRunnerOptions& options)
    : device_(device), rank_(options.rank), world_(options.world) {
  ProgramOptions session{.columns = options.own.columns,
                         .rank = options.rank,
                         .world = options.world,
                         .nodes = options.nodes,
                         .servers = options.servers.count,
                         .backend = device.backend()};
  if (data) {
    session.columns = columns_of(data->train());
    session.lengths = data->train().lengths();
  }
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
  if (trainers_run_apart(job, options.servers.count)) {
    apart_ = std::make_unique<RankCoordinator>(nullptr);
  }
  watch_.emplace(executor(), device, step_control(), options.rank, on_nan_of(job));
  position_ = start_position(job, data, options);
  position_.merged_steps = session_->merged_steps();
  if (options.servers.count > 0) {
    if (!trainers_run_apart(job, options.servers.count)) {
      check_merging(executor().program(), position_.merged_steps);
    }
    exchange_ = options.servers.connect(executor().program(), session.columns);
  }
  if (data) {
    data->train().set_merged_steps(position_.merged_steps);
    epoch_batches_ = data->train().batches();
  }
  phase_batches_ = data ? epoch_batches_ : options.own.batches;
  swa_ = SwaSteps(job, executor().program(), phase_batches_);
  update_samples_ = apart() ? job.data.integer("batch_size") : position_.global_batch;
  schedule_.emplace(job.schedule, phase_batches_, job.train.integer("epochs"), update_samples_,
                    job.train.integer("max_steps"));
  if (const auto ending = swa_rate(job, phase_batches_)) schedule_->set_ending(*ending);
}

// Feeds that evaluations lack come last, so that they can be left out.
void StepRunner::make_prefetcher() {
  fed_ = session_->training().feeds;
  std::ranges::stable_sort(fed_, {}, &TrainingFeed::training_only);
  std::vector<VarId> vars;
  for (const TrainingFeed& feed : fed_) {
    vars.push_back(feed.var);
    if (feed.mean_of) means_[feed.name] = 1;
  }
  prefetcher_ = std::make_unique<DevicePrefetcher>(executor(), device_, vars);
}

void StepRunner::set_means(const data::Batch& batch) {
  const auto column = [&](const std::string& name) { return batch.column(name); };
  for (const TrainingFeed& feed : fed_) {
    if (!feed.mean_of) continue;
    double sum = feed.mean_of(column);
    int ranks = 1;
    if (!apart()) {
      const PeerWaitTimer waiting;
      step_control().sum({&sum, 1});
      ranks = world_;
    }
    means_[feed.name] = sum > 0 ? static_cast<float>(sum / ranks) : 1.0F;
  }
}

void StepRunner::feed(const data::Batch& batch, const float& rate) {
  feeds_.clear();
  for (const TrainingFeed& feed : fed_) {
    const std::span<const std::byte> data =
        feed.name == "learning_rate" ? std::as_bytes(std::span(&rate, 1))
        : feed.mean_of               ? std::as_bytes(std::span(&means_.at(feed.name), 1))
                                     : batch.column(feed.name);
    if (feed.training_only && data.empty()) continue;
    FLEET_CHECK(!data.empty(), "a batch without " + feed.name);
    feeds_.push_back({feed.var, data});
  }
  prefetcher_->feed(feeds_);
}

void StepRunner::begin() {
  sync_.emplace(executor(), position_.step);  // checkpoints are saved after a sync
  if (!exchange_) return session_->broadcast_all();
  if (!resumed_.empty()) exchange_->resume_tables(resumed_);
  exchange_->begin(executor(), position_.step);
  if (position_.merged_steps > 1) exchange_->restore_merged_rows(std::exchange(merged_rows_, {}));
}

ParameterExchange::TakenPlace StepRunner::take_place(const TrainingPosition& remembered,
                                                     uint64_t shares) {
  FLEET_CHECK(exchange_, "a lost rank of collective training cannot be replaced");
  schedule_->restore(remembered.schedule);
  TrainingPosition at = remembered;
  at.card = position_.card;
  position_ = continued(std::move(at), position_);
  const auto taken = exchange_->take_place(executor(), shares);
  move_to(taken.steps, epoch_batches_, &position_);
  sync_.emplace(executor(), position_.step);
  return taken;
}

void StepRunner::feed_rows(const data::Batch& batch, bool evaluation) {
  if (evaluated_rows_) return evaluated_rows_->feed(executor(), batch);
  if (!exchange_) return;
  const PeerWaitTimer waiting;
  exchange_->feed_rows(
      executor(), [&](const std::string& name) { return batch.column(name); }, evaluation);
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

// Selects the Plan of this position.
void StepRunner::select(const data::Batch& batch, int64_t epoch, int64_t done) {
  const FreezingPhases& phases = session_->phases();
  const int phase = phases.phase_at({.step = position_.step,
                                     .epoch = epoch,
                                     .batch = done,
                                     .batches = phase_batches_,
                                     .merged_steps = position_.merged_steps});
  session_->select(phase, batch.length);
  while (phase_ < phase) {
    ++phase_;
    if (rank_ == 0) spdlog::info("{}", phases.line_at(phase_, executor().program()));
  }
}

void StepRunner::train(const data::Batch& batch, bool fetch, double learning_rate) {
  FLEET_CHECK(sync_, "a step before begin()");
  check_order(batch);
  const float rate = static_cast<float>(learning_rate);
  select(batch, batch.epoch, batch.index);
  set_means(batch);
  feed(batch, rate);
  feed_rows(batch, /*evaluation=*/false);
  StepInfo prepared = session_->prepare({.step = position_.step, .fetch = fetch}, rate);
  prepared.flags |= swa_.flags(batch.epoch, batch.index, position_.step);
  if (std::exchange(synchronized_, false) && exchange_) exchange_->resume(executor());
  watch_->step_begins(prepared);
  traffic_->step_begins();
  executor().run(prepared);
  traffic_->step_done();
  if (exchange_) {
    const bool updates = (position_.step + 1) % position_.merged_steps == 0;
    updates ? update_on_servers(rate) : exchange_->merge_rows(executor());
  }
  prefetcher_->release();
  executor().check_communicators();
  position_.step += 1;
  position_.epoch = batch.epoch;
  position_.batch = batch.index + 1;
}

void StepRunner::update_on_servers(double rate) {
  {
    const PeerWaitTimer waiting;
    exchange_->update(executor(), position_.step, rate);
  }
  sync_->run(position_.step + 1);
}

MetricSums StepRunner::evaluate(const data::Batch& batch) {
  const float no_rate = 0;
  select(batch, position_.epoch, position_.batch);
  feed(batch, no_rate);
  feed_rows(batch, /*evaluation=*/true);
  executor().run({.step = position_.step, .evaluate = true, .fetch = true});
  prefetcher_->release();
  return session_->read_metrics(true);
}

void StepRunner::take_statistics(const data::Batch& batch, int64_t number) {
  const float no_rate = 0;
  select(batch, position_.epoch, position_.batch);
  feed(batch, no_rate);
  executor().run({.step = statistics_step(number)});
  prefetcher_->release();
}

std::string StepRunner::observe(const MetricSums& evaluated) {
  const std::string line =
      schedule_->observe(position_.step, {evaluated.loss(), evaluated.headline()});
  position_.schedule = schedule_->state();
  return line;
}

int StepRunner::meet(int stop) {
  const PeerWaitTimer waiting;
  if (exchange_) {
    exchange_->settle(executor());
    exchange_->meet();
  }
  const auto own = static_cast<double>(stop);
  for (const auto& rank : control_->by_rank({&own, 1})) {
    if (stop == 0) stop = static_cast<int>(rank[0]);
  }
  return stop;
}

void StepRunner::finish() {
  if (exchange_) exchange_->finish();
}

void StepRunner::sync_ranks(SyncFor what) {
  FLEET_CHECK(sync_, "an evaluation or a checkpoint before begin()");
  if (exchange_) {
    const bool saves = what == SyncFor::kCheckpoint;
    if (saves && apart() && rank_ != 0) return;
    if (apart()) exchange_->settle(executor());
    synchronized_ = true;
    return exchange_->synchronize(executor(), saves);
  }
  sync_->run(position_.step);
  session_->broadcast_statistics();
}

MoreFiles StepRunner::table_files() {
  if (!exchange_ || served_tables(executor().program()).empty()) return {};
  return {.cut = [this] { exchange_->cut_tables(); },
          .part = [this](TensorFile* part) { add_merged_rows(exchange_->merged_rows(), part); },
          .write = [this](const std::string& folder) { return exchange_->save_tables(folder); }};
}

std::string StepRunner::resume(const TrainingPosition& saved, const std::string& folder,
                               std::vector<MergedRows> merged_rows) {
  resumed_ = folder;
  merged_rows_ = std::move(merged_rows);
  schedule_->restore(saved.schedule);
  std::vector<std::string> changes = {changed_data(saved, position_),
                                      input_difference(saved.settings, position_.settings)};
  if (!changes[1].empty()) changes[1] = folder + " " + changes[1];
  std::erase(changes, "");
  position_ = continued(saved, position_);
  return join(changes, "; ");
}

}  // namespace fleet
