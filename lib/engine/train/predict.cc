#include "train/predict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "data/image_files.h"
#include "data/pipeline.h"
#include "data/storage.h"
#include "models/task.h"
#include "models/text/language_models.h"
#include "observe/rank_progress.h"
#include "train/job_task.h"
#include "train/rank_coordinator.h"
#include "train/start_comparison.h"
#include "train/trained_weights.h"

namespace fleet {
namespace {

bool writes_csv(const Settings& settings) {
  const std::string& format = settings.text("predict.format");
  return format == "csv" || (format == "auto" && settings.text("predict.output").ends_with(".csv"));
}

std::vector<std::string> find_images(const Job& job, bool verbose) {
  std::vector<std::string> paths;
  data::wait_for_storage(job.data.number("read_timeout"), [&] {
    paths = data::image_paths(job.settings.texts("predict.input"), verbose);
  });
  return paths;
}

// The images to predict. kUsage if the task predicts no classes.
std::vector<std::string> predicted_images(const Job& job, bool leads) {
  if (task_registry().get(job.task).probabilities) return find_images(job, leads);
  const bool language = language_source(job.model_name, job.model).has_value();
  throw Error(ErrorCode::kUsage, "the task " + job.task + " predicts no classes", "predict.input",
              language ? "use `fleetrun generate`" : "remove it, or set task");
}

class Predictor {
 public:
  Predictor(const Job& job, Device& device, const PredictOptions& options)
      : job_(job),
        options_(options),
        paths_(predicted_images(job, options.rank == 0)),
        weights_(trained_weights(job, "predict.checkpoint")),
        control_(options.control) {
    classes_ = classes_of(job);
    top_k_ = std::min(job.settings.integer("predict.top_k"), classes_);
    batch_size_ = std::min(job.data.integer("batch_size"), static_cast<int64_t>(paths_.size()));
    names_ = class_names(job, weights_);
    compare();
    make_pipeline();
    build(device);
  }

  PredictResult run() {
    const bool leads = options_.rank == 0;
    std::unique_ptr<PredictionFile> file;
    if (leads) {
      file = std::make_unique<PredictionFile>(
          job_.settings.text("predict.output"), names_,
          PredictionFile::Format{.csv = writes_csv(job_.settings), .top_k = top_k_});
    }
    pipeline_->start_epoch(0);
    for (;;) {
      const data::Batch* batch = pipeline_->next(options_.stop);
      std::vector<double> message(message_size());
      if (options_.stop) message[0] = options_.stop->load();
      if (batch) predict(*batch, &message);
      const auto all = control_.by_rank(message);
      for (const auto& rank : all) {
        result_.stopped_by = std::max(result_.stopped_by, static_cast<int>(rank[0]));
      }
      if (result_.stopped_by != 0 || !batch) break;
      for (const auto& rank : all) count(rank, file.get());
      progress_.tick();
    }
    progress_.finish();
    if (result_.stopped_by == 0 && file) file->finish();
    if (!first_failure_.empty())
      spdlog::warn("the first image that could not be used: {}", first_failure_);
    return result_;
  }

 private:
  // The message of a rank about a batch. It starts with the signal that asked the rank to stop.
  // Then for each image: its index + 1 (0: padding; below 0: it failed), and class and probability
  // of each of the likeliest classes.
  size_t record_size() const { return 1 + 2 * static_cast<size_t>(top_k_); }
  size_t message_size() const { return 1 + record_size() * static_cast<size_t>(batch_size_); }
  std::string key_of_why(int64_t index) const { return "predict/why/" + std::to_string(index); }

  void compare() {
    if (!options_.store || options_.world == 1) return;
    uint64_t images = 1;
    for (const std::string& path : paths_) images = hash_text(path, images);
    uint64_t weights = 1;
    for (const std::string& path : weights_.paths) {
      weights = hash_text(std::to_string(hash_file(path).value_or(0)), weights);
    }
    const std::vector<ComparedItem> items = {
        {"predict.input's images", std::to_string(paths_.size()), ""},
        {"predict.input's paths (hash)", std::to_string(images), ""},
        {"predict.checkpoint's content (hash)", std::to_string(weights), ""}};
    StartComparison(items, "predict", {options_.rank, options_.world}, *options_.store,
                    timeout_of(job_))
        .wait();
  }

  // The size that the job sets; else that of the weights' training; else that of the first image.
  data::ImageShape image() const {
    const auto size = [&](const char* key, size_t i) {
      const int64_t given = job_.data.integer(std::string("image.") + key);
      if (given > 0 || weights_.card.image.empty()) return static_cast<int>(given);
      return static_cast<int>(weights_.card.image[i]);
    };
    return {size("channels", 0), size("height", 1), size("width", 2)};
  }

  void make_pipeline() {
    std::vector<data::ImageFile> files;
    for (const std::string& path : paths_) files.push_back({path, 0});
    pipeline_ = data::make_prediction_pipeline(
        job_.data, std::make_unique<data::ImageFiles>(std::move(files)), image(),
        {.rank = options_.rank, .ranks = options_.world});
  }

  void build(Device& device) {
    Program program;
    TrainingOptions options =
        training_options(job_, batch_size_, expected_columns(job_, pipeline_->image()), false);
    options.class_weights = options.mixed_labels = false;
    net_ = build_training(program, options);
    logits_ = net_.evaluate_output("logits");
    Plan plan = plan_program(std::move(program), {logits_},
                             {.backend = device.backend(), .device = &device});
    executor_ = std::make_unique<Executor>(std::move(plan), device, nullptr);
    executor_->set_recording(job_.train.boolean("cuda_graph"));
    executor_->initialize(1);
    for (const std::string& line : load_trained_weights(job_, &weights_, *executor_)) {
      if (options_.rank == 0) spdlog::info("{}", line);
    }
    if (options_.rank == 0) {
      spdlog::info("predicting {} image{} with {}", paths_.size(), paths_.size() == 1 ? "" : "s",
                   weights_.what);
      if (!weights_.warning.empty()) spdlog::warn("{}", weights_.warning);
    }
  }

