#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/text.h"
#include "comm/peer_wait.h"
#include "train/damaged_samples.h"
#include "train/device_settings.h"
#include "train/initial_weights.h"
#include "train/safetensors.h"
#include "train/same_start.h"
#include "train/unused_options.h"

namespace fleet {
namespace {

std::string format(const char* pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace

// Why a checkpoint was not saved, where that is of the disk or of another rank's; else rethrows.
static std::string saving_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo && error.code() != ErrorCode::kPeerLost) throw;
    return error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    return error.what();
  }
}

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
                "choose a folder that all nodes share, or copy the checkpoint to each node");
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
  position_ = {.seed = seed,
               .global_batch = data_->train().batch_size() * part_.parts,
               .model = job_.model_name};
  schedule_ = std::make_unique<Schedule>(job_.schedule, data_->train().batches(),
                                         job_.train.integer("epochs"), position_.global_batch);
  check_evaluates();
  if (schedule_->follows_evaluations() &&
      (!data_->test() || job_.train.integer("evaluate_every") == 0)) {
    throw Error(ErrorCode::kUsage, "the schedule follows evaluations, and there are none",
                "learning_rate.name " + job_.schedule.text("name"),
                "name test data (data.test) and set train.evaluate_every to 1 or more");
  }
  const bool evaluates = data_->test() && (job_.train.integer("evaluate_every") > 0 ||
                                           job_.train.integer("evaluate_every_steps") > 0);
  std::vector<std::string> metrics;
  for (const auto& [name, value] : evaluated_metrics()) {
    if (evaluates) metrics.push_back(name);
  }
  watch_ = std::make_unique<EvaluationWatch>(job_, metrics);
  if (leads() && schedule_->scale() != 1) {
    spdlog::info("learning rates x {:g}: the global batch is {}, they are made for {}",
                 schedule_->scale(), position_.global_batch,
                 job_.schedule.integer("reference_batch"));
  }
  if (leads()) say_unused();
  load();
  const JobRank own{options.rank, options.world};
  std::unique_ptr<Control> of_saver;  // whose thread has turns of its own
  if (!rank_states(runner_->executor().program()).empty()) {
    of_saver = std::make_unique<Control>(options.control ? options.control : options.communicator);
  }
  saver_ = std::make_unique<CheckpointSaver>(checkpoints(), runner_->executor(), own,
                                             std::move(of_saver));
  runner_->begin(position_.step);
  if (options.world > 1 && job_.train.integer("compare_ranks_every") > 0) {
    divergence_ =
        std::make_unique<DivergenceCheck>(runner_->executor(), device_, runner_->control(), own);
  }
  if (leads()) open_metrics();
  progress_ = std::make_unique<Progress>(Progress::Options{
      .width = leads() ? options.terminal_width : 0, .plain_seconds = 0, .write = {}});
}

Trainer::~Trainer() = default;

// Before hours of training end in a folder that cannot be written.
void Trainer::open_folder() {
  output_ = job_.train.text("output");
  if (leads()) {
    const std::string name = job_.train.text("name");
    run_folder_ = std::make_unique<RunFolder>(
        RunFolderOptions{.output = output_,
                         .name = name.empty() ? job_.model_name : name,
                         .resumes = job_.checkpoint.text("resume") == "auto",
                         .run = options_.run,
                         .restarted = options_.restarted});
    output_ = run_folder_->path();
    spdlog::info("output folder: {}", output_);
    if (options_.world > 1) options_.store->set("run_folder", output_);
  } else if (output_.empty()) {
    output_ = options_.store->get("run_folder", timeout_of(job_));
  }
}

