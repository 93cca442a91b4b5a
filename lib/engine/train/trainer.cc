// The work before the first step: data, session, weights, and the place of a lost trainer.
#include "train/trainer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/counted.h"
#include "base/log.h"
#include "train/lost_steps.h"
#include "train/resume_checks.h"
#include "train/saved_batches.h"
#include "train/start_comparison.h"
#include "train/training_start.h"
#include "train/unused_options.h"

namespace fleet {

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

}  // namespace fleet
