#include "train/trainer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "train/saved_batches.h"
#include "train/start_comparison.h"
#include "train/training_start.h"
#include "train/unused_options.h"

namespace fleet {
namespace {

using Patience = TrainingCheckpoints::Patience;

}  // namespace

Trainer::Trainer(const Job& job, Device& device, const TrainerOptions& options)
    : job_(job), device_(device), options_(options), totals_(!device.runs_beside_host()) {
  const double begun = monotonic_seconds();
  const JobRank own{options.rank, options.world};
  data_ = open_data(job_, device_, own, options.store.get());
  if (!evaluates_only_) open_folder();
  runner_ = std::make_unique<StepRunner>(job_, data_.get(), device_,
                                         StepRunnerOptions{.rank = options.rank,
                                                           .world = options.world,
                                                           .nodes = options.nodes,
                                                           .communicator = options.communicator,
                                                           .control = options.control,
                                                           .store = options.store.get()});
  const bool has_test_data = data_->test() != nullptr;
  tracker_ = make_evaluation_tracker(
      job_, {.has_data = has_test_data,
             .schedule_observes = runner_->schedule().depends_on_evaluations(),
             .metrics = session().training().metrics->metrics,
             .headline = session().training().metrics->headline});
  evaluations_.emplace(job_, has_test_data, data_->train().batches());
  saves_.restore_best(tracker_->record().kept);
  if (is_leader()) log_unused_options();
  const bool continues = load_start();
  if (options.world > 1 && intervals_.compare_steps > 0) {
    divergence_ =
        std::make_unique<DivergenceCheck>(runner_->executor(), device_, runner_->control(), own);
  }
  report_ = std::make_unique<TrainingReport>(
      job_, device_, *runner_, data_->train(),
      TrainingReport::Options{
          .rank = own, .terminal_width = is_leader() ? options.terminal_width : 0, .begun = begun});
  checkpoints_ = std::make_unique<TrainingCheckpoints>(
      output_ + "/checkpoints",
      TrainingCheckpoints::Parts{*runner_, saves_, *tracker_, *report_, divergence_.get()}, own,
      options.control ? options.control : options.communicator);
  runner_->begin();
  if (!is_leader()) return;
  if (evaluates_only_) {
    report_->open_results(output_, evaluated_weights_.source);
  } else {
    run_folder_->begin();
    report_->open(output_, !continues);
  }
}

// The initial weights, or those of a checkpoint. Returns whether the run continues in its folder.
bool Trainer::load_start() {
  const JobRank own{options_.rank, options_.world};
  if (evaluates_only_) {
    evaluated_weights_ = load_evaluated_weights(job_, *runner_, own, options_.store.get());
    output_ = job_.train.text("output");
    if (output_.empty()) output_ = evaluated_weights_.run;
    return false;
  }
  TrainingStart start(job_, output_, data_->train().batches(), {*runner_, saves_, *tracker_}, own);
  start.load(options_.restarted && is_of_run(output_, options_.run));
  if (is_leader()) mark_as_of_run(output_, options_.run);
  return start.continues();
}

// Checks that the output folder is writable before training starts.
void Trainer::open_folder() {
  output_ = job_.train.text("output");
  if (is_leader()) {
    run_folder_ = std::make_unique<RunFolder>(
        run_folder_options(job_, {.run = options_.run, .restarted = options_.restarted}));
    output_ = run_folder_->path();
    spdlog::info("output folder: {}", output_);
    const ContinuedFolder& before = run_folder_->continued();
    const bool resumes = job_.checkpoint.text("resume") == "auto";
    if (const std::string note = before.note(); resumes && !note.empty()) {
      spdlog::log(before.forgets_runs() ? spdlog::level::warn : spdlog::level::info,
                  "checkpoint.resume=auto: {}", note);
    }
    if (options_.world > 1) options_.store->set("run_folder", output_);
  } else if (output_.empty()) {
    output_ = options_.store->get("run_folder", timeout_of(job_));
  }
}

// Reports all options that have no effect, and learning rates that are not the job file's.
void Trainer::log_unused_options() {
  if (const double scale = runner_->schedule().scale(); scale != 1) {
    spdlog::info("learning rates x {:g}: the global batch is {}, they are meant for {}", scale,
                 runner_->position().global_batch, job_.schedule.integer("reference_batch"));
  }
  const JobFacts facts{.world = options_.world,
                       .evaluates = data_->test() != nullptr,
                       .steps = data_->train().batches() * intervals_.epochs,
                       .data_classes = data_->fingerprint().classes};
  for (const std::string& line : unused_options(job_, facts)) spdlog::warn("{}", line);
  for (const auto& line : unused_parameter_names(job_, runner_->executor().program())) {
    spdlog::warn("{}", line);
  }
}

TrainResult Trainer::run() {
  try {
    return train();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPeerLost && error.code() != ErrorCode::kTimeout) throw;
    const int stages = session().stages();  // with_stages() finds "rank N" in the texts
    throw Error(error.code(), with_stages(error.failure(), stages),
                with_stages(error.where(), stages), error.next());
  }
}

