#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "comm/peer_wait_timer.h"
#include "tensor/host.h"
#include "train/damaged_samples.h"
#include "train/format_printf.h"
#include "train/stage_names.h"

namespace fleet {
namespace {

// The time in which this thread waited for other ranks, or for its own collectives.
int64_t collective_wait_ns() { return host_wait_ns() + PeerWaitTimer::on_this_thread_ns(); }

}  // namespace

TrainResult Trainer::evaluate_only() {
  started_ = monotonic_seconds();
  evaluate(position_.batch > 0 ? position_.epoch : std::max<int64_t>(position_.epoch - 1, 0));
  return finish();
}

TrainResult Trainer::run() {
  try {
    return train();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPeerLost && error.code() != ErrorCode::kTimeout) throw;
    const int stages = session().stages();
    throw Error(error.code(), with_stages(error.failure(), stages),
                with_stages(error.where(), stages), error.next());
  }
}

TrainResult Trainer::train() {
  if (evaluates_only()) return evaluate_only();
  const auto finished = [&] {
    return result_.stopped_by != 0 || ends_ || tracker_->should_stop() ||
           intervals_.ends_after(position_.step);
  };
  started_ = monotonic_seconds();
  published_.planned(steps_to_train(), data_->train().stats().threads);
  trace_ = std::make_unique<StepTrace>(published_, runner_->executor(), options_.rank);
  evaluate_if_missed();
  while (position_.epoch < intervals_.epochs && !finished()) {
    const int64_t epoch = position_.epoch;
    train_epoch(epoch);
    if (position_.epoch == epoch) break;  // stopped within the epoch
    if (intervals_.due(intervals_.save_epochs, position_.epoch)) save();
    if (intervals_.due(intervals_.evaluate_epochs, position_.epoch)) evaluate(epoch);
  }
  runner_->executor().synchronize();
  if (const auto bad = check_for_nan()) act_on(*bad);
  if (ends_) end_for_failure();
  save_at_end();
  if (result_.stopped_by == 0 && intervals_.evaluate_epochs > 0) {
    evaluate(position_.batch > 0 ? position_.epoch
                                 : position_.epoch - 1);  // the last trained epoch
    if (ends_) end_for_failure();
  }
  finish_save(Patience::kUnlimited);
  if (save_failed_) save(true);  // retry: it costs nothing but time
  return finish();
}

TrainResult Trainer::finish() {
  if (trace_) trace_->finish();
  published_.finish();
  result_.evaluated = evaluated_step_ == position_.step;
  result_.damaged = count_damaged(data_->train(), runner_->control());
  result_.steps = position_.step;
  result_.stopped_early = tracker_->should_stop();
  summarize();
  if (!unsaved_.empty()) end_for_nan("'" + unsaved_ + "' is not finite", position_.step);
  if (!save_failure_.empty()) {
    throw Error(ErrorCode::kIo, "the last checkpoint could not be saved: " + save_failure_,
                "step " + std::to_string(position_.step), newest_checkpoint());
  }
  return result_;
}

void Trainer::train_epoch(int64_t epoch) {
  data_->train().start_epoch(epoch, position_.batch);
  progress_->start(format_printf("Epoch %lld (of %lld)", static_cast<long long>(epoch),
                                 static_cast<long long>(intervals_.epochs)),
                   data_->train().batches(), position_.batch);
  meter_.start();
  for (;;) {
    trace_->step_begins(position_.step);
    const bool more = !intervals_.ends_after(position_.step) && !tracker_->should_stop();
    const data::Batch* batch = more ? next_batch(data_->train()) : nullptr;
    if (!batch && position_.batch == data_->train().batches()) {
      position_.epoch += 1;
      position_.batch = 0;
    }
    host_waits_ = collective_wait_ns();
    if (!agree_on_step(batch != nullptr) || !batch) break;
    save_if_asked();
    try {
      train_step(*batch);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kPeerLost) runner_->control().explain_lost_peer();
      throw;
    }
  }
  progress_->finish();
}

