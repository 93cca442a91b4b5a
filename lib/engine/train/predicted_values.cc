#include "train/predicted_values.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "models/evaluated_network.h"
#include "models/model.h"
#include "models/prediction_decoder.h"
#include "models/task.h"
#include "models/text/language_models.h"
#include "train/averaged_rows.h"
#include "train/job_task.h"
#include "train/saved_row_feed.h"
#include "train/served_job.h"

namespace fleet {
namespace {

using Kind = PredictionLayout::Kind;

constexpr char kHidden[] = "hidden", kLogits[] = "logits";

const TaskDef& task_of(const Job& job) { return task_registry().get(job.task); }

bool embeds(const Job& job) { return job.settings.text("predict.embedding") != "none"; }

// Columns that the data of a prediction lack, such as labels, are 0.
void feed_column(Executor& executor, VarId var, std::span<const std::byte> column) {
  if (!column.empty()) return executor.feed(var, column);
  executor.feed(var, std::vector<std::byte>(executor.argument(var).bytes()));
}

// The declaration of the job's task about an output of its model.
class TaskValues : public PredictedValues {
 public:
  TaskValues(const Job& job, Device& device, const PredictionLayout& layout, int64_t batch,
             const std::vector<Column>& columns)
      : job_(job), layout_(layout) {
    Program program;
    TrainingOptions options = training_options(job, batch, columns, false);
    options.class_weights = options.mixed_labels = false;
    net_ = build_training(program, options);
    serve_tables(program, requests_of(job));
    rows_.emplace(program);
    output_ = net_.evaluate_output(layout.decoder ? layout.decoder->output() : kLogits);
    executor_ = plan_prediction(job, device, std::move(program), {output_});
  }

  Executor& executor() override { return *executor_; }
  std::vector<ServedTable> tables() const override { return rows_->tables(); }
  void set_rows(SavedRows* rows) override { rows_->set_rows(rows); }

  void run(const data::Batch& batch) override {
    for (const TrainingFeed& feed : net_.feeds) {
      if (!feed.training_only) feed_column(*executor_, feed.var, batch.column(feed.name));
    }
    rows_->feed(*executor_, batch);
    executor_->run({.evaluate = true, .fetch = true});
    values_ = executor_->values<float>(output_);
    batch_ = &batch;
    row_ = static_cast<int64_t>(values_.size()) / batch.size;
  }

  void read(int64_t i, std::span<double> numbers) override {
    const std::span<const float> row(values_.data() + i * row_, static_cast<size_t>(row_));
    if (layout_.kind == Kind::kClasses) {
      // Logits rank classes whose probabilities are both rounded to 1.
      std::vector<double> probabilities(row.size());
      task_of(job_).probabilities(row, probabilities);
      rank_classes(std::vector<double>(row.begin(), row.end()), probabilities, numbers);
    } else if (layout_.kind == Kind::kScores || layout_.kind == Kind::kProbability) {
      task_of(job_).probabilities(row, numbers);
    } else if (layout_.kind == Kind::kDecoded) {
      layout_.decoder->read(
          {.size = batch_->size,
           .output = [&](const std::string&) { return std::span<const float>(values_); },
           .column = [&](const std::string& name) { return batch_->column(name); }},
          i, numbers);
    } else {
      std::ranges::copy(row, numbers.begin());
    }
  }

