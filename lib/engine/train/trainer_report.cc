// Output of a Trainer: standard output and metrics.jsonl.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/process_memory.h"
#include "base/text.h"
#include "comm/peer_wait_timer.h"
#include "train/format_printf.h"
#include "train/trainer.h"

namespace fleet {

void Trainer::open_metrics() {
  run_folder_->begin();
  const std::string path = output_ + "/metrics.jsonl";
  const auto aside = continues_run_ || evaluates_only() ? std::nullopt : set_aside(path);
  if (aside) spdlog::info("metrics of an earlier run are now in {}", *aside);
  if (!continues_run_ && !evaluates_only()) set_aside(output_ + "/tensorboard");
  if (job_.train.boolean("tensorboard")) {
    // An evaluation of an earlier checkpoint supersedes nothing.
    const int64_t begin = evaluates_only() ? 0 : position_.step;
    tensorboard_ = std::make_unique<TensorboardLog>(output_ + "/tensorboard", begin);
  }
  events_ = std::make_shared<EventFile>(path);
  writer_ = std::make_unique<OutputWriter>(output_);
  writer_->write([path = output_ + "/config.txt", text = job_.settings.print()] {
    write_file_atomically(path, text);
  });
  EventLine start("start");
  start.add("model", job_.model_name)
      .add("ranks", options_.world)
      .add("device", device_.name())
      .add("precision", name_of(session().precision()))
      .add("global_batch", position_.global_batch)
      .add("seed", job_.train.integer("seed"))
      .add("step", position_.step);
  if (const auto logs = get_env("PADDLE_LOG_DIR")) {
    std::error_code error;
    start.add("log_dir", std::filesystem::absolute(*logs, error).lexically_normal().string());
  }
  write_event(start);
}

void Trainer::report(const data::Batch& batch, int64_t step, double rate) {
  const MetricSums sums = sum_over_ranks(session().read_metrics(false), runner_->control());
  published_.fetched(sums.mean_loss());
  published_.planned(steps_to_train(), data_->train().stats().threads);  // it may tune them
  if (!std::isfinite(sums.mean_loss()) && !warned_of_nan_ && !runner_->finite_check().enabled()) {
    warned_of_nan_ = true;
    spdlog::warn("the loss of step {} is {}: lower learning_rate.base, or look at the data", step,
                 sums.mean_loss());
  }
  progress_->print(format_printf("worker_index: %d, step%lld cost = %f, speed: %f", options_.rank,
                                 static_cast<long long>(step), sums.mean_loss(), meter_.speed()));
  progress_->print(format_printf("[Epoch %lld, batch %lld] loss: %.5f, acc1: %.5f, acc%lld: %.5f",
                                 static_cast<long long>(batch.epoch),
                                 static_cast<long long>(batch.index), sums.mean_loss(), sums.acc1(),
                                 static_cast<long long>(session().training().top_k), sums.acck()));
  const std::optional<double> scaling = session().read_loss_scaling();
  if (scaling && loss_scaling_ && *scaling < *loss_scaling_ && is_leader()) {
    spdlog::info("gradients overflowed: the loss scale is now {}", *scaling);
  }
  loss_scaling_ = scaling;
  rank_times_.collect(meter_, PeerWaitTimer::total_ns(), runner_->control());
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
  line.add("reader_threads", reader.threads);
  if (scaling) line.add("loss_scaling", *scaling);
  if (skips()) line.add("skipped_updates", result_.skipped);
  runner_->traffic().add_to(&line);
  for (const auto& [key, value] : session().strategy_measures()) line.add(key, value);
  add_telemetry(&line);
  write_event(line);
  show_gradients(step);
  write_rank_times(false);
}

void Trainer::write_rank_times(bool all) {
  const auto line = rank_times_.take_line(position_.step, monotonic_seconds(), all);
  if (line) write_event(*line);
}

void Trainer::add_telemetry(EventLine* line) {
  const std::optional<Telemetry> now = device_.telemetry();
  if (!now) return;
  utilization_.add(now->utilization);
  clock_.add(now->clock);
  max_memory_ = std::max(max_memory_, now->memory_used);
  line->add("gpu_utilization", now->utilization)
      .add("gpu_memory", static_cast<int64_t>(now->memory_used))
      .add("gpu_clock", now->clock);
}

void Trainer::report_evaluation(const Evaluation& evaluation, int64_t epoch, double seconds) {
  const MetricSums& sums = evaluation.sums;
  const int64_t k = session().training().top_k;
  progress_->print(
      format_printf("[Epoch %lld, test] samples: %.0f, loss: %.5f, acc1: %.5f, acc%lld: %.5f",
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
    const std::vector<std::string>& names = position_.card.classes;
    if (!names.empty()) line.add("class_names", names);
  }
  write_event(line);
  if (!evaluation.classes) return;
  writer_->write([path = output_ + "/confusion_matrix.csv",
                  text = evaluation.classes->csv(position_.card.classes)] {
    write_file_atomically(path, text);
  });
}

void Trainer::write_event(const EventLine& line) {
  const double time = unix_seconds();
  TensorboardLog::Task show = tensorboard_ ? tensorboard_->values(line, time) : nullptr;
  writer_->write([file = events_, line, time, show = std::move(show)] {
    file->write(line, time);
    if (show) show();
  });
}

void Trainer::show_batch(const data::Batch& batch, int64_t step) {
  if (!tensorboard_ || shown_images_) return;
  shown_images_ = true;
  writer_->write(tensorboard_->images(batch, job_.data, step));
}

void Trainer::show_gradients(int64_t step) {
  if (!tensorboard_ || !job_.train.boolean("tensorboard_gradients")) return;
  const double scale = loss_scaling_.value_or(1);
  writer_->write(tensorboard_->gradients(runner_->executor(), scale, step));
}

// A failed line does not end training: the disk may be full only for a while.
void Trainer::log_writer() {
  if (!writer_) return;
  for (const std::string& message : writer_->take_messages()) {
    if (progress_) progress_->finish();
    spdlog::warn("{}", message);
  }
}

// Waits for the disk: a network mount may answer again.
void Trainer::finish_writes() {
  if (!writer_) return;
  constexpr size_t kMany = 1000;  // a disk takes them within a second
  if (const size_t left = writer_->pending(); left > kMany) {
    spdlog::info("writing the last {} metrics to {}", left, folder());
  }
  while (!writer_->wait_for(std::chrono::milliseconds(200))) log_writer();
  log_writer();
}

void Trainer::report_best(EventLine* summary) {
  if (tracker_->may_stop()) summary->add("stopped_early", tracker_->should_stop());
  const BestValue& best = tracker_->record().kept;
  if (best.step < 0) return;
  const std::string folder = folder_of_step(checkpoints(), best.step);
  std::printf("best %s: %s at step %lld, %s\n", best.metric.c_str(),
              number_text(best.value).c_str(), static_cast<long long>(best.step), folder.c_str());
  summary->add("best_metric", best.metric)
      .add("best", best.value)
      .add("best_step", best.step)
      .add("best_checkpoint", folder);
}

// The speed counts everything except start, evaluation and saving; the ends of epochs count too.
void Trainer::report_times(EventLine* summary) {
  const double now = monotonic_seconds();
  const double starting = started_ - begun_;
  const double training =
      std::max(now - started_ - evaluating_.seconds() - saving_time_.seconds(), 0.0);
  const double speed = training > 0 ? meter_.samples() / training : 0;
  std::printf("%s after step %lld (%lld epoch%s complete) in %.2f s\n",
              result_.stopped_by != 0 ? "stopped as asked"
              : evaluates_only()      ? "evaluated"
                                      : "trained",
              static_cast<long long>(position_.step), static_cast<long long>(position_.epoch),
              position_.epoch == 1 ? "" : "s", now - begun_);
  std::printf("start: %.2f s, training: %.2f s, evaluation: %.2f s, saving: %.2f s\n", starting,
              training, evaluating_.seconds(), saving_time_.seconds());
  if (meter_.samples() > 0) {
    std::printf("speed: %.1f samples/s a rank, data_time: %.4f s, batch_time: %.4f s\n", speed,
                meter_.data_time().overall_mean(), meter_.batch_time().overall_mean());
  }
  summary->add("seconds", now - begun_)
      .add("start_seconds", starting)
      .add("training_seconds", training)
      .add("evaluation_seconds", evaluating_.seconds())
      .add("saving_seconds", saving_time_.seconds())
      .add("speed", speed);
}

void Trainer::summarize() {
  EventLine summary("summary");
  runner_->traffic().summarize(runner_->control(), is_leader() ? &summary : nullptr);
  const double peak = static_cast<double>(process_memory().peak);
  const auto peaks = runner_->control().by_rank({&peak, 1});
  if (!is_leader()) return;
  write_rank_times(true);
  report_times(&summary);
  if (result_.damaged > 0) {
    std::printf("damaged images replaced: %lld\n", static_cast<long long>(result_.damaged));
  }
  if (result_.skipped > 0) {
    std::printf("updates left out: %lld\n", static_cast<long long>(result_.skipped));
  }
  if (utilization_.count() > 0) {
    std::printf("gpu utilization: %.0f %%, memory: %s, clock: %.0f MHz\n",
                utilization_.overall_mean(), mebibytes(max_memory_).c_str(), clock_.overall_mean());
  }
  if (result_.evaluated) {
    std::printf("test loss: %.4f, acc1: %.4f\n", result_.evaluation.mean_loss(),
                result_.evaluation.acc1());
  }
  if (tracker_->should_stop()) std::printf("ended early: %s\n", tracker_->why_it_stops().c_str());
  report_best(&summary);
  std::fflush(stdout);
  std::vector<int64_t> by_rank;
  for (const auto& rank : peaks) by_rank.push_back(std::llround(rank[0]));
  summary.add("steps", position_.step)
      .add("epochs", position_.epoch)
      .add("stopped", result_.stopped_by != 0)
      .add("damaged", result_.damaged)
      .add("peak_host_memory", by_rank);
  if (utilization_.count() > 0) {
    summary.add("gpu_utilization", utilization_.overall_mean())
        .add("gpu_memory", static_cast<int64_t>(max_memory_))
        .add("gpu_clock", clock_.overall_mean());
  }
  if (skips()) summary.add("skipped_updates", result_.skipped);
  if (result_.evaluated) summary.add("acc1", result_.evaluation.acc1());
  write_event(summary);
  finish_writes();
}

}  // namespace fleet
