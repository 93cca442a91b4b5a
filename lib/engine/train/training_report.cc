#include "train/training_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/home_folder.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/process_memory.h"
#include "base/text.h"
#include "comm/peer_wait_timer.h"
#include "store/env.h"
#include "train/evaluation_file.h"

namespace fleet {
namespace {

// The value that the launcher shows next to the loss: the task's main metric, if a larger value is
// better; else -1.
double shown_accuracy(const MetricSums& sums) {
  const MetricDef* headline = sums.table()->find(sums.table()->headline);
  if (!headline || !headline->larger_is_better) return -1;
  const double value = sums.headline();
  return std::isfinite(value) ? value : -1;
}

void add_metrics(const MetricSums& sums, EventLine* line) {
  for (const auto& [name, value] : sums.values()) line->add(name, value);
}

void add_collected(const EvaluationCollector& collected, const std::vector<std::string>& classes,
                   EventLine* line) {
  const EvaluationCollector::Fields fields = collected.fields();
  for (const auto& [name, values] : fields.integers) line->add(name, values);
  for (const auto& [name, values] : fields.numbers) line->add(name, values);
  const bool any = !fields.integers.empty() || !fields.numbers.empty();
  if (any && !classes.empty()) line->add("class_names", classes);
}

void print_result(const MetricSums& sums) {
  const MetricTable& table = *sums.table();
  std::printf("test %s: %.4f", table.metrics[0].name.c_str(), sums.loss());
  if (!table.headline.empty()) std::printf(", %s: %.4f", table.headline.c_str(), sums.headline());
  std::printf("\n");
}

}  // namespace

TrainingReport::TrainingReport(const Job& job, Device& device, StepRunner& runner,
                               data::InputPipeline& train, const Options& options)
    : job_(job),
      device_(device),
      runner_(runner),
      train_(train),
      options_(options),
      progress_({.width = options.terminal_width, .plain_seconds = 0, .write = {}}) {
  if (runner.session().training().metrics->unit == "tokens") tokens_.emplace(runner, device);
  const int stages = runner.session().stages();
  if (stages > 1) launcher_.in_pipeline(options.rank.rank % stages, stages);
}

// Which keys of later lines are metrics, for fleetrun report and compare.
static void add_metrics_of_task(const MetricTable& table, EventLine* start) {
  std::vector<std::string> names;
  for (const MetricDef& metric : table.metrics) names.push_back(metric.name);
  const MetricDef* headline = table.find(table.headline);
  start->add("metrics", names)
      .add("headline", table.headline)
      .add("larger_is_better", headline && headline->larger_is_better)
      .add("unit", table.unit);
}

void TrainingReport::open(const std::string& folder, bool new_run) {
  folder_ = folder;
  const TrainingPosition& at = runner_.position();
  files_.open(folder, job_, at.step, new_run);
  EventLine start("start");
  start.add("model", job_.model_name)
      .add("ranks", options_.rank.world)
      .add("device", device_.name())
      .add("precision", name_of(runner_.session().precision()))
      .add("global_batch", at.global_batch)
      .add("seed", job_.train.integer("seed"))
      .add("step", at.step);
  add_metrics_of_task(*runner_.session().training().metrics, &start);
  if (const auto run = get_env(kEnvRun)) start.add("run", *run);
  if (const auto logs = get_env_path("PADDLE_LOG_DIR")) {
    std::error_code error;
    start.add("log_dir", std::filesystem::absolute(*logs, error).lexically_normal().string());
  }
  files_.write(start);
}

void TrainingReport::open_results(const std::string& folder, const std::string& weights) {
  folder_ = folder;
  evaluated_weights_ = weights;
  std::string why = "the weights belong to no run";
  try {
    if (!folder.empty()) return files_.open_results(folder);
  } catch (const Error& error) {
    if (job_.settings.given("train.output")) {
      throw Error(ErrorCode::kUsage, error.failure(), "the output folder " + folder,
                  "set train.output to a writable folder, and checkpoint.resume to " + weights);
    }
    why = error.what();
  }
  if (!folder.empty() || !runner_.session().training().collected.empty()) {
    spdlog::warn(
        "the results are not written to a file: {}; set train.output to a folder, and "
        "checkpoint.resume to {}",
        why, weights);
  }
}

void TrainingReport::training_begins() { started_ = monotonic_seconds(); }

void TrainingReport::epoch_begins() {
  const TrainingPosition& at = runner_.position();
  progress_.start(format_printf("Epoch %lld (of %lld)", static_cast<long long>(at.epoch),
                                static_cast<long long>(job_.train.integer("epochs"))),
                  train_.batches(), at.batch);
  times_.meter.start();
}

void TrainingReport::step_done(const data::Batch& batch) {
  times_.meter.step_done(static_cast<double>(batch.real));  // padding does not count as work
  if (tokens_) tokens_->step_done(batch.weight);
}

void TrainingReport::draw_bar(const data::Batch& batch) {
  progress_.update(batch.index + 1, format_printf("speed %.1f", times_.meter.speed()));
}

void TrainingReport::step(const data::Batch& batch, double rate, int64_t target) {
  const int64_t step = runner_.position().step - 1;
  Session& session = runner_.session();
  const StepMeter& meter = times_.meter;
  const MetricSums sums = sum_over_ranks(session.read_metrics(false), runner_.step_control());
  launcher_.fetched(sums.loss(), shown_accuracy(sums));
  launcher_.planned(target, train_.stats().threads);  // it may tune them
  if (!std::isfinite(sums.loss()) && !warned_of_nan_ && !runner_.finite_check().enabled()) {
    warned_of_nan_ = true;
    spdlog::warn("the loss of step {} is {}: lower learning_rate.base, or look at the data", step,
                 sums.loss());
  }
  std::optional<TokenSpeed> speed;
  if (tokens_) speed = tokens_->measure(meter, target - step - 1);
  progress_.print(format_printf("worker_index: %d, step%lld cost = %f, speed: %f",
                                options_.rank.rank, static_cast<long long>(step), sums.loss(),
                                meter.speed()));
  progress_.print(format_printf("[Epoch %lld, batch %lld] ", static_cast<long long>(batch.epoch),
                                static_cast<long long>(batch.index)) +
                  sums.text() + (speed ? ", " + speed->text() : ""));
  const std::optional<double> scaling = session.read_loss_scaling();
  if (scaling && loss_scaling_ && *scaling < *loss_scaling_ && options_.rank.rank == 0) {
    spdlog::info("gradients overflowed: the loss scale is now {}", *scaling);
  }
  loss_scaling_ = scaling;
  rank_times_.collect(meter, PeerWaitTimer::total_ns(), runner_.step_control());
  if (!files_.is_open()) return;
  EventLine line("train");
  line.add("step", step).add("epoch", batch.epoch).add("batch", batch.index);
  add_metrics(sums, &line);
  line.add("learning_rate", rate)
      .add("data_time", meter.data_time().mean())
      .add("batch_time", meter.batch_time().mean())
      .add("speed", meter.speed());
  if (speed) speed->add_to(&line);
  line.add("peak_host_memory", process_memory().peak);
  const data::PipelineStats reader = train_.stats();
  line.add("reader_queue", reader.queued).add("reader_queue_capacity", reader.capacity);
  line.add("reader_threads", reader.threads);
  if (scaling) line.add("loss_scaling", *scaling);
  if (runner_.finite_check().skips()) {
    line.add("skipped_updates", runner_.finite_check().found());
  }
  runner_.traffic().add_to(&line);
  runner_.add_exchange(&line);
  for (const auto& [key, value] : session.strategy_measures()) line.add(key, value);
  add_telemetry(&line);
  files_.write(line);
  files_.show_gradients(runner_.executor(), loss_scaling_.value_or(1), step);
  write_rank_times(false);
}

void TrainingReport::write_rank_times(bool all) {
  const auto line = rank_times_.take_line(runner_.position().step, monotonic_seconds(), all);
  if (line) files_.write(*line);
}

void TrainingReport::add_telemetry(EventLine* line) {
  const std::optional<Telemetry> now = device_.telemetry();
  if (!now) return;
  utilization_.add(now->utilization);
  clock_.add(now->clock);
  max_memory_ = std::max(max_memory_, now->memory_used);
  line->add("gpu_utilization", now->utilization)
      .add("gpu_memory", static_cast<int64_t>(now->memory_used))
      .add("gpu_clock", now->clock);
}

void TrainingReport::evaluated(const Evaluation& evaluation, int64_t epoch, double seconds,
                               const data::Source* source) {
  if (options_.rank.rank != 0) return;
  const TrainingPosition& at = runner_.position();
  const MetricSums& sums = evaluation.sums;
  launcher_.evaluated(shown_accuracy(sums));
  progress_.print(format_printf("[Epoch %lld, test] %s: %.0f, ", static_cast<long long>(epoch),
                                sums.table()->unit.c_str(), sums.items()) +
                  sums.text());
  EventLine line("test");
  line.add("step", at.step).add("epoch", epoch).add(sums.table()->unit, sums.items());
  add_metrics(sums, &line);
  line.add("seconds", seconds);
  if (evaluation.collected) add_collected(*evaluation.collected, at.card.classes, &line);
  if (!evaluated_weights_.empty()) line.add("weights", evaluated_weights_);
  files_.write(line);
  if (evaluation.collected) write_classes(*evaluation.collected, epoch, source);
}

// The files for people, and classes whose metrics say little.
void TrainingReport::write_classes(const EvaluationCollector& collected, int64_t epoch,
                                   const data::Source* source) {
  const TrainingPosition& at = runner_.position();
  const std::vector<std::string>& classes = at.card.classes;
  // A later evaluation of the run leaves the run's own files as they are.
  const bool trains = evaluated_weights_.empty();
  if (const std::string csv = collected.csv(classes); !csv.empty()) {
    files_.write_file(trains ? "confusion_matrix.csv" : "evaluation_matrix.csv", csv);
  }
  EvaluatedData data{.source = source,
                     .classes = classes,
                     .upright = job_.data.has("exif") && data::makes_upright(job_.data)};
  std::optional<data::AugmentChain> chain;
  const auto is_marked = [](const WorstSample& sample) { return sample.wrong.height > 0; };
  if (at.card.image.size() == 3 && std::ranges::any_of(collected.worst_samples(), is_marked)) {
    const auto size = [&](size_t i) { return static_cast<int>(at.card.image[i]); };
    chain = data::evaluation_chain(job_.data, {size(0), size(1), size(2)});
    data.chain = &*chain;
  }
  if (files_.is_open()) {
    const std::string file = evaluation_file(collected, data, at.step, epoch);
    if (!file.empty()) files_.write_file(trains ? "evaluation.json" : "evaluation_only.json", file);
  }
  if (std::exchange(named_small_classes_, true)) return;
  const std::string line = small_classes_line(collected.class_support(), classes, collected.few());
  if (!line.empty()) spdlog::info("{}", line);
}

void TrainingReport::not_finite(const BadUpdates& bad) {
  clear_bar();
  EventLine line("not_finite");
  line.add("step", bad.step).add("what", bad.what).add("updates", bad.count);
  if (bad.rank >= 0) line.add("rank", bad.rank);
  files_.write(line);
}

void TrainingReport::log_failures() {
  for (const std::string& message : files_.take_messages()) {
    clear_bar();
    spdlog::warn("{}", message);
  }
}

// Waits for the disk: a network mount may answer again.
void TrainingReport::finish_writes() {
  constexpr size_t kMany = 1000;  // a disk takes them within a second
  if (const size_t left = files_.pending(); left > kMany) {
    spdlog::info("writing the last {} metrics to {}", left, folder_);
  }
  while (!files_.wait_for(std::chrono::milliseconds(200))) log_failures();
  log_failures();
}

void TrainingReport::report_best(const BestValue& best, const std::string& checkpoints,
                                 EventLine* summary) {
  if (best.step < 0) return;
  const std::string folder = folder_of_step(checkpoints, best.step);
  std::printf("best %s: %s at step %lld, %s\n", best.metric.c_str(),
              number_text(best.value).c_str(), static_cast<long long>(best.step), folder.c_str());
  summary->add("best_metric", best.metric)
      .add("best", best.value)
      .add("best_step", best.step)
      .add("best_checkpoint", folder);
}

// The speed counts everything except start, evaluation and saving; the ends of epochs count too.
void TrainingReport::report_times(const TrainResult& result, EventLine* summary) {
  const auto& [meter, evaluating, saving] = times_;
  const TrainingPosition& at = runner_.position();
  const double now = monotonic_seconds();
  const double starting = started_ - options_.begun;
  const double training = std::max(now - started_ - evaluating.seconds() - saving.seconds(), 0.0);
  const double speed = training > 0 ? meter.samples() / training : 0;
  std::printf("%s after step %lld (%lld epoch%s complete) in %.2f s\n",
              result.stopped_by != 0                ? "stopped as asked"
              : job_.train.boolean("evaluate_only") ? "evaluated"
                                                    : "trained",
              static_cast<long long>(at.step), static_cast<long long>(at.epoch),
              at.epoch == 1 ? "" : "s", now - options_.begun);
  std::printf("start: %.2f s, training: %.2f s, evaluation: %.2f s, saving: %.2f s\n", starting,
              training, evaluating.seconds(), saving.seconds());
  if (meter.samples() > 0) {
    if (tokens_ && training > 0) {
      std::printf("speed: %.0f tokens/s a rank\n", tokens_->total() / training);
      summary->add("tokens", tokens_->total());
    }
    std::printf("speed: %.1f samples/s a rank, data_time: %.4f s, batch_time: %.4f s\n", speed,
                meter.data_time().overall_mean(), meter.batch_time().overall_mean());
  }
  summary->add("seconds", now - options_.begun)
      .add("start_seconds", starting)
      .add("training_seconds", training)
      .add("evaluation_seconds", evaluating.seconds())
      .add("saving_seconds", saving.seconds())
      .add("speed", speed);
}

void TrainingReport::summarize(const TrainResult& result, const EvaluationTracker& tracker,
                               const std::string& checkpoints) {
  EventLine summary("summary");
  runner_.traffic().summarize(runner_.control(), options_.rank.rank == 0 ? &summary : nullptr);
  const double peak = static_cast<double>(process_memory().peak);
  const auto peaks = runner_.control().by_rank({&peak, 1});
  if (options_.rank.rank != 0) return;
  const bool trains = evaluated_weights_.empty();
  if (trains) write_rank_times(true);
  report_times(result, &summary);
  if (result.damaged > 0) {
    std::printf("damaged images replaced: %lld\n", static_cast<long long>(result.damaged));
  }
  if (result.skipped > 0) {
    std::printf("updates left out: %lld\n", static_cast<long long>(result.skipped));
  }
  if (utilization_.count() > 0) {
    std::printf("gpu utilization: %.0f %%, memory: %s, clock: %.0f MHz\n",
                utilization_.overall_mean(), mebibytes(max_memory_).c_str(), clock_.overall_mean());
  }
  if (result.evaluated) print_result(result.evaluation);
  if (tracker.should_stop()) std::printf("ended early: %s\n", tracker.why_it_stops().c_str());
  if (tracker.may_stop()) summary.add("stopped_early", tracker.should_stop());
  report_best(tracker.record().kept, checkpoints, &summary);
  std::fflush(stdout);
  const TrainingPosition& at = runner_.position();
  std::vector<int64_t> by_rank;
  for (const auto& rank : peaks) by_rank.push_back(std::llround(rank[0]));
  summary.add("steps", at.step)
      .add("epochs", at.epoch)
      .add("stopped", result.stopped_by != 0)
      .add("damaged", result.damaged)
      .add("peak_host_memory", by_rank);
  if (utilization_.count() > 0) {
    summary.add("gpu_utilization", utilization_.overall_mean())
        .add("gpu_memory", static_cast<int64_t>(max_memory_))
        .add("gpu_clock", clock_.overall_mean());
  }
  if (runner_.finite_check().skips()) summary.add("skipped_updates", result.skipped);
  if (result.evaluated) {
    const MetricTable& table = *result.evaluation.table();
    const std::string& name = table.headline.empty() ? table.metrics[0].name : table.headline;
    summary.add(name, result.evaluation.value(name));
  }
  if (trains) files_.write(summary);
  finish_writes();
}

}  // namespace fleet
