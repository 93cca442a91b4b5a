#include "train/predict.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/counted.h"
#include "base/error.h"
#include "base/file_status.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "data/pipeline.h"
#include "models/task.h"
#include "observe/rank_progress.h"
#include "train/activation_pictures.h"
#include "train/averaged_rows.h"
#include "train/job_data.h"
#include "train/job_task.h"
#include "train/ordered_records.h"
#include "train/predicted_values.h"
#include "train/prediction_file.h"
#include "train/prediction_masks.h"
#include "train/rank_coordinator.h"
#include "train/start_comparison.h"
#include "train/trained_weights.h"
#include "train/unique_ids.h"

namespace fleet {
namespace {

// The output replaces the file of its name.
void check_output(const Job& job) {
  const std::string& output = job.settings.text("predict.output");
  for (const std::string& input : job.settings.texts("predict.input")) {
    std::error_code missing;
    if (output == "-" || !std::filesystem::equivalent(input, output, missing)) continue;
    throw Error(ErrorCode::kUsage, output + " is one of the inputs, which it would replace",
                "predict.output", "name another file");
  }
}

data::UnlabelledSamples find_samples(const Job& job, const PredictOptions& options,
                                     const std::string& backend) {
  check_output(job);
  data::PipelineContext context =
      data_context(job, backend, {.part = options.rank, .parts = options.world});
  context.bytes = false;
  return data::open_unlabelled(job.data, job.settings.texts("predict.input"), context);
}

class Predictor {
 public:
  Predictor(const Job& job, Device& device, const PredictOptions& options)
      : job_(job),
        device_(device),
        options_(options),
        layout_(prediction_layout(job)),
        averaged_(job, layout_),
        samples_(find_samples(job, options, device.backend())),
        weights_(trained_weights(job, "predict.checkpoint")),
        checkpoint_(weights_.source),
        control_(options.control) {
    check_maps(job, layout_);
    if (writes_maps(job)) map_names_ = map_names(samples_.names);
    layout_.names = class_names(job, weights_);
    result_.unit = samples_.unit;
    count_rows();
    compare();
  }

  PredictResult run() {
    if (leads()) {
      const std::string output =
          gives_masks() ? mask_lines(job_) : job_.settings.text("predict.output");
      records_ = std::make_unique<OrderedRecords>(
          open_prediction_file(prediction_format(job_.settings), output, layout_, count()),
          [this](PredictionFile& file, int64_t sample, const std::string& name,
                 const OrderedRecords::Rows& rows) { write(file, sample, name, rows); });
      for (int64_t i = 0; i < std::ssize(samples_.failures); ++i) {
        if (!samples_.failures[i].empty()) fail(i, samples_.failures[i]);
      }
      spdlog::info("predicting {} with {}", counted(count(), samples_.unit), weights_.what);
      if (!weights_.warning.empty()) spdlog::warn("{}", weights_.warning);
    }
    for (auto& group : samples_.groups) {
      const bool last = &group == &samples_.groups.back();
      run_group(std::move(group), last);
      if (result_.stopped_by != 0) break;
    }
    progress_.finish();
    if (result_.stopped_by == 0 && records_) records_->finish();
    if (!first_failure_.empty()) {
      spdlog::warn("the first {} that could not be used: {}", samples_.unit, first_failure_);
    }
    return result_;
  }

 private:
  bool leads() const { return options_.rank == 0; }
  int64_t count() const { return std::ssize(samples_.names); }
  bool gives_masks() const { return layout_.decoder && layout_.decoder->gives_masks(); }

  // Only a decoder joins the rows of a sample. Without one, a sample of several rows fails.
  void count_rows() {
    rows_missing_.resize(samples_.names.size());
    for (const auto& group : samples_.groups) {
      for (const int64_t sample : group.samples) ++rows_missing_[sample];
    }
    samples_.failures.resize(samples_.names.size());
    if (layout_.decoder) return;
    for (int64_t i = 0; i < count(); ++i) {
      if (rows_missing_[i] > 1) {
        samples_.failures[i] = "it does not fit into a row (data.sequence_length)";
      }
      rows_missing_[i] *= std::ssize(averaged_.views());
    }
  }

  void write(PredictionFile& file, int64_t sample, const std::string& name,
             const OrderedRecords::Rows& rows) const {
    if (!layout_.decoder) return file.add(name, averaged_.join(rows));
    if (masks_) return file.add_line(name, masks_->write(name, rows.at(0)));
    file.add_line(
        name, layout_.decoder->line(
                  {.rows = rows,
                   .texts = [&](const std::string& what) { return samples_.texts(sample, what); },
                   .class_names = layout_.names,
                   .top = job_.settings.integer("predict.top_k")}));
  }

  // The message of a rank about a batch. It starts with the signal that asked the rank to stop.
  // Then for each sample: its index in the group + 1 (0: padding; below 0: it failed), and its
  // numbers.
  size_t numbers() const { return static_cast<size_t>(averaged_.layout().numbers); }
  size_t record_size() const { return 1 + numbers(); }
  std::string key_of_why(int64_t index) const { return "predict/why/" + std::to_string(index); }