bool Trainer::agree_on_step(bool works) {
  RankCoordinator::Request own{.stop = options_.stop ? options_.stop->load() : 0,
                               .end = failure_ != nullptr,
                               .trace = trace_ && trace_->announce()};
  const int signals = options_.saves ? options_.saves->load() : 0;
  own.save = checkpoint_requests_.is_new(signals, monotonic_seconds());
  const RankCoordinator::Request all =
      runner_->control().agree_on_step({.step = position_.step, .works = works}, own);
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
  meter_.data_ready();
  const int64_t step = position_.step;
  const float rate = static_cast<float>(schedule_->learning_rate(step));
  const bool fetch = intervals_.due(intervals_.fetch_steps, step + 1);
  show_batch(batch, step);
  runner_->train(batch, {.step = step, .fetch = fetch}, rate);
  // If the host runs ahead, steps end later than they are issued: the sums are right wherever the
  // host waits.
  const bool waits = fetch || batch.index + 1 == data_->train().batches() ||
                     should_save(step + 1) || intervals_.ends_after(step + 1);
  if (waits) runner_->executor().synchronize();
  const std::optional<BadUpdates> bad = waits ? check_for_nan() : std::nullopt;
  trained_samples_ += batch.real;
  meter_.step_done(static_cast<double>(batch.real));  // padding does not count as work
  position_.step += 1;
  position_.batch = batch.index + 1;
  if (fetch) report(batch, step, rate);
  publish_step(batch);
  if (bad) act_on(*bad);
  progress_->update(position_.batch, format_printf("speed %.1f", meter_.speed()));
  after_step();
}

// The step at which training ends, unless it ends early.
int64_t Trainer::steps_to_train() {
  const data::InputPipeline& train = data_->train();
  const int64_t epochs = std::max<int64_t>(intervals_.epochs - position_.epoch, 0);
  const int64_t left = std::max<int64_t>(epochs * train.batches() - position_.batch, 0);
  const int64_t all = position_.step + left;
  return intervals_.max_steps > 0 ? std::min(all, intervals_.max_steps) : all;
}

void Trainer::publish_step(const data::Batch& batch) {
  constexpr double kNs = 1e9;
  totals_.waited = PeerWaitTimer::total_ns();
  totals_.samples = std::llround(meter_.samples());
  totals_.time = std::llround(kNs * meter_.batch_time().total());
  totals_.input += std::llround(kNs * batch.data_time);
  const data::ReaderWork work = data_->train().work();
  totals_.making = work.making_ns;
  totals_.reading = work.reading_ns;
  // A device other than the host waits for collectives itself.
  const int64_t waited = collective_wait_ns() - host_waits_;
  if (!device_.runs_beside_host()) {
    totals_.exposed = std::max<int64_t>(totals_.exposed, 0) + waited;
    recent_waits_[static_cast<size_t>(position_.step) % recent_waits_.size()] = waited;
    totals_.exchange += *std::ranges::min_element(recent_waits_);
  }
  published_.step_done(position_.step, position_.epoch, totals_);
}

bool Trainer::should_compare(int64_t steps) const {
  return divergence_ && !divergence_->drifts() && intervals_.due(intervals_.compare_steps, steps);
}

bool Trainer::should_save(int64_t steps) const {
  return intervals_.due(intervals_.save_steps, steps);
}

// False if the end of the epoch follows, which has its own evaluation.
bool Trainer::should_evaluate(int64_t steps) const {
  if (!intervals_.due(intervals_.evaluate_steps, steps) || !data_->test()) return false;
  const bool ends = position_.batch == data_->train().batches();
  return !ends || !intervals_.due(intervals_.evaluate_epochs, position_.epoch + 1);
}

void Trainer::after_step() {
  log_writer();
  if (saving_) poll_save();
  if (should_compare(position_.step)) divergence_->compare(position_.step);
  if (should_save(position_.step)) {
    save();
    meter_.start();
  }
  if (should_evaluate(position_.step)) {
    evaluate(position_.epoch);
    meter_.start();
  }
}

std::optional<BadUpdates> Trainer::check_for_nan() {
  const std::optional<BadUpdates> bad = runner_->finite_check().poll();
  if (bad) result_.skipped += bad->count;
  return bad;
}