TrainResult Trainer::train() {
  const TrainingPosition& at = runner_->position();
  report_->training_begins();
  if (evaluates_only_) {
    evaluate(EvaluationPolicy::epoch_of(at));
    if (ends_) end_for_failure();
  } else {
    train_epochs();
  }
  if (trace_) trace_->finish();
  report_->launcher().finish();
  result_.evaluated = evaluated_step_ == at.step;
  result_.damaged = count_damaged(data_->train(), runner_->control());
  result_.steps = at.step;
  result_.skipped = runner_->finite_check().found();
  result_.stopped_early = tracker_->should_stop();
  report_->summarize(result_, *tracker_, output_ + "/checkpoints");
  checkpoints_->check_last();
  return result_;
}

void Trainer::train_epochs() {
  const TrainingPosition& at = runner_->position();
  report_->launcher().planned(steps_to_train(), data_->train().stats().threads);
  trace_ = std::make_unique<StepTrace>(report_->launcher(), runner_->executor(), options_.rank);
  const Schedule& schedule = runner_->schedule();
  const auto seen = [](bool wanted, int64_t step) {
    return wanted ? std::optional(step) : std::nullopt;
  };
  if (const auto epoch = evaluations_->missed(
          at, seen(schedule.depends_on_evaluations(), schedule.observed_step()),
          seen(tracker_->wanted(), tracker_->record().observed_step))) {
    evaluate(*epoch);
  }
  const auto finished = [&] {
    return result_.stopped_by != 0 || ends_ || tracker_->should_stop() ||
           intervals_.ends_after(at.step);
  };
  while (at.epoch < intervals_.epochs && !finished()) {
    const int64_t epoch = at.epoch;
    train_epoch();
    if (at.epoch == epoch) break;  // stopped within the epoch
    if (saves_.due_after_epoch(at.epoch)) checkpoints_->save();
    if (evaluations_->due_after_epoch(at.epoch)) evaluate(epoch);
  }
  runner_->executor().synchronize();
  act_on(runner_->finite_check().poll());
  if (ends_) end_for_failure();
  checkpoints_->finish(Patience::kUnlimited);
  if (saves_.due_at_end()) checkpoints_->save(true);
  if (result_.stopped_by == 0 && evaluations_->due_at_end()) {
    evaluate(EvaluationPolicy::epoch_of(at));
    if (ends_) end_for_failure();
  }
  checkpoints_->finish(Patience::kUnlimited);
  if (saves_.failed()) checkpoints_->save(true);  // retry: it costs nothing but time
}

