#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/counted.h"
#include "base/log.h"
#include "comm/store_exchange.h"
#include "train/lost_steps.h"
#include "train/resume_checks.h"
#include "train/saved_batches.h"
#include "train/start_comparison.h"
#include "train/training_start.h"
#include "train/unused_options.h"

namespace fleet {
namespace {

using Patience = TrainingCheckpoints::Patience;

constexpr std::chrono::seconds kWriteBeforeMemory{2};

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
                                                           .store = options.store.get(),
                                                           .servers = options.servers});
  const bool has_test_data = data_->test() != nullptr;
  tracker_ = make_evaluation_tracker(
      job_, {.has_data = has_test_data,
             .schedule_observes = runner_->schedule().depends_on_evaluations(),
             .metrics = session().training().metrics->metrics,
             .headline = session().training().metrics->headline,
             .more_metrics = session().training().metrics->more_metrics});
  evaluations_.emplace(job_, has_test_data, data_->train().batches());
  saves_.restore_best(tracker_->record().kept);
  if (is_leader()) {
    const std::string classes = class_order_text(runner_->position().card.classes);
    if (!classes.empty()) spdlog::info("{}", classes);
    log_unused_options();
  }
  if (options.exchange) {
    memories_ = std::make_unique<TrainerMemories>(*options.store, *options.exchange, options.rank);
  }
  const bool continues = options.replacement > 0 ? take_place() : load_start();
  if (options.world > 1 && intervals_.compare_steps > 0 && !runner_->apart()) {
    divergence_ =
        std::make_unique<DivergenceCheck>(runner_->executor(), device_, runner_->control(), own);
  }
  report_ = std::make_unique<TrainingReport>(
      job_, device_, *runner_, data_->train(),
      TrainingReport::Options{
          .rank = own, .terminal_width = is_leader() ? options.terminal_width : 0, .begun = begun});
  if (lost_) report_->launcher().took_place(lost_->repeated, lost_->missing);
  report_->launcher().set_replaceable(options.replacement > 0);
  checkpoints_ = std::make_unique<TrainingCheckpoints>(
      output_ + "/checkpoints",
      TrainingCheckpoints::Parts{*runner_, saves_, *tracker_, *report_, divergence_.get()}, own,
      options.control ? options.control : options.communicator);
  if (options.replacement == 0) {
    runner_->begin();
    remember();
    report_->launcher().set_replaceable(memories_ != nullptr);
  }
  statistics_ = std::make_unique<AveragedStatistics>(
      job_, *runner_, data_->train(),
      AveragedStatistics::Callbacks{
          .next_batch = [this] { return next_batch(data_->train()); },
          .agree_on_step = [this](bool works) { return agree_on_step(works, runner_->control()); },
          .batch_done = [this] { report_->launcher().tick(); }});
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
    load_rows();
    return false;
  }
  TrainingStart start(job_, output_, data_->train().batches(), {*runner_, saves_, *tracker_}, own);
  start.load(options_.restarted && is_of_run(output_, options_.run));
  if (is_leader() && start.continues() && runner_->apart()) {
    log_lost_updates(output_, runner_->position());
  }
  if (is_leader() && start.resumed()) {
    const std::string end = reached_end(runner_->position(), intervals_, data_->train().batches());
    if (!end.empty()) {
      spdlog::info("{}", end);
    } else if (tracker_->should_stop()) {
      spdlog::info(
          "the job has already reached its end by train.early_stopping ({}): raise "
          "train.early_stopping.patience to train further",
          tracker_->why_it_stops());
    }
  }
  if (is_leader()) mark_as_of_run(output_, options_.run);
  return start.continues();
}

// Reads the rows of tables that parameter servers hold in training.
void Trainer::load_rows() {
  const Program& program = runner_->executor().program();
  if (served_tables(program).empty() || !data_->test()) return;
  std::unique_ptr<EvaluatedRows> rows;
  runner_->control().all_succeed("read the tables", [&] {
    rows = std::make_unique<EvaluatedRows>(job_, program, evaluated_weights_.source,
                                           options_.open_rows, *data_->test(), options_.stop);
    return 0.0;
  });
  for (const std::string& line : rows->missing_lines()) {
    if (is_leader()) spdlog::info("{}{}", line, options_.world > 1 ? " (rank 0's part)" : "");
  }
  runner_->set_rows(std::move(rows));
}