void Trainer::open_metrics() {
  run_folder_->begin();
  const std::string path = output_ + "/metrics.jsonl";
  const auto aside = goes_on_ || evaluates_only() ? std::nullopt : set_aside(path);
  if (aside) spdlog::info("metrics of an earlier run are now in {}", *aside);
  events_ = std::make_unique<EventFile>(path);
  write_event(EventLine("start")
                  .add("model", job_.model_name)
                  .add("ranks", options_.world)
                  .add("device", device_.name())
                  .add("precision", name_of(session().precision()))
                  .add("global_batch", position_.global_batch)
                  .add("seed", job_.train.integer("seed"))
                  .add("step", position_.step));
}

// Nothing that users give goes unused in silence.
void Trainer::say_unused() {
  const JobFacts facts{.world = options_.world,
                       .evaluates = data_->test() != nullptr,
                       .steps = data_->train().batches() * job_.train.integer("epochs"),
                       .data_classes = data_->fingerprint().classes};
  for (const std::string& line : unused_options(job_, facts)) spdlog::warn("{}", line);
  for (const auto& line : unused_parameter_names(job_, runner_->executor().program())) {
    spdlog::warn("{}", line);
  }
}

// A run that was restarted, and had come as far as to call the output folder its own, goes on from
// the checkpoints there, whatever checkpoint.resume says. All ranks agree on it, and none writes
// before all have looked.
void Trainer::load() {
  const std::string weights = job_.checkpoint.text("weights");
  if (!weights.empty()) {
    const WeightsOptions options{.skip = job_.checkpoint.texts("weights_skip")};
    for (const auto& line : load_weights(weights, options, runner_->executor())) {
      if (leads()) spdlog::info("{}: {}", weights, line);
    }
  }
  double own = options_.restarted && is_of_run(output_, options_.run) ? 1 : 0;
  runner_->control().sum({&own, 1});
  goes_on_ = own == options_.world;
  const std::vector<double> steps = resume_on_all_ranks(goes_on_);
  if (leads() && !weights.empty() && saved_step_ >= 0) {
    spdlog::warn("checkpoint.weights has no effect: the job goes on from a checkpoint");
  }
  check_same_start(steps);
  if (evaluates_only() && weights.empty() && saved_step_ < 0) {
    throw Error(ErrorCode::kUsage, "there is nothing to evaluate", "train.evaluate_only",
                "set checkpoint.weights to a file, or checkpoint.resume to a checkpoint's folder");
  }
  const bool saves = job_.checkpoint.boolean("at_end") ||
                     job_.checkpoint.integer("every_steps") > 0 ||
                     job_.checkpoint.integer("every_epochs") > 0 || watch_->keeps_best();
  if (saves && !rank_states(runner_->executor().program()).empty()) {
    check_folder_is_shared(output_, {options_.rank, options_.world}, runner_->control());
  }
  if (leads()) mark_as_of_run(output_, options_.run);
}

// The step of the checkpoint that each rank loaded; -1: none. With "auto" a damaged one is passed
// over, by all ranks together.
std::vector<double> Trainer::resume_on_all_ranks(bool goes_on) {
  const std::string wanted = goes_on ? "auto" : job_.checkpoint.text("resume");
  const std::string root = checkpoints();
  for (int64_t below = kForever;;) {
    const auto folder = wanted == "auto" ? latest_checkpoint(root, below) : std::nullopt;
    std::string damage;
    const std::vector<double> steps = runner_->control().all_succeed("load the checkpoint", [&] {
      if (below != kForever && !folder) {
        throw Error(ErrorCode::kUsage, "every checkpoint is damaged", root,
                    "repair one, or set checkpoint.resume to \"no\" to start anew");
      }
      try {
        if (wanted != "auto" || folder) resume(folder.value_or(wanted));
        return static_cast<double>(saved_step_);
      } catch (const DamagedFile& error) {
        if (wanted != "auto") throw;
        damage = error.where() + ": " + error.failure();
        return -2.0 - static_cast<double>(step_of_checkpoint(*folder));
      }
    });
    const auto damaged =
        std::find_if(steps.begin(), steps.end(), [](double step) { return step < -1; });
    if (damaged == steps.end()) return steps;
    if (damaged - steps.begin() == options_.rank) {  // one line of what all may see
      spdlog::warn("{}: the checkpoint before it is taken", damage);
    }
    below = static_cast<int64_t>(-2 - *damaged);
  }
}