void Trainer::train_epoch() {
  TrainingPosition& at = runner_->position();
  data_->train().start_epoch(at.epoch, at.batch, at.step);
  report_->epoch_begins();
  for (;;) {
    trace_->step_begins(at.step);
    const bool more = !intervals_.ends_after(at.step) && !tracker_->should_stop();
    const data::Batch* batch = more ? next_batch(data_->train()) : nullptr;
    if (!batch && at.batch == data_->train().batches()) {
      at.epoch += 1;
      at.batch = 0;
    }
    totals_.step_begins();
    if (!agree_on_step(batch != nullptr) || !batch) break;
    save_if_asked();
    try {
      train_step(*batch);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kPeerLost) runner_->control().explain_lost_peer();
      throw;
    }
  }
  report_->clear_bar();
}

bool Trainer::agree_on_step(bool works) {
  RankCoordinator::Request own{.stop = options_.stop ? options_.stop->load() : 0,
                               .end = failure_ != nullptr,
                               .trace = trace_ && trace_->announce()};
  const int signals = options_.saves ? options_.saves->load() : 0;
  own.save = checkpoint_requests_.is_new(signals, monotonic_seconds());
  const RankCoordinator::Request all =
      runner_->control().agree_on_step({.step = runner_->position().step, .works = works}, own);
  runner_->executor().pause_recording(all.trace);  // at the same step on all ranks
  save_asked_ |= checkpoint_requests_.agree(all.save, monotonic_seconds());
  if (result_.stopped_by == 0) result_.stopped_by = all.stop;
  ends_ = all.end;
  return all.stop == 0 && !ends_;
}