// In the place of a lost trainer: continues after the last step that the servers know.
bool Trainer::take_place() {
  FLEET_CHECK(memories_, "a rank that cannot be replaced");
  const TrainerMemory memory = memories_->load();
  const ParameterExchange::TakenPlace taken = runner_->take_place(memory.position, memory.shares);
  const TrainingPosition& at = runner_->position();
  evaluated_step_ = memory.evaluated;
  unfinished_step_ = at.step > memory.position.step;
  if (tracker_->wanted()) tracker_->restore(at.evaluations);
  saves_.restore_best(tracker_->record().kept);
  if (const auto newest = latest_checkpoint(output_ + "/checkpoints"); newest && is_leader()) {
    saves_.restore(step_of_checkpoint(*newest));
  }
  const int64_t batch = job_.data.integer("batch_size");
  const auto samples = [&](int64_t steps) {
    return counted(steps, "step") + " (" + counted(steps * batch, "sample") + ")";
  };
  spdlog::warn(
      "takes the place of trainer {}, which was lost: continues from step {}, epoch {}, "
      "batch {}",
      options_.rank, at.step, at.epoch, at.batch);
  const int64_t again = std::max<int64_t>(options_.replaced_step - at.step, 0);
  lost_ = LostSamples{.repeated = again * batch, .missing = taken.missing * batch};
  spdlog::warn(
      "gradients that no server has received: {}, which are trained again{}", samples(again),
      taken.missing > 0 ? "; gradients that some servers lack, lost: " + samples(taken.missing)
                        : "");
  return true;
}

// For a process that takes this rank's place.
void Trainer::remember() {
  if (!memories_ || met_at_end_) return;  // that process makes the last meeting again
  memories_->save(
      {.position = runner_->position(), .evaluated = evaluated_step_, .shares = runner_->shares()});
}

// The servers have the last step of the lost trainer, but its checkpoint may have been lost on the
// way, and it may not have met the others after it.
void Trainer::finish_step_of_lost() {
  if (options_.replacement == 0) return;
  const TrainingPosition& at = runner_->position();
  const bool unsaved = at.step > std::max<int64_t>(saves_.saved_step(), 0);
  const bool ended = at.batch == 0 && saves_.due_after_epoch(at.epoch);
  if (unsaved && (saves_.due_after_step(at.step) || ended)) checkpoints_->save();
  if (!std::exchange(unfinished_step_, false)) return;
  end_step();
  if (!move_to_next_epoch()) return;
  end_epoch();
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
    spdlog::info("learning rates x {:g}: an update takes {} samples, they are meant for {}", scale,
                 runner_->update_samples(), job_.schedule.integer("reference_batch"));
  }
  if (const int64_t end = runner_->schedule().shortened_end(); end > 0) {
    spdlog::info("learning_rate: {} ends at step {} (train.max_steps), before train.epochs",
                 job_.schedule.text("name"), end);
  }
  const JobFacts facts{.world = options_.world,
                       .evaluates = data_->test() != nullptr,
                       .steps = data_->train().batches() * intervals_.epochs,
                       .data_classes = data_->fingerprint().classes};
  for (const std::string& line : unused_options(job_, facts)) spdlog::warn("{}", line);
  for (const std::string& line : unused_table_keys(job_, runner_->executor().program())) {
    spdlog::warn("{}", line);
  }
  for (const auto& line : unused_parameter_names(job_, runner_->executor().program())) {
    spdlog::warn("{}", line);
  }
}

TrainResult Trainer::run() {
  try {
    return train();
  } catch (const NotFiniteError&) {
    report_->launcher().set_replaceable(false);  // another process would come to the same
    throw;
  } catch (const Error& error) {
    const bool of_itself = error.code() == ErrorCode::kIo || error.code() == ErrorCode::kInternal;
    if (!of_itself) report_->launcher().set_replaceable(false);
    if (error.code() != ErrorCode::kPeerLost && error.code() != ErrorCode::kTimeout) throw;
    const int stages = session().stages();  // with_stages() finds "rank N" in the texts
    throw Error(error.code(), with_stages(error.failure(), stages),
                with_stages(error.where(), stages), error.next());
  }
}

