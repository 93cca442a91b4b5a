#include "train/job_task.h"

#include "base/text.h"
#include "data/augment.h"
#include "data/source.h"
#include "models/model.h"
#include "models/task.h"
#include "models/text/language_models.h"
#include "train/class_weights.h"

namespace fleet {

int64_t classes_of(const Job& job) { return classes_of_model(job.model_name, job.model); }

int64_t ignored_label(const Job& job) {
  return job.train.has("ignore_index") ? job.train.integer("ignore_index") : -100;
}

// The pipeline decodes images to this column.
static std::vector<Column> with_image(std::vector<Column> columns, const Shape& image) {
  for (Column& column : columns) {
    if (column.name == "image" && column.ragged) column = {"image", DType::kFloat32, image};
  }
  if (image.rank() != 3) return columns;
  return data::with_mask_size(std::move(columns), image[1], image[2]);
}

std::vector<Column> columns_of(const data::InputPipeline& pipeline) {
  const data::ImageShape& image = pipeline.image();
  return with_image(pipeline.source().columns(), {image.channels, image.height, image.width});
}

std::vector<Column> expected_columns(const Job& job, const data::ImageShape& image) {
  std::vector<Column> columns = data::declared_columns(
      job.data, {.classes = classes_of(job), .ignored_label = ignored_label(job)});
  if (!find_column(columns, "image")) return columns;
  return with_image(std::move(columns),
                    image_shape(job.model_name, image.channels, image.height, image.width));
}

std::vector<Column> expected_columns(const Job& job) {
  const auto size = [&](const char* key) {
    return static_cast<int>(job.data.integer(std::string("image.") + key));
  };
  return expected_columns(job, {size("channels"), size("height"), size("width")});
}

Shape image_of_columns(const std::vector<Column>& columns) {
  const Column* image = find_column(columns, "image");
  return image ? image->shape : Shape{};
}

bool mixes_samples(const Job& job) { return data::mixes_labels(job.data.section("augment")); }

// data.mean and data.std, one per channel: the input pipeline has checked that they fit.
static std::optional<Normalization> normalization(const Job& job, const Shape& image) {
  if (image.rank() != 3) return std::nullopt;
  const auto spread = [&](std::vector<double> values) {
    if (values.size() == 1) values.resize(static_cast<size_t>(image[0]), values[0]);
    return values;
  };
  return Normalization{spread(job.data.numbers("mean")), spread(job.data.numbers("std"))};
}

// MissingColumn if the columns of these options lack what model and task need.
static void check_columns(const TrainingOptions& options) {
  const TaskContext context{options};
  const ModelPorts ports = ports_of(options.model, options.model_settings);
  for (const auto& input : ports.inputs_for(wanted_outputs(context))) context.shape(input);
  task_registry().get(options.task).feeds(context);
  task_registry().get(options.task).metrics(context);
}

// The sources whose samples have all columns, with the defaults of their keys.
static std::vector<std::string> fitting_sources(const TrainingOptions& options,
                                                const data::PipelineContext& context) {
  std::vector<std::string> names;
  for (const std::string& name : data::sources().names()) {
    const Settings data = ConfigTree().validate(data::data_schema(name));
    TrainingOptions other = options;
    other.columns = data::declared_columns(data, context);
    try {
      check_columns(other);
      names.push_back(name);
    } catch (const Error&) {
      continue;  // it lacks one
    }
  }
  return names;
}

std::set<std::string> outputs_of(const Job& job) {
  const TrainingOptions options = training_options(job, 1, expected_columns(job), false);
  return wanted_outputs({options});
}

void check_task(const Job& job) {
  const TrainingOptions options = training_options(job, 1, expected_columns(job), false);
  check_task_of_model(options);
  try {
    check_columns(options);
  } catch (const MissingColumn& missing) {
    const std::string source = job.data.text("source");
    std::vector<std::string> names = fitting_sources(options, {.classes = classes_of(job)});
    std::erase(names, source);  // with the defaults of its keys
    if (names.empty()) throw;
    const char* keys = data::sources().get(source).column_keys;
    throw Error(ErrorCode::kUsage,
                "the source " + source + " gives no '" + missing.column() + "', which the model " +
                    job.model_name + " with the task " + job.task + " needs",
                "data.source",
                (keys ? std::string("correct ") + keys + ", or " : "") + "set it to " +
                    join(names, " or "));
  }
}

TrainingOptions training_options(const Job& job, int64_t batch, std::vector<Column> columns,
                                 bool bytes) {
  TrainingOptions options{.model = job.model_name,
                          .model_settings = job.model,
                          .task = job.task,
                          .task_settings = job.train,
                          .batch = batch,
                          .columns = std::move(columns),
                          .class_weights = weighs_classes(job),
                          .mixed_labels = mixes_samples(job)};
  if (bytes) options.bytes = normalization(job, image_of_columns(options.columns));
  return options;
}

}  // namespace fleet