  // The images are not labelled: labels, of any task, are 0.
  void feed_column(const TrainingFeed& feed, const data::Batch& batch) {
    if (feed.training_only) return;
    const std::span<const std::byte> column = batch.column(feed.name);
    if (!column.empty()) return executor_->feed(feed.var, column);
    executor_->feed(feed.var, std::vector<std::byte>(executor_->argument(feed.var).bytes()));
  }

  void predict(const data::Batch& batch, std::vector<double>* message) {
    for (const TrainingFeed& feed : net_.feeds) feed_column(feed, batch);
    executor_->run({.evaluate = true, .fetch = true});
    const std::vector<float> logits = executor_->values<float>(logits_);
    for (int64_t i = 0; i < batch.size; ++i) {
      double* record = message->data() + 1 + i * record_size();
      const bool failed = !batch.why[i].empty();
      if (batch.weights[i] == 0 && !failed) continue;  // padding
      if (failed && !is_own(batch, i)) continue;
      record[0] = static_cast<double>(batch.samples[i] + 1) * (failed ? -1 : 1);
      if (failed) {
        report_failure(batch.samples[i], batch.why[i]);
      } else {
        rank_classes({&logits[i * classes_], static_cast<size_t>(classes_)}, record + 1);
      }
    }
  }

  // Excludes padding. The weight alone does not tell: failed images have weight 0 too.
  bool is_own(const data::Batch& batch, int64_t i) const {
    const int64_t part = batch.index * options_.world + options_.rank;
    return part * batch.size + i < static_cast<int64_t>(paths_.size());
  }

  // The likeliest classes (the first of equal ones), and their probabilities.
  void rank_classes(std::span<const float> logits, double* to) const {
    std::vector<int64_t> order(logits.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    // NaN is ranked last and is not a probability.
    const auto value = [&](int64_t c) {
      return std::isnan(logits[c]) ? -INFINITY : static_cast<double>(logits[c]);
    };
    std::partial_sort(
        order.begin(), order.begin() + top_k_, order.end(),
        [&](int64_t a, int64_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
    std::vector<double> probabilities(logits.size());
    task_registry().get(job_.task).probabilities(logits, probabilities);
    for (int64_t k = 0; k < top_k_; ++k) {
      to[2 * k] = static_cast<double>(order[k]);
      to[2 * k + 1] = probabilities[static_cast<size_t>(order[k])];
    }
  }

  void report_failure(int64_t index, const std::string& why) {
    if (options_.rank == 0) {
      why_[index] = why;
    } else {
      options_.store->set(key_of_why(index), why);
    }
  }

  std::string why_of(int64_t index) {
    const auto own = why_.extract(index);
    return own ? own.mapped() : options_.store->get(key_of_why(index), timeout_of(job_));
  }

  // Counts the results of a rank for its batch. file: null except on rank 0.
  void count(const std::vector<double>& message, PredictionFile* file) {
    for (size_t at = 1; at < message.size(); at += record_size()) {
      if (message[at] == 0) continue;
      const bool failed = message[at] < 0;
      const auto index = static_cast<int64_t>(std::abs(message[at])) - 1;
      result_.images += 1;
      result_.failed += failed ? 1 : 0;
      if (!file) continue;
      if (failed) {
        const std::string why = why_of(index);
        if (first_failure_.empty()) first_failure_ = shown_path(paths_[index]) + ": " + why;
        file->add_failure(paths_[index], why);
      } else {
        file->add(paths_[index], {&message[at + 1], record_size() - 1});
      }
    }
  }

  const Job& job_;
  const PredictOptions options_;
  const std::vector<std::string> paths_;
  TrainedWeights weights_;
  RankCoordinator control_;
  int64_t classes_ = 0, top_k_ = 0, batch_size_ = 0;
  std::vector<std::string> names_;
  std::unique_ptr<data::InputPipeline> pipeline_;
  Training net_;
  VarId logits_ = kNoVar;
  std::unique_ptr<Executor> executor_;
  std::map<int64_t, std::string> why_;  // about rank 0's own images
  ProgressWriter progress_ = ProgressWriter::from_env();
  PredictResult result_;
  std::string first_failure_;  // on rank 0: the image and why
};

}  // namespace

Schema predict_schema() {
  return Schema()
      .texts("input", {},
             "predict the classes of these images, folders of images, or lists of them (.txt), "
             "instead of training; the short form is --predict")
      .as_path()
      .text("checkpoint", "auto",
            "weights to predict with: a checkpoint's folder, a file of weights, or \"auto\": those "
            "of checkpoint.resume, or else the newest checkpoint of the job, or else those of "
            "checkpoint.weights")
      .as_path()
      .text("output", "predictions.jsonl",
            "output file, one line per image; \"-\": standard output")
      .as_path()
      .choice("format", "auto", {"auto", "jsonl", "csv"},
              "format of the output: JSON lines or CSV; auto: CSV if the output's name ends in "
              ".csv")
      .integer("top_k", 5, 1, 1e6, "number of most likely classes per line");
}

bool predicts(const Job& job) { return !job.settings.texts("predict.input").empty(); }

PredictResult predict(const Job& job, Device& device, const PredictOptions& options) {
  return Predictor(job, device, options).run();
}

}  // namespace fleet