TrainResult Trainer::train() {
  const TrainingPosition& at = runner_->position();
  report_->training_begins();
  // Trainers that run apart may wait for long: where they meet, or for one that is being replaced.
  // The slowest one, if it hangs, does not wait.
  std::optional<WhileWaiting> waiting;
  if (options_.exchange) {
    const auto tick = [this] { report_->launcher().tick(); };
    waiting.emplace(*options_.exchange, tick);
    runner_->on_wait(tick);
  }
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
  if (waiting) {
    waiting.reset();
    report_->launcher().finish();
  }
  end_service();
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
  finish_step_of_lost();
  const auto finished = [&] {
    return result_.stopped_by != 0 || ends_ || tracker_->should_stop() ||
           intervals_.ends_after(at.step);
  };
  while (at.epoch < intervals_.epochs && !finished()) {
    const int64_t epoch = at.epoch;
    train_epoch();
    if (at.epoch == epoch) break;  // stopped within the epoch
    end_epoch();
  }
  runner_->executor().synchronize();
  act_on(runner_->finite_check().poll());
  if (ends_) end_for_failure();
  if (runner_->apart() && !met_stop_) meet();
  met_at_end_ = true;
  checkpoints_->finish(Patience::kUnlimited);
  if (result_.stopped_by == 0) statistics_->update();
  if (ends_) end_for_failure();
  if (saves_.due_at_end()) checkpoints_->save(true);
  if (result_.stopped_by == 0 && evaluations_->due_at_end()) {
    evaluate(EvaluationPolicy::epoch_of(at));
    if (ends_) end_for_failure();
  }
  checkpoints_->finish(Patience::kUnlimited);
  if (saves_.failed()) checkpoints_->save(true);  // retry: it costs nothing but time
}