 private:
  const Job& job_;
  const PredictionLayout layout_;
  Training net_;
  VarId output_ = kNoVar;
  std::unique_ptr<Executor> executor_;
  std::optional<SavedRowFeed> rows_;
  std::vector<float> values_;
  const data::Batch* batch_ = nullptr;  // the last one
  int64_t row_ = 0;
};

// The hidden states of the first token, or their mean over the tokens without padding, as
// sentence-transformers pools them.
class EmbeddedTexts : public PredictedValues {
 public:
  EmbeddedTexts(const Job& job, Device& device, int64_t batch, const std::vector<Column>& columns)
      : mean_(job.settings.text("predict.embedding") == "mean") {
    const ModelDef& model = model_registry().get(job.model_name);
    Program program;
    const SectionId section =
        program.add_section("evaluate", {.training = false, .evaluation = true});
    NamedVars inputs = {{"sample_key", kNoVar}};
    for (const std::string& name : ports_of(job.model_name, job.model).inputs_for({kHidden})) {
      const Column* column = find_column(columns, name);
      if (!column) throw MissingColumn(name, job.task);
      std::vector<int64_t> shape = {batch};
      for (int d = 0; d < column->shape.rank(); ++d) shape.push_back(column->shape[d]);
      inputs[name] = program.feed(name, column->dtype, Shape(shape));
      feeds_.emplace_back(name, inputs[name]);
    }
    Network network(program, section, false, kNoVar);
    network.set_wanted_outputs({kHidden});
    output_ = find_var(model.build(network, inputs, job.model), kHidden);
    const Shape& hidden = program.var(output_).shape;
    tokens_ = hidden[1];
    features_ = hidden[2];
    executor_ = plan_prediction(job, device, std::move(program), {output_});
  }

  Executor& executor() override { return *executor_; }

  void run(const data::Batch& batch) override {
    for (const auto& [name, var] : feeds_) feed_column(*executor_, var, batch.column(name));
    executor_->run({.evaluate = true, .fetch = true});
    values_ = executor_->values<float>(output_);
    const std::span<const std::byte> bytes = batch.column("document_ids");
    documents_ = {reinterpret_cast<const int64_t*>(bytes.data()), bytes.size() / sizeof(int64_t)};
  }

  void read(int64_t i, std::span<double> numbers) override {
    std::ranges::fill(numbers, 0.0);
    int64_t count = 0;
    for (int64_t t = 0; t < (mean_ ? tokens_ : 1); ++t) {
      if (documents_[i * tokens_ + t] < 0) continue;
      const float* row = values_.data() + (i * tokens_ + t) * features_;
      for (int64_t f = 0; f < features_; ++f) numbers[f] += row[f];
      ++count;
    }
    const double scale = 1 / static_cast<double>(std::max<int64_t>(count, 1));
    for (double& value : numbers) value *= scale;
  }

 private:
  const bool mean_;
  std::vector<std::pair<std::string, VarId>> feeds_;
  VarId output_ = kNoVar;
  int64_t tokens_ = 0, features_ = 0;
  std::unique_ptr<Executor> executor_;
  std::vector<float> values_;
  std::span<const int64_t> documents_;
};

// The operation that makes the logits of a network of images from a vector a sample; null if the
// network ends in another way.
const Op* head_of(const Program& program, VarId logits) {
  for (const Op& op : program.ops()) {
    if (op.outputs[0] != logits || op.type() != "fc") continue;
    return program.var(op.inputs[0]).shape.rank() == 2 ? &op : nullptr;
  }
  return nullptr;
}

// A network of images for evaluation, up to the input of its last fully connected layer.
class ImageFeatures {
 public:
  // kUsage unless it ends with such a layer.
  ImageFeatures(const Job& job, int64_t batch, const Shape& image) {
    EvaluatedNetwork network = evaluated_network(job.model_name, job.model,
                                                 {batch, image[0], image[1], image[2]}, {kLogits});
    image_ = network.image;
    program_ = std::move(network.program);
    const Op* head = head_of(program_, find_var(network.outputs, kLogits));
    if (!head) {
      throw Error(ErrorCode::kUsage,
                  "the model " + job.model_name + " does not end with a fully connected layer",
                  "predict.embedding", "use another model, or remove it");
    }
    features_ = head->inputs[0];
    remove(*head);
  }

  VarId image() const { return image_; }
  VarId features() const { return features_; }
  int64_t size() const { return program_.var(features_).shape[1]; }
  Program take() { return std::move(program_); }