void Trainer::set_aside_other_checkpoints() {
  if (!leads()) return;
  const auto aside = set_checkpoints_aside(checkpoints());
  if (aside) spdlog::info("checkpoints of an earlier run are now in {}", *aside);
}

void Trainer::resume(const std::string& folder) {
  if (folder == "no") {
    if (!evaluates_only()) set_aside_other_checkpoints();
    return;
  }
  std::string note;
  const TrainingPosition saved = load_checkpoint(folder, job_.model_name, runner_->executor(),
                                                 &note, {options_.rank, options_.world});
  if (!evaluates_only()) check_goes_on(saved, folder);
  schedule_->restore(saved.schedule);
  watch_->restore(saved.evaluations);
  position_ = saved;
  saved_step_ = kept_step_ = saved.step;
  namespace fs = std::filesystem;
  std::error_code error;
  const bool own =
      fs::equivalent(fs::path(folder + "/..").lexically_normal(), checkpoints(), error);
  if (!own && !evaluates_only()) {
    set_aside_other_checkpoints();
    watch_->take_back({.metric = watch_->record().kept.metric});  // it is not here
  }
  position_.evaluations = watch_->record();
  goes_on_ |= own;
  if (leads()) {
    spdlog::info("resumed from {}: step {}, epoch {}, batch {}", folder, saved.step, saved.epoch,
                 saved.batch);
    if (!note.empty()) spdlog::info("{}", note);
  }
}

void Trainer::check_goes_on(const TrainingPosition& saved, const std::string& folder) const {
  if (saved.global_batch != position_.global_batch) {
    throw Error(ErrorCode::kUsage,
                "was trained with a global batch of " + std::to_string(saved.global_batch) +
                    ", this job's is " + std::to_string(position_.global_batch),
                folder, "set data.batch_size so that data.batch_size x ranks is the same");
  }
  if (saved.seed != position_.seed) {
    throw Error(ErrorCode::kUsage, "was trained with train.seed " + std::to_string(saved.seed),
                folder,
                "set the same train.seed, or checkpoint.weights to start anew from its weights");
  }
  if (saved.batch > data_->train().batches()) {
    throw Error(ErrorCode::kUsage,
                "stands at batch " + std::to_string(saved.batch) + " of an epoch, the data has " +
                    std::to_string(data_->train().batches()),
                folder, "resume with the data it was trained with");
  }
}

void Trainer::check_evaluates() const {
  if (!evaluates_only() || data_->test()) return;
  throw Error(ErrorCode::kUsage, "there are no test data", "train.evaluate_only",
              "name them in data.test");
}

TrainResult Trainer::evaluate_only() {
  evaluate(position_.batch > 0 ? position_.epoch : std::max<int64_t>(position_.epoch - 1, 0));
  return finish();
}

TrainResult Trainer::run() {
  if (evaluates_only()) return evaluate_only();
  const int64_t epochs = job_.train.integer("epochs");
  const int64_t max_steps = job_.train.integer("max_steps");
  const auto finished = [&] {
    return result_.stopped_by != 0 || ends_ || watch_->stops() ||
           (max_steps > 0 && position_.step >= max_steps);
  };
  evaluate_what_was_missed();
  while (position_.epoch < epochs && !finished()) {
    const int64_t epoch = position_.epoch;
    train_epoch(epoch);
    if (position_.epoch == epoch) break;  // stopped within it
    const int64_t save_every = job_.checkpoint.integer("every_epochs");
    if (save_every > 0 && position_.epoch % save_every == 0) save();
    const int64_t every = job_.train.integer("evaluate_every");
    if (every > 0 && position_.epoch % every == 0) evaluate(epoch);
  }
  runner_->executor().synchronize();
  if (const auto bad = look_for_nan()) act_on(*bad);
  if (ends_) end_for_failure();
  save_at_end();
  if (result_.stopped_by == 0 && job_.train.integer("evaluate_every") > 0) {
    evaluate(position_.batch > 0 ? position_.epoch : position_.epoch - 1);  // the last trained in
    if (ends_) end_for_failure();
  }
  settle_save();
  if (save_failed_) save(true);  // once more: nothing but time is lost
  return finish();
}

