// Trainer's steps and epochs, and its end.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "comm/store_exchange.h"
#include "train/trainer.h"

namespace fleet {

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
  checkpoints_->finish(TrainingCheckpoints::Patience::kUnlimited);
  if (result_.stopped_by == 0) statistics_->update();
  if (ends_) end_for_failure();
  if (saves_.due_at_end()) checkpoints_->save(true);
  if (result_.stopped_by == 0 && evaluations_->due_at_end()) {
    evaluate(EvaluationPolicy::epoch_of(at));
    if (ends_) end_for_failure();
  }
  checkpoints_->finish(TrainingCheckpoints::Patience::kUnlimited);
  if (saves_.failed()) checkpoints_->save(true);  // retry: it costs nothing but time
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
  checkpoints_->finish(TrainingCheckpoints::Patience::kUnlimited);
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

// After this, no process can take this rank's place: the servers no longer wait for it.
void Trainer::end_service() {
  report_->launcher().set_replaceable(false);
  runner_->finish();
}

}  // namespace fleet