// Null at the end of the epoch. A rank without a batch takes part in one more step, because others
// may have begun it: they do not wait for each other before a step.
const data::Batch* Trainer::next_batch(data::InputPipeline& from) {
  try {
    const data::Batch* batch = from.next(options_.stop);
    if (batch || from.at_end()) return batch;
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  return from.placeholder_batch();
}

void Trainer::train_step(const data::Batch& batch) {
  StepMeter& meter = report_->times().meter;
  meter.data_ready();
  const TrainingPosition& at = runner_->position();
  const float rate = static_cast<float>(runner_->schedule().learning_rate(at.step));
  const bool fetch = intervals_.due(intervals_.fetch_steps, at.step + 1);
  report_->files().show_batch(batch, at.step);
  runner_->train(batch, fetch, rate);
  // If the host runs ahead, steps end later than they are issued: the sums are right wherever the
  // host waits.
  const bool waits = fetch || at.batch == data_->train().batches() ||
                     saves_.due_after_step(at.step) || intervals_.ends_after(at.step);
  if (waits) runner_->executor().synchronize();
  const std::optional<BadUpdates> bad = waits ? runner_->finite_check().poll() : std::nullopt;
  trained_samples_ += batch.real;
  report_->step_done(batch);
  if (fetch) report_->step(batch, rate, steps_to_train());
  report_->launcher().step_done(at.step, at.epoch,
                                totals_.step_done(at.step, meter, batch, data_->train().work()));
  if (waits) act_on(bad);
  report_->draw_bar(batch);
  after_step();
}

// The step at which training ends, unless it ends early.
int64_t Trainer::steps_to_train() {
  const TrainingPosition& at = runner_->position();
  const int64_t epochs = std::max<int64_t>(intervals_.epochs - at.epoch, 0);
  const int64_t left = std::max<int64_t>(epochs * data_->train().batches() - at.batch, 0);
  const int64_t all = at.step + left;
  return intervals_.max_steps > 0 ? std::min(all, intervals_.max_steps) : all;
}

void Trainer::after_step() {
  const TrainingPosition& at = runner_->position();
  report_->log_failures();
  if (saves_.saving()) checkpoints_->poll();
  if (divergence_ && !divergence_->drifts() && intervals_.due(intervals_.compare_steps, at.step)) {
    divergence_->compare(at.step);
  }
  if (saves_.due_after_step(at.step)) {
    checkpoints_->save();
    report_->times().meter.start();
  }
  if (evaluations_->due_after_step(at)) {
    evaluate(at.epoch);
    report_->times().meter.start();
  }
}

void Trainer::act_on(const std::optional<BadUpdates>& bad) {
  FiniteCheck& check = runner_->finite_check();
  if (bad) {
    report_->not_finite(*bad);
    if (!check.skips()) checkpoints_->end_for_nan(bad->text(), bad->step, &*bad);
    if (is_leader()) {
      spdlog::warn("step {}: {}, {} so far", bad->step, bad->left_out(), check.found());
    }
  }
  const std::string why = check.stuck(job_.train.integer("max_skipped_updates"));
  if (why.empty()) return;
  checkpoints_->end_for_nan(why, runner_->position().step, bad ? &*bad : nullptr);
}

// Saves after a signal; sbatch sends one before the time limit of a job, for example.
void Trainer::save_if_asked() {
  if (!std::exchange(save_asked_, false)) return;
  runner_->executor().synchronize();
  act_on(runner_->finite_check().poll());
  checkpoints_->save();
  report_->times().meter.start();
}

// Ends training after a failure of the data; saves first, so that a later start can continue. If
// nothing was trained, saves nothing: a prediction would take these weights for the newest.
void Trainer::end_for_failure() {
  auto trained = static_cast<double>(trained_samples_);
  runner_->control().sum({&trained, 1});
  if (trained > 0 && saves_.saves()) checkpoints_->save(true);
  checkpoints_->finish(Patience::kUnlimited);
  const double failed = failure_ ? 1 : 0;
  const auto failures = runner_->control().by_rank({&failed, 1});
  if (failure_) std::rethrow_exception(failure_);
  const auto first =
      std::find_if(failures.begin(), failures.end(), [](const auto& rank) { return rank[0] != 0; });
  throw Error(ErrorCode::kPeerLost, "cannot continue",
              "rank " + std::to_string(first - failures.begin()), "see the message of that rank");
}

void Trainer::evaluate(int64_t epoch) {
  if (!data_->test() || evaluated_step_ == runner_->position().step) return;
  std::optional<TimeAccumulator::Scope> piece(std::in_place, report_->times().evaluating);
  const double begun = monotonic_seconds();
  data_->test()->start_epoch(0);
  const auto evaluation = fleet::evaluate(
      *runner_, {.next_batch = [this] { return next_batch(*data_->test()); },
                 .agree_on_step = [this](bool works) { return agree_on_step(works); },
                 .batch_done = [this] { report_->launcher().tick(); }});
  if (!evaluation) return;
  result_.evaluation = evaluation->sums;
  evaluated_step_ = runner_->position().step;
  const bool best = !evaluates_only_ && follow(evaluation->sums);
  report_->evaluated(*evaluation, epoch, monotonic_seconds() - begun);
  piece.reset();
  if (best) checkpoints_->save();  // only if this step is not saved yet
}

// Passes an evaluation to the schedule, the best checkpoint and early stopping. Returns whether it
// is the best so far.
bool Trainer::follow(const MetricSums& evaluated) {
  TrainingPosition& at = runner_->position();
  const bool counts = evaluations_->counts(at);
  if (counts && runner_->schedule().observed_step() != at.step) {
    const std::string line = runner_->observe(evaluated);
    if (!line.empty() && is_leader()) {
      report_->clear_bar();
      spdlog::info("{}", line);
    }
  }
  const auto values = evaluated.values();
  const bool best = tracker_->observe(at.step, {values.begin(), values.end()}, counts);
  if (tracker_->wanted()) at.evaluations = tracker_->record();
  if (is_leader() && tracker_->should_stop()) {
    report_->clear_bar();
    spdlog::info("training ends early: {}", tracker_->why_it_stops());
  }
  return best;
}

}  // namespace fleet