 private:
  // Weights without the head, or with another one, fit too.
  void remove(const Op& head) {
    for (size_t i = 1; i < head.inputs.size(); ++i) {
      program_.var(head.inputs[i]).kind = VarKind::kTemporary;
    }
    std::vector<Op>& ops = program_.ops();
    ops.erase(ops.begin() + (&head - ops.data()));
  }

  Program program_;
  VarId image_ = kNoVar, features_ = kNoVar;
};

class EmbeddedImages : public PredictedValues {
 public:
  EmbeddedImages(const Job& job, Device& device, int64_t batch,
                 const std::vector<Column>& columns) {
    ImageFeatures network(job, batch, image_of_columns(columns));
    image_ = network.image();
    output_ = network.features();
    size_ = network.size();
    executor_ = plan_prediction(job, device, network.take(), {output_});
  }

  Executor& executor() override { return *executor_; }

  void run(const data::Batch& batch) override {
    feed_column(*executor_, image_, batch.column("image"));
    executor_->run({.evaluate = true, .fetch = true});
    values_ = executor_->values<float>(output_);
  }

  void read(int64_t i, std::span<double> numbers) override {
    std::copy_n(values_.begin() + i * size_, size_, numbers.begin());
  }

 private:
  VarId image_ = kNoVar, output_ = kNoVar;
  int64_t size_ = 0;
  std::unique_ptr<Executor> executor_;
  std::vector<float> values_;
};

// Classes of pixels. Only the evaluation's network is built: one image is too few for batch norms
// behind a pooling, in training.
class PixelValues : public PredictedValues {
 public:
  PixelValues(const Job& job, Device& device, const PredictionLayout& layout, int64_t batch,
              const std::vector<Column>& columns)
      : layout_(layout) {
    const Shape image = image_of_columns(columns);
    EvaluatedNetwork network =
        evaluated_network(job.model_name, job.model, {batch, image[0], image[1], image[2]},
                          {layout.decoder->output()});
    image_ = network.image;
    output_ = find_var(network.outputs, layout.decoder->output());
    executor_ = plan_prediction(job, device, std::move(network.program), {output_});
  }

  Executor& executor() override { return *executor_; }

  void run(const data::Batch& batch) override {
    feed_column(*executor_, image_, batch.column("image"));
    executor_->run({.evaluate = true, .fetch = true});
    values_ = executor_->values<float>(output_);
    samples_ = batch.size;
  }

  void read(int64_t i, std::span<double> numbers) override {
    layout_.decoder->read(
        {.size = samples_,
         .output = [&](const std::string&) { return std::span<const float>(values_); }},
        i, numbers);
  }

 private:
  const PredictionLayout layout_;
  VarId image_ = kNoVar, output_ = kNoVar;
  int64_t samples_ = 0;
  std::unique_ptr<Executor> executor_;
  std::vector<float> values_;
};

[[noreturn]] void refuse(const std::string& key, const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "predict." + key, next);
}

void check_keys(const Job& job, const PredictionLayout& layout) {
  const Settings& settings = job.settings;
  const std::string format = prediction_format(settings);
  const bool lists = layout.kind == Kind::kClasses || (layout.decoder && layout.decoder->lists());
  if (settings.given("predict.top_k") && !lists) {
    refuse("top_k", "the output lists no candidates", "remove it");
  }
  if (settings.given("predict.normalize") && layout.kind != Kind::kEmbedding) {
    refuse("normalize", "only embeddings are normalised", "set predict.embedding, or remove it");
  }
  if (layout.decoder && format != "jsonl") {
    refuse("format", "predictions of the task " + job.task + " are JSON lines",
           "set it to jsonl, or give predict.output another ending");
  }
  if (format == "csv" && layout.kind == Kind::kEmbedding) {
    refuse("format", "embeddings are not written as CSV", "set it to npy or jsonl");
  }
}

bool embeds_images(const Job& job) { return job.settings.text("predict.embedding") == "features"; }

// The numbers of an embedding; kUsage if the job's model has none of this kind.
int64_t embedding_size(const Job& job) {
  if (embeds_images(job)) {
    const Shape image = image_of_columns(expected_columns(job));
    if (image.rank() != 3 || !ports_of(job.model_name, job.model).gives({kLogits})) {
      refuse("embedding", "only images have features, and the model is " + job.model_name,
             "set it to cls or mean");
    }
    return ImageFeatures(job, 1, image).size();
  }
  const auto source = language_source(job.model_name, job.model);
  if (!source || !ports_of(job.model_name, job.model).gives({kHidden})) {
    refuse("embedding", "the model " + job.model_name + " has no hidden states of tokens",
           "set it to features for a model of images, or use one of texts, such as bert");
  }
  return language_model_of(*source).hidden;
}

}  // namespace