  void compare() {
    if (!options_.store || options_.world == 1) return;
    uint64_t names = 1;
    for (const std::string& name : samples_.names) names = hash_text(name, names);
    uint64_t weights = 1;
    for (const std::string& path : weights_.paths) {
      weights = hash_text(std::to_string(hash_file(path).value_or(0)), weights);
    }
    const std::vector<ComparedItem> items = {
        {"predict.input's samples", std::to_string(count()), ""},
        {"predict.input's paths (hash)", std::to_string(names), ""},
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

  // The columns of the job's data, in the shapes of the group's samples.
  std::vector<Column> columns() const {
    std::vector<Column> columns = expected_columns(job_, pipeline_->image());
    for (const Column& own : columns_of(*pipeline_)) {
      const auto same = std::ranges::find(columns, own.name, &Column::name);
      if (same != columns.end()) {
        *same = own;
      } else {
        columns.push_back(own);
      }
    }
    return columns;
  }

  // last: the weights are no longer needed.
  void run_group(data::UnlabelledSamples::Group group, bool last) {
    group_.clear();
    for (const int64_t sample : group.samples) {
      group_.insert(group_.end(), averaged_.views().size(), sample);
    }
    batch_size_ = std::min(job_.data.integer("batch_size"), std::ssize(group_));
    if (averaged_.views().size() > 1) {
      group.source =
          std::make_unique<data::ViewedSource>(std::move(group.source), averaged_.views());
    }
    pipeline_ = data::make_prediction_pipeline(job_.data, std::move(group.source), image(),
                                               {.rank = options_.rank, .ranks = options_.world});
    if (leads() && gives_masks()) {
      masks_ = std::make_unique<PredictionMasks>(job_, pipeline_->image());
    }
    if (gives_masks()) fit_masks();
    values_.reset();  // its memory, before that of the next
    values_ = make_predicted_values(job_, device_, averaged_.layout(), batch_size_, columns());
    TrainedWeights weights = last ? std::move(weights_) : weights_;
    prepare_maps(weights);
    const auto lines = load_trained_weights(job_, &weights, values_->executor(), headless());
    for (const std::string& line : lines) {
      if (leads() && !said_weights_) spdlog::info("{}", line);
    }
    said_weights_ = true;
    load_rows();
    pipeline_->start_epoch(0);
    while (run_batch()) progress_.tick();
  }

  void prepare_maps(TrainedWeights weights) {
    if (!writes_maps(job_)) return;
    maps_.reset();
    const data::ImageShape& size = pipeline_->image();
    maps_ = std::make_unique<ActivationPictures>(job_, device_, batch_size_,
                                                 Shape{size.channels, size.height, size.width});
    load_trained_weights(job_, &weights, maps_->executor(), headless());
  }

  // Reads the ids of all samples first, because only their rows are wanted.
  void load_rows() {
    const std::vector<ServedTable> tables = values_->tables();
    if (tables.empty()) return;
    if (!is_folder(checkpoint_)) {
      throw Error(ErrorCode::kUsage, "it has no tables, and the job has a section tables",
                  checkpoint_, "give the folder of a checkpoint in predict.checkpoint");
    }
    rows_of_tables_ = options_.open_rows(job_, values_->executor().program(), checkpoint_);
    BatchIds ids;
    pipeline_->start_epoch(0);
    while (const data::Batch* batch = pipeline_->next(options_.stop)) {
      for (size_t t = 0; t < tables.size(); ++t) {
        ids.set(batch->column(tables[t].column), tables[t].name);
        rows_of_tables_->want(static_cast<int>(t), ids.ids());
      }
      progress_.tick();
    }
    rows_of_tables_->load();
    for (const std::string& line : rows_of_tables_->missing_lines()) {
      if (leads()) spdlog::info("{}{}", line, options_.world > 1 ? " (rank 0's part)" : "");
    }
    values_->set_rows(rows_of_tables_.get());
  }

  // The image may have another size than the job's model: that of the weights.
  void fit_masks() {
    const TrainingOptions options = training_options(job_, 1, columns(), false);
    layout_.decoder = task_registry().get(job_.task).decoder(TaskContext{options});
    layout_.numbers = static_cast<int64_t>(layout_.decoder->size());
  }

  // The network of embeddings has no head, and that of masks no auxiliary one.
  bool headless() const {
    return layout_.kind == PredictionLayout::Kind::kEmbedding || gives_masks();
  }

  bool run_batch() {
    const data::Batch* batch = pipeline_->next(options_.stop);
    std::vector<double> message(1 + record_size() * static_cast<size_t>(batch_size_));
    if (options_.stop) message[0] = options_.stop->load();
    if (batch) predict(*batch, &message);
    const auto all = control_.by_rank(message);
    for (const auto& rank : all) {
      result_.stopped_by = std::max(result_.stopped_by, static_cast<int>(rank[0]));
    }
    if (result_.stopped_by != 0 || !batch) return false;
    for (const auto& rank : all) take(rank);
    return true;
  }

  void predict(const data::Batch& batch, std::vector<double>* message) {
    values_->run(batch);
    std::vector<ActivationPictures::Sample> pictures;
    for (int64_t i = 0; i < batch.size; ++i) {
      double* record = message->data() + 1 + i * record_size();
      const bool failed = !batch.why[i].empty();
      if (batch.weights[i] == 0 && !failed) continue;  // padding
      if (failed && !is_own(batch, i)) continue;
      record[0] = static_cast<double>(batch.samples[i] + 1) * (failed ? -1 : 1);
      if (failed) {
        report_failure(batch.samples[i], batch.why[i]);
      } else {
        values_->read(i, {record + 1, numbers()});
        if (maps_) pictures.push_back(picture(batch, i, {record + 1, numbers()}));
      }
    }
    if (maps_) maps_->write(batch, pictures);
  }

  ActivationPictures::Sample picture(const data::Batch& batch, int64_t i,
                                     std::span<const double> numbers) const {
    const bool ranked = layout_.kind == PredictionLayout::Kind::kClasses;
    const auto likeliest = std::ranges::max_element(numbers) - numbers.begin();
    return {.row = i,
            .name = map_names_[group_[batch.samples[i]]],
            .predicted = ranked ? static_cast<int64_t>(numbers[0]) : likeliest};
  }

  // Excludes padding. The weight alone does not tell: failed images have weight 0 too.
  bool is_own(const data::Batch& batch, int64_t i) const {
    const int64_t part = batch.index * options_.world + options_.rank;
    return part * batch.size + i < std::ssize(group_);
  }

  void report_failure(int64_t index, const std::string& why) {
    if (leads()) {
      why_[index] = why;
    } else {
      options_.store->set(key_of_why(group_[index]), why);
    }
  }

  std::string why_of(int64_t index) {
    const auto own = why_.extract(index);
    return own ? own.mapped() : options_.store->get(key_of_why(group_[index]), timeout_of(job_));
  }

  void fail(int64_t sample, const std::string& why) {
    const std::string& name = samples_.names[sample];
    ++result_.samples;
    ++result_.failed;
    if (first_failure_.empty()) first_failure_ = shown_path(name) + ": " + why;
    records_->add(sample, {.name = name, .why = why, .rows = {}});
  }

  // Counts and writes the results of a rank for its batch.
  void take(const std::vector<double>& message) {
    for (size_t at = 1; at < message.size(); at += record_size()) {
      if (message[at] == 0) continue;
      const auto index = static_cast<int64_t>(std::abs(message[at])) - 1;
      const int64_t sample = group_[index];
      if (!samples_.failures[sample].empty()) continue;  // fail() has told
      if (message[at] < 0) {
        samples_.failures[sample] = records_ ? why_of(index) : "failed";
        rows_.erase(sample);
        if (records_) {
          fail(sample, samples_.failures[sample]);
        } else {
          ++result_.samples;
          ++result_.failed;
        }
      } else {
        take_row(sample, std::span(&message[at + 1], numbers()));
      }
    }
  }

  void take_row(int64_t sample, std::span<const double> numbers) {
    if (layout_.decoder) numbers = numbers.first(layout_.decoder->used(numbers));
    if (records_) rows_[sample].emplace_back(numbers.begin(), numbers.end());
    if (--rows_missing_[sample] > 0) return;
    ++result_.samples;
    if (!records_) return;
    records_->add(sample, {.name = samples_.names[sample],
                           .why = "",
                           .rows = std::move(rows_.extract(sample).mapped())});
  }

  const Job& job_;
  Device& device_;
  const PredictOptions options_;
  PredictionLayout layout_;
  const AveragedRows averaged_;
  data::UnlabelledSamples samples_;
  TrainedWeights weights_;
  const std::string checkpoint_;  // its folder, or a file
  RankCoordinator control_;
  std::unique_ptr<OrderedRecords> records_;  // on rank 0
  // Of the current group.
  std::vector<int64_t> group_;
  int64_t batch_size_ = 0;
  std::unique_ptr<data::InputPipeline> pipeline_;
  std::unique_ptr<SavedRows> rows_of_tables_;  // null: the model has none elsewhere
  std::unique_ptr<PredictedValues> values_;
  std::vector<std::string> map_names_;            // by sample; empty without maps
  std::unique_ptr<ActivationPictures> maps_;      // null: none
  std::unique_ptr<PredictionMasks> masks_;        // on rank 0, if the task predicts them
  std::vector<int64_t> rows_missing_;             // by sample: rows that have not come
  std::map<int64_t, OrderedRecords::Rows> rows_;  // on rank 0: of samples that miss some
  std::map<int64_t, std::string> why_;            // about rank 0's own samples
  bool said_weights_ = false;
  ProgressWriter progress_ = ProgressWriter::from_env();
  PredictResult result_;
  std::string first_failure_;  // on rank 0: the sample and why
};

}  // namespace

bool predicts(const Job& job) { return !job.settings.texts("predict.input").empty(); }

PredictResult predict(const Job& job, Device& device, const PredictOptions& options) {
  return Predictor(job, device, options).run();
}

}  // namespace fleet