void Trainer::train_epoch() {
  const TrainingPosition& at = runner_->position();
  data_->train().start_epoch(at.epoch, at.batch, at.step);
  report_->epoch_begins();
  for (;;) {
    trace_->step_begins(at.step);
    const bool more = !intervals_.ends_after(at.step) && !tracker_->should_stop();
    const data::Batch* batch = more ? next_batch(data_->train()) : nullptr;
    if (!batch) move_to_next_epoch();
    totals_.step_begins();
    if (!agree_on_step(batch != nullptr, runner_->step_control()) || !batch) break;
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

// False: the epoch has not ended.
bool Trainer::move_to_next_epoch() {
  TrainingPosition& at = runner_->position();
  if (at.batch < data_->train().batches()) return false;
  at.epoch += 1;
  at.batch = 0;
  return true;
}

// Does the work that is due after the epoch that ends at this position.
void Trainer::end_epoch() {
  const int64_t next = runner_->position().epoch;
  if (evaluations_->due_after_epoch(next)) statistics_->update();
  if (saves_.due_after_epoch(next)) checkpoints_->save();
  if (evaluations_->due_after_epoch(next)) evaluate(next - 1);
}

// False: a signal has stopped one of the trainers, so all of them end. If a trainer is lost and
// nothing takes its place, the first one saves all the same.
bool Trainer::meet() {
  if (options_.stop && result_.stopped_by == 0) result_.stopped_by = options_.stop->load();
  try {
    result_.stopped_by = runner_->meet(result_.stopped_by);
  } catch (const Error&) {
    if (saves_.due_at_end()) checkpoints_->save(true);
    throw;
  }
  met_stop_ = result_.stopped_by != 0;
  return !met_stop_;
}

bool Trainer::agree_on_step(bool works, RankCoordinator& control) {
  RankCoordinator::Request own{.stop = options_.stop ? options_.stop->load() : 0,
                               .end = failure_ != nullptr,
                               .trace = trace_ && trace_->announce()};
  const int signals = options_.saves ? options_.saves->load() : 0;
  own.save = checkpoint_requests_.is_new(signals, monotonic_seconds());
  const RankCoordinator::Request all =
      control.agree_on_step({.step = runner_->position().step, .works = works}, own);
  runner_->executor().pause_recording(all.trace);  // at the same step on all ranks
  save_asked_ |= checkpoint_requests_.agree(all.save, monotonic_seconds());
  if (result_.stopped_by == 0) result_.stopped_by = all.stop;
  ends_ = all.end;
  const bool others_stop = met_stop_ && result_.stopped_by != 0;
  return all.stop == 0 && !ends_ && !others_stop;
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
  end_step();
}

// Does the work that is due after the step that ends at this position.
void Trainer::end_step() {
  const TrainingPosition& at = runner_->position();
  if (evaluations_->due_after_step(at)) statistics_->update();
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
  RankCoordinator& control = runner_->step_control();
  auto trained = static_cast<double>(trained_samples_);
  control.sum({&trained, 1});
  if (trained > 0 && saves_.saves()) checkpoints_->save(true);
  checkpoints_->finish(Patience::kUnlimited);
  const double failed = failure_ ? 1 : 0;
  const auto failures = control.by_rank({&failed, 1});
  if (runner_->apart()) end_service();  // the servers still serve the other trainers
  if (failure_) std::rethrow_exception(failure_);
  const auto first =
      std::find_if(failures.begin(), failures.end(), [](const auto& rank) { return rank[0] != 0; });
  const bool known = first != failures.end();
  throw Error(ErrorCode::kPeerLost, "cannot continue",
              known ? "rank " + std::to_string(first - failures.begin()) : "another trainer",
              "see the message of that rank");
}

void Trainer::evaluate(int64_t epoch) {
  if (!data_->test() || evaluated_step_ >= runner_->position().step) return;
  if (runner_->apart() && (met_stop_ || !meet())) return;
  std::optional<TimeAccumulator::Scope> piece(std::in_place, report_->times().evaluating);
  const double begun = monotonic_seconds();
  statistics_->update();
  data_->test()->start_epoch(0);
  const bool apart = runner_->apart();
  bool interrupted = false;  // on this rank; those that run apart learn it at the end
  const auto next = [&]() -> const data::Batch* {
    interrupted |= apart && options_.stop && options_.stop->load() != 0;
    if (interrupted) return nullptr;
    const data::Batch* batch = next_batch(*data_->test());
    interrupted |= apart && failure_;
    return interrupted ? nullptr : batch;
  };
  const auto evaluation = fleet::evaluate(
      *runner_, {.next_batch = next,
                 .source = &data_->test()->source(),
                 .agree_on_step =
                     [&](bool works) { return apart || agree_on_step(works, runner_->control()); },
                 .batch_done = [this] { report_->launcher().tick(); }});
  if (!evaluation || (apart && gave_up(interrupted))) return void(met_stop_ = true);
  result_.evaluation = evaluation->sums;
  evaluated_step_ = runner_->position().step;
  const bool best = !evaluates_only_ && follow(evaluation->sums);
  report_->evaluated(*evaluation, epoch, monotonic_seconds() - begun, &data_->test()->source());
  // A process that takes this place does not evaluate again, so the lines are written first, unless
  // the disk does not answer.
  if (memories_) report_->files().wait_for(kWriteBeforeMemory);
  remember();
  piece.reset();
  if (best) checkpoints_->save();  // only if this step is not saved yet
}

// Whether a trainer has interrupted an evaluation of trainers that run apart.
bool Trainer::gave_up(bool own) {
  const double stop = own && options_.stop ? options_.stop->load() : 0;
  const std::array values = {own ? 1.0 : 0.0, stop};
  bool any = false;
  for (const auto& rank : runner_->control().by_rank(values)) {
    any |= rank[0] != 0;
    if (result_.stopped_by == 0) result_.stopped_by = static_cast<int>(rank[1]);
  }
  return any;
}

// After this, no process can take this rank's place: the servers no longer wait for it.
void Trainer::end_service() {
  report_->launcher().set_replaceable(false);
  runner_->finish();
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