std::unique_ptr<Executor> plan_prediction(const Job& job, Device& device, Program program,
                                          const std::vector<VarId>& results) {
  Plan plan =
      plan_program(std::move(program), results, {.backend = device.backend(), .device = &device});
  auto executor = std::make_unique<Executor>(std::move(plan), device, nullptr);
  executor->set_recording(job.train.boolean("cuda_graph"));
  executor->initialize(1);
  return executor;
}

std::string prediction_format(const Settings& settings) {
  const std::string& format = settings.text("predict.format");
  if (format != "auto") return format;
  const std::string& output = settings.text("predict.output");
  return output.ends_with(".csv") ? "csv" : output.ends_with(".npy") ? "npy" : "jsonl";
}

PredictionLayout prediction_layout(const Job& job) {
  PredictionLayout layout;
  if (embeds(job)) {
    layout = {.kind = Kind::kEmbedding, .numbers = embedding_size(job), .names = {}};
  } else if (task_of(job).predicts_probability) {
    layout = {.kind = Kind::kProbability, .numbers = 1, .names = {}};
  } else if (task_of(job).probabilities) {
    const int64_t classes = classes_of(job);
    const int64_t top = std::min(job.settings.integer("predict.top_k"), classes);
    const bool array = prediction_format(job.settings) == "npy";
    layout = {.kind = array ? Kind::kScores : Kind::kClasses,
              .numbers = array ? classes : 2 * top,
              .names = {}};
  } else if (task_of(job).decoder) {
    const TrainingOptions options = training_options(job, 1, expected_columns(job), false);
    layout = {.kind = Kind::kDecoded, .decoder = task_of(job).decoder(TaskContext{options})};
    layout.numbers = static_cast<int64_t>(layout.decoder->size());
  } else if (task_of(job).predicts_numbers) {
    layout = {.kind = Kind::kNumbers, .numbers = classes_of(job), .names = {}};
  } else {
    const auto source = language_source(job.model_name, job.model);
    std::string why, next = "remove it, or set task";
    if (source) {
      const bool encoder = language_model_of(*source).encoder.has_value();
      why = encoder ? ", which predicts tokens that training has masked, and a text has none"
                    : ", whose model continues texts";
      next = encoder ? "for embeddings, set predict.embedding in a job of the task "
                       "sequence_classification, and these weights as predict.checkpoint"
                     : "use `fleetrun generate`, or set predict.embedding";
    }
    refuse("input", "--predict does not support the task " + job.task + why, next);
  }
  check_keys(job, layout);
  return layout;
}

std::unique_ptr<PredictedValues> make_predicted_values(const Job& job, Device& device,
                                                       const PredictionLayout& layout,
                                                       int64_t batch,
                                                       const std::vector<Column>& columns) {
  if (layout.kind == Kind::kEmbedding && embeds_images(job)) {
    return std::make_unique<EmbeddedImages>(job, device, batch, columns);
  }
  if (layout.kind == Kind::kEmbedding) {
    return std::make_unique<EmbeddedTexts>(job, device, batch, columns);
  }
  if (layout.decoder && layout.decoder->gives_masks()) {
    return std::make_unique<PixelValues>(job, device, layout, batch, columns);
  }
  return std::make_unique<TaskValues>(job, device, layout, batch, columns);
}

}  // namespace fleet