TrainResult Trainer::finish() {
  published_.finish();
  result_.evaluated = evaluated_step_ == position_.step;
  result_.damaged = count_damaged(data_->train(), runner_->control());
  result_.steps = position_.step;
  result_.stopped_early = watch_->stops();
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
  progress_->start(format("Epoch %lld/%lld", static_cast<long long>(epoch + 1),
                          static_cast<long long>(job_.train.integer("epochs"))),
                   data_->train().batches(), position_.batch);
  const int64_t max_steps = job_.train.integer("max_steps");
  meter_.start();
  for (;;) {
    const bool more = max_steps == 0 || position_.step < max_steps;
    const data::Batch* batch = more ? next_batch(data_->train()) : nullptr;
    if (more && !batch) {
      position_.epoch += 1;
      position_.batch = 0;
    }
    if (!next_turn(batch != nullptr) || !batch) break;
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

bool Trainer::next_turn(bool works) {
  Control::Request own{.stop = options_.stop ? options_.stop->load() : 0,
                       .end = failure_ != nullptr};
  const int saves = options_.saves ? options_.saves->load() : 0;
  own.save = std::exchange(saves_asked_, saves) != saves;
  const Control::Request all =
      runner_->control().next_turn({.step = position_.step, .works = works}, own);
  save_asked_ |= all.save;
  if (result_.stopped_by == 0) result_.stopped_by = all.stop;
  ends_ = all.end;
  return all.stop == 0 && !ends_;
}

// Null at the end of the epoch. A rank without a batch takes part in one more step, because the
// others may have begun it: they do not wait for each other to know.
const data::Batch* Trainer::next_batch(data::InputPipeline& from) {
  try {
    const data::Batch* batch = from.next(options_.stop);
    if (batch || from.at_end()) return batch;
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  return from.stand_in();
}

// Hours of training are not lost to what another start may read.
void Trainer::end_for_failure() {
  if (job_.checkpoint.boolean("at_end") || job_.checkpoint.integer("every_steps") > 0 ||
      job_.checkpoint.integer("every_epochs") > 0) {
    save(true);
  }
  settle_save();
  const double failed = failure_ ? 1 : 0;
  const auto failures = runner_->control().by_rank({&failed, 1});
  if (failure_) std::rethrow_exception(failure_);
  const auto first =
      std::find_if(failures.begin(), failures.end(), [](const auto& rank) { return rank[0] != 0; });
  throw Error(ErrorCode::kPeerLost, "cannot go on",
              "rank " + std::to_string(first - failures.begin()), "its own message says why");
}

// A signal came: sbatch sends one before the time of a job is over, for example.
void Trainer::save_if_asked() {
  if (!std::exchange(save_asked_, false)) return;
  runner_->executor().synchronize();
  if (const auto bad = look_for_nan()) act_on(*bad);
  save();
  meter_.start();
}

void Trainer::train_step(const data::Batch& batch) {
  meter_.data_ready();
  const int64_t step = position_.step;
  const float rate = static_cast<float>(schedule_->learning_rate(step));
  const bool fetch = (step + 1) % job_.train.integer("fetch_every") == 0;
  runner_->train(batch, {.step = step, .fetch = fetch}, rate);
  // Where the host runs ahead, steps are done later than they were issued: the sums are right
  // wherever it waits.
  const bool waits = fetch || batch.index + 1 == data_->train().batches() ||
                     saves_after(step + 1) || step + 1 == job_.train.integer("max_steps");
  if (waits) runner_->executor().synchronize();
  const std::optional<BadUpdates> bad = waits ? look_for_nan() : std::nullopt;
  meter_.step_done(static_cast<double>(batch.real));  // padding is no work that was wanted
  position_.step += 1;
  position_.batch = batch.index + 1;
  published_.step_done(position_.step, position_.epoch, PeerWait::total_ns());
  if (fetch) report(batch, step, rate);
  if (bad) act_on(*bad);
  progress_->update(position_.batch, format("speed %.1f", meter_.speed()));
  after_step();
}

bool Trainer::compares_after(int64_t steps) const {
  return divergence_ && !divergence_->drifts() &&
         steps % job_.train.integer("compare_ranks_every") == 0;
}

bool Trainer::saves_after(int64_t steps) const {
  const int64_t every = job_.checkpoint.integer("every_steps");
  return every > 0 && steps % every == 0;
}

// Not where the end of the epoch follows with an evaluation of its own.
bool Trainer::evaluates_after(int64_t steps) const {
  const int64_t every = job_.train.integer("evaluate_every_steps");
  if (every == 0 || steps % every != 0 || !data_->test()) return false;
  const int64_t epochs = job_.train.integer("evaluate_every");
  const bool ends = position_.batch == data_->train().batches();
  return !ends || epochs == 0 || (position_.epoch + 1) % epochs != 0;
}

void Trainer::after_step() {
  if (saving_) look_for_saved(false);
  if (compares_after(position_.step)) divergence_->compare(position_.step);
  if (saves_after(position_.step)) {
    save();
    meter_.start();
  }
  if (evaluates_after(position_.step)) {
    evaluate(position_.epoch);
    meter_.start();
  }
}

void Trainer::report(const data::Batch& batch, int64_t step, double rate) {
  const MetricSums sums = sum_over_ranks(session().read_metrics(false), runner_->control());
  if (!std::isfinite(sums.mean_loss()) && !warned_of_nan_ && !runner_->finite_watch().looks()) {
    warned_of_nan_ = true;
    spdlog::warn("the loss of step {} is {}: lower learning_rate.base, or look at the data", step,
                 sums.mean_loss());
  }
  progress_->print(format("worker_index: %d, step%lld cost = %f, speed: %f", options_.rank,
                          static_cast<long long>(step), sums.mean_loss(), meter_.speed()));
  progress_->print(format("[Epoch %lld, batch %lld] loss: %.5f, acc1: %.5f, acc%lld: %.5f",
                          static_cast<long long>(batch.epoch), static_cast<long long>(batch.index),
                          sums.mean_loss(), sums.acc1(),
                          static_cast<long long>(session().training().top_k), sums.acck()));
  const std::optional<double> scaling = session().read_loss_scaling();
  if (scaling && loss_scaling_ && *scaling < *loss_scaling_ && leads()) {
    spdlog::info("gradients overflowed: the loss is scaled by {} now", *scaling);
  }
  loss_scaling_ = scaling;
  if (!events_) return;
  EventLine line("train");
  line.add("step", step)
      .add("epoch", batch.epoch)
      .add("batch", batch.index)
      .add("loss", sums.mean_loss())
      .add("acc1", sums.acc1())
      .add("acc" + std::to_string(session().training().top_k), sums.acck())
      .add("learning_rate", rate)
      .add("data_time", meter_.data_time().mean())
      .add("batch_time", meter_.batch_time().mean())
      .add("speed", meter_.speed())
      .add("peak_host_memory", process_memory().peak);
  const data::PipelineStats reader = data_->train().stats();
  line.add("reader_queue", reader.queued).add("reader_queue_capacity", reader.capacity);
  if (scaling) line.add("loss_scaling", *scaling);
  if (skips()) line.add("skipped_updates", result_.skipped);
  runner_->traffic().add_to(&line);
  for (const auto& [key, value] : session().strategy_measures()) line.add(key, value);
  add_telemetry(&line);
  write_event(line);
}

std::optional<BadUpdates> Trainer::look_for_nan() {
  const std::optional<BadUpdates> bad = runner_->finite_watch().look();
  if (bad) result_.skipped += bad->count;
  return bad;
}

void Trainer::act_on(const BadUpdates& bad) {
  progress_->finish();  // the log must not be written into the bar
  if (events_) {
    EventLine line("not_finite");
    line.add("step", bad.step).add("what", bad.what).add("updates", bad.count);
    if (bad.rank >= 0) line.add("rank", bad.rank);
    write_event(line);
  }
  if (!skips()) end_for_nan(bad.text(), bad.step);
  if (leads()) {
    spdlog::warn("step {}: {}, {} so far", bad.step, bad.left_out(), result_.skipped);
  }
}

void Trainer::end_for_nan(const std::string& what, int64_t step) {
  settle_save();  // all ranks name the same checkpoint
  throw NotFiniteError(what, "step " + std::to_string(step),
                       "lower learning_rate.base, or look at the data; " + newest_checkpoint());
}

std::string Trainer::newest_checkpoint() {
  if (saving_) look_for_saved(true);
  const auto newest = latest_checkpoint(checkpoints());
  return newest ? "the newest good checkpoint is " + *newest : "there is no checkpoint yet";
}

// A checkpoint that nobody can go on from must not take the place of a good one.
void Trainer::say_unsaved() {
  const std::string what = "'" + unsaved_ + "' is not finite";
  if (runner_->finite_watch().on_nan() == OnNan::kStop) end_for_nan(what, position_.step);
  if (leads()) {
    spdlog::warn("step {} is not saved: {}; {}", position_.step, what, newest_checkpoint());
  }
}

void Trainer::add_telemetry(EventLine* line) {
  const std::optional<Telemetry> now = device_.telemetry();
  if (!now) return;
  utilization_.add(now->utilization);
  clock_.add(now->clock);
  most_memory_ = std::max(most_memory_, now->memory_used);
  line->add("gpu_utilization", now->utilization)
      .add("gpu_memory", static_cast<int64_t>(now->memory_used))
      .add("gpu_clock", now->clock);
}

void Trainer::evaluate(int64_t epoch) {
  if (!data_->test() || evaluated_step_ == position_.step) return;
  const double begun = monotonic_seconds();
  const EvaluationOptions options{.step = position_.step,
                                  .by_class = job_.train.boolean("evaluate_classes"),
                                  .next_batch = [this] { return next_batch(*data_->test()); },
                                  .next_turn = [this](bool works) { return next_turn(works); },
                                  .batch_done = [this] { published_.pulse(); }};
  const auto evaluation = fleet::evaluate(*data_->test(), *runner_, options);
  if (!evaluation) return;
  result_.evaluation = evaluation->sums;
  evaluated_step_ = position_.step;
  const bool best = follow_evaluation();
  if (leads()) report_evaluation(*evaluation, epoch, monotonic_seconds() - begun);
  if (best && !evaluates_only()) save();  // where this step is not saved yet
}

EvaluatedMetrics Trainer::evaluated_metrics() const {
  const MetricSums& sums = result_.evaluation;
  return {{"loss", sums.mean_loss()},
          {"acc1", sums.acc1()},
          {"acc" + std::to_string(session().training().top_k), sums.acck()}};
}

void Trainer::report_evaluation(const Evaluation& evaluation, int64_t epoch, double seconds) {
  const MetricSums& sums = evaluation.sums;
  const int64_t k = session().training().top_k;
  progress_->print(format("[Epoch %lld, test] samples: %.0f, loss: %.5f, acc1: %.5f, acc%lld: %.5f",
                          static_cast<long long>(epoch), sums.weight, sums.mean_loss(), sums.acc1(),
                          static_cast<long long>(k), sums.acck()));
  EventLine line("test");
  line.add("step", position_.step)
      .add("epoch", epoch)
      .add("samples", sums.weight)
      .add("loss", sums.mean_loss())
      .add("acc1", sums.acc1())
      .add("acc" + std::to_string(k), sums.acck())
      .add("seconds", seconds);
  if (evaluation.classes) {
    line.add("class_samples", evaluation.classes->samples())
        .add("class_acc1", evaluation.classes->accuracies());
    write_file_atomically(output_ + "/confusion_matrix.csv", evaluation.classes->csv());
  }
  write_event(line);
}

// Schedules and early stopping count only evaluations that an uninterrupted run makes too: those at
// the ends of epochs, or every so many steps where there are no others. Returns whether this one is
// the best so far.
bool Trainer::follow_evaluation() {
  const int64_t every = job_.train.integer("evaluate_every");
  const int64_t steps = job_.train.integer("evaluate_every_steps");
  const bool counts = every > 0 ? position_.batch == 0 && position_.epoch % every == 0
                                : steps > 0 && position_.step % steps == 0;
  if (counts && schedule_->observed_step() != position_.step) follow_schedule();
  const BestValue before = watch_->record().kept;
  const bool best = watch_->observe(position_.step, evaluated_metrics(), counts);
  if (best) kept_before_ = before;
  if (watch_->wanted()) position_.evaluations = watch_->record();
  if (leads() && watch_->stops()) {
    progress_->finish();  // the log must not be written into the bar
    spdlog::info("training ends early: {}", watch_->why_it_stops());
  }
  return best;
}

void Trainer::follow_schedule() {
  const Evaluated evaluated{result_.evaluation.mean_loss(), result_.evaluation.acc1()};
  const std::string line = schedule_->observe(position_.step, evaluated);
  position_.schedule = schedule_->state();
  if (line.empty() || !leads()) return;
  progress_->finish();
  spdlog::info("{}", line);
}

// A checkpoint at the end of an epoch is older than the evaluation there, which schedule, best
// checkpoint and early stopping need.
void Trainer::evaluate_what_was_missed() {
  const bool by_schedule =
      schedule_->follows_evaluations() && schedule_->observed_step() != position_.step;
  const bool by_watch = watch_->wanted() && watch_->record().observed_step != position_.step;
  if ((!by_schedule && !by_watch) || position_.step == 0 || position_.batch != 0) return;
  if (position_.epoch % job_.train.integer("evaluate_every") != 0) return;
  evaluate(position_.epoch - 1);
}

void Trainer::save(bool at_end) {
  settle_save();
  if (saved_step_ == position_.step) return;
  progress_->finish();  // the log must not be written into the bar
  runner_->bring_together(position_.step);
  if (divergence_) divergence_->compare(position_.step);  // nothing bad goes over a good one
  unsaved_ = runner_->finite_watch().bad_state();
  if (!unsaved_.empty()) return say_unsaved();
  saved_step_ = position_.step;
  saving_ = true;
  const Keep keep{.newest = static_cast<int>(job_.checkpoint.integer("keep")),
                  .also_step = watch_->record().kept.step};
  if (!at_end) return saver_->begin(position_, keep);
  saver_->save(position_, keep);
  settle_save();
}

// Training does not end for a line: the disk may be full for a while only.
void Trainer::write_event(const EventLine& line) {
  try {
    events_->write(line);
    events_fail_ = false;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    if (std::exchange(events_fail_, true)) return;
    if (progress_) progress_->finish();
    spdlog::warn("{}; training goes on without this line, and the next ones while that lasts",
                 error.what());
  }
}

// What became of a save that a thread does. Training goes on without it: the next may succeed.
void Trainer::look_for_saved(bool wait) {
  const auto outcome = saver_->take(wait);
  if (!outcome) return;
  progress_->finish();
  save_failure_.clear();
  if (!outcome->failure) {
    if (leads()) spdlog::info("saved {}", outcome->folder);
    return published_.saved(outcome->step);
  }
  save_failure_ = saving_failure(outcome->failure);
  spdlog::warn("step {} is not saved: {}; training goes on, the next checkpoint may succeed",
               outcome->step, save_failure_);
}

// Waits for the save before, and for what all ranks know of it.
void Trainer::settle_save() {
  if (!std::exchange(saving_, false)) return;
  look_for_saved(true);
  double failed = save_failure_.empty() ? 0 : 1;
  runner_->control().sum({&failed, 1});
  save_failed_ = failed > 0;
  if (save_failed_ && watch_->record().kept.step == saved_step_) watch_->take_back(kept_before_);
  (save_failed_ ? saved_step_ : kept_step_) = save_failed_ ? kept_step_ : saved_step_;
}

void Trainer::save_at_end() {
  settle_save();
  if (job_.checkpoint.boolean("at_end") || save_failed_) save(true);
}

void Trainer::tell_best(EventLine* summary) {
  if (watch_->may_stop()) summary->add("stopped_early", watch_->stops());
  const BestValue& best = watch_->record().kept;
  if (best.step < 0) return;
  const std::string folder = folder_of_step(checkpoints(), best.step);
  std::printf("best %s: %g at step %lld, %s\n", best.metric.c_str(), best.value,
              static_cast<long long>(best.step), folder.c_str());
  summary->add("best_metric", best.metric)
      .add("best", best.value)
      .add("best_step", best.step)
      .add("best_checkpoint", folder);
}

void Trainer::summarize() {
  EventLine summary("summary");
  runner_->traffic().summarize(runner_->control(), leads() ? &summary : nullptr);
  const double peak = static_cast<double>(process_memory().peak);
  const auto peaks = runner_->control().by_rank({&peak, 1});
  if (!leads()) return;
  const double seconds = monotonic_seconds() - begun_;
  std::printf(
      "%s after %lld steps (epoch %lld) in %.1f s; speed: %.1f samples/s a rank, data_time %.4f s, "
      "batch_time %.4f s\n",
      result_.stopped_by != 0 ? "stopped as asked" : "trained",
      static_cast<long long>(position_.step), static_cast<long long>(position_.epoch), seconds,
      meter_.overall_speed(), meter_.data_time().overall_mean(),
      meter_.batch_time().overall_mean());
  if (result_.damaged > 0) {
    std::printf("damaged images replaced: %lld\n", static_cast<long long>(result_.damaged));
  }
  if (result_.skipped > 0) {
    std::printf("updates left out: %lld\n", static_cast<long long>(result_.skipped));
  }
  if (utilization_.count() > 0) {
    std::printf("gpu utilization: %.0f %%, memory: %s, clock: %.0f MHz\n",
                utilization_.overall_mean(), mebibytes(most_memory_).c_str(),
                clock_.overall_mean());
  }
  if (result_.evaluated) {
    std::printf("test loss: %.4f, acc1: %.4f\n", result_.evaluation.mean_loss(),
                result_.evaluation.acc1());
  }
  if (watch_->stops()) std::printf("ended early: %s\n", watch_->why_it_stops().c_str());
  tell_best(&summary);
  std::fflush(stdout);
  std::vector<int64_t> by_rank;
  for (const auto& rank : peaks) by_rank.push_back(std::llround(rank[0]));
  summary.add("steps", position_.step)
      .add("epochs", position_.epoch)
      .add("seconds", seconds)
      .add("stopped", result_.stopped_by != 0)
      .add("speed", meter_.overall_speed())
      .add("damaged", result_.damaged)
      .add("peak_host_memory", by_rank);
  if (utilization_.count() > 0) {
    summary.add("gpu_utilization", utilization_.overall_mean())
        .add("gpu_memory", static_cast<int64_t>(most_memory_))
        .add("gpu_clock", clock_.overall_mean());
  }
  if (skips()) summary.add("skipped_updates", result_.skipped);
  if (result_.evaluated) summary.add("acc1", result_.evaluation.acc1());
  write_event(summary);
}

}  // namespace fleet