void Trainer::act_on(const BadUpdates& bad) {
  progress_->finish();  // do not write the log into the bar
  if (events_) {
    EventLine line("not_finite");
    line.add("step", bad.step).add("what", bad.what).add("updates", bad.count);
    if (bad.rank >= 0) line.add("rank", bad.rank);
    write_event(line);
  }
  if (!skips()) end_for_nan(bad.text(), bad.step);
  if (is_leader()) {
    spdlog::warn("step {}: {}, {} so far", bad.step, bad.left_out(), result_.skipped);
  }
}

void Trainer::end_for_nan(const std::string& what, int64_t step) {
  finish_save(Patience::kLimited);  // so that all ranks name the same checkpoint
  throw NotFiniteError(what, "step " + std::to_string(step),
                       "lower learning_rate.base, or look at the data; " + newest_checkpoint());
}

void Trainer::evaluate(int64_t epoch) {
  if (!data_->test() || evaluated_step_ == position_.step) return;
  std::optional<TimeAccumulator::Scope> piece(std::in_place, evaluating_);
  const double begun = monotonic_seconds();
  const EvaluationOptions options{
      .step = position_.step,
      .by_class = job_.train.boolean("evaluate_classes"),
      .next_batch = [this] { return next_batch(*data_->test()); },
      .agree_on_step = [this](bool works) { return agree_on_step(works); },
      .batch_done = [this] { published_.tick(); }};
  const auto evaluation = fleet::evaluate(*data_->test(), *runner_, options);
  if (!evaluation) return;
  result_.evaluation = evaluation->sums;
  evaluated_step_ = position_.step;
  const bool best = follow_evaluation();
  if (is_leader()) report_evaluation(*evaluation, epoch, monotonic_seconds() - begun);
  piece.reset();
  if (best && !evaluates_only()) save();  // saves only if this step is not saved yet
}

EvaluatedMetrics Trainer::evaluated_metrics() const {
  const MetricSums& sums = result_.evaluation;
  return {{"loss", sums.mean_loss()},
          {"acc1", sums.acc1()},
          {"acc" + std::to_string(session().training().top_k), sums.acck()}};
}

// Schedules and early stopping count only evaluations that an uninterrupted run makes too: those at
// the ends of epochs, or every so many steps if there are no others. Returns whether this one is
// the best so far.
bool Trainer::follow_evaluation() {
  const bool counts =
      intervals_.evaluate_epochs > 0
          ? position_.batch == 0 && intervals_.due(intervals_.evaluate_epochs, position_.epoch)
          : intervals_.due(intervals_.evaluate_steps, position_.step);
  if (counts && schedule_->observed_step() != position_.step) follow_schedule();
  const bool best = tracker_->observe(position_.step, evaluated_metrics(), counts);
  if (tracker_->wanted()) position_.evaluations = tracker_->record();
  if (is_leader() && tracker_->should_stop()) {
    progress_->finish();  // do not write the log into the bar
    spdlog::info("training ends early: {}", tracker_->why_it_stops());
  }
  return best;
}

void Trainer::follow_schedule() {
  const EvaluationResult evaluated{result_.evaluation.mean_loss(), result_.evaluation.acc1()};
  const std::string line = schedule_->observe(position_.step, evaluated);
  position_.schedule = schedule_->state();
  if (line.empty() || !is_leader()) return;
  progress_->finish();
  spdlog::info("{}", line);
}

// A checkpoint is older than the evaluation after the same step, which schedule, best checkpoint
// and early stopping need.
void Trainer::evaluate_if_missed() {
  const bool by_schedule =
      schedule_->depends_on_evaluations() && schedule_->observed_step() != position_.step;
  const bool by_watch = tracker_->wanted() && tracker_->record().observed_step != position_.step;
  if ((!by_schedule && !by_watch) || position_.step == 0) return;
  if (position_.batch == 0 && intervals_.due(intervals_.evaluate_epochs, position_.epoch)) {
    return evaluate(position_.epoch - 1);
  }
  if (by_watch && should_evaluate(position_.step)) evaluate(position_.epoch);
}

}  // namespace fleet
