#include "models/named_metrics.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"

namespace fleet {
namespace {

// Whether each sample, or each pixel, has one of the model's classes.
bool is_of_one_class(MetricInput input) {
  return input == MetricInput::kClasses || input == MetricInput::kPixels;
}

// Those that suit the task and its number of classes.
std::vector<std::string> metrics_of(const TaskContext& context, MetricInput input) {
  std::vector<std::string> suitable;
  for (const std::string& name : named_metric_registry().names()) {
    const NamedMetric& metric = named_metric_registry().get(name);
    const bool fits = !is_of_one_class(input) || (context.classes() >= metric.least_classes &&
                                                  (!metric.binary || context.classes() == 2));
    if (metric.takes(input) && fits) suitable.push_back(name);
  }
  return suitable;
}

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "train.metrics", next);
}

// The metric of this name, if it suits the task.
const NamedMetric& checked_metric(const std::string& name, const TaskContext& context,
                                  MetricInput input) {
  const std::vector<std::string> suitable = metrics_of(context, input);
  const NamedMetric* metric = named_metric_registry().find(name);
  if (!metric) {
    const std::vector<std::string> tasks = tasks_with_metric(name);
    const bool of_another = nearest_name(name, suitable).empty() && !tasks.empty();
    refuse("unknown metric '" + name + "'",
           (of_another ? "the task " + join(tasks, " or ") + " has it; " : "") +
               suggestion(name, suitable));
  }
  if (!metric->takes(input)) {
    refuse("the metric '" + name + "' does not compare " + name_of(input) + ", which the task " +
               context.options.task + " gives",
           "use " + join(suitable, ", "));
  }
  const int64_t classes = is_of_one_class(input) ? context.classes() : 2;
  if (metric->binary && classes != 2) {
    refuse(
        "the metric '" + name + "' is for 2 classes, and the model has " + std::to_string(classes),
        "use macro_" + name + ", or another metric");
  }
  if (is_of_one_class(input) && classes < metric->least_classes) {
    refuse("the metric '" + name + "' is for " + std::to_string(metric->least_classes) +
               " classes or more, and the model has " + std::to_string(classes),
           "use " + join(suitable, ", "));
  }
  return *metric;
}

}  // namespace

const char* name_of(MetricInput input) {
  switch (input) {
    case MetricInput::kClasses:
      return "classes";
    case MetricInput::kLabels:
      return "several labels of a sample";
    case MetricInput::kPixels:
      return "classes of pixels";
    case MetricInput::kNumbers:
      return "numbers";
    case MetricInput::kEntities:
      return "entities";
    case MetricInput::kAnswers:
      return "answers";
    default:
      return "clicks";
  }
}

bool NamedMetric::takes(MetricInput input) const {
  switch (input) {
    case MetricInput::kClasses:
      return of_classes != nullptr || of_scores != nullptr || of_curve != nullptr;
    case MetricInput::kLabels:
      return of_labels != nullptr || of_curve != nullptr;
    case MetricInput::kPixels:
      return of_classes != nullptr;
    case MetricInput::kNumbers:
      return of_numbers != nullptr;
    case MetricInput::kEntities:
      return of_entities != nullptr;
    case MetricInput::kAnswers:
      return of_answers != nullptr;
    default:
      return of_clicks != nullptr;
  }
}

Registry<NamedMetric>& named_metric_registry() {
  static Registry<NamedMetric> registry("metric");
  return registry;
}

std::vector<std::string> tasks_with_metric(const std::string& name) {
  TrainingOptions options{.model = "mlp"};
  options.model_settings = ConfigTree().validate(model_registry().get(options.model).schema);
  std::vector<std::string> tasks;
  for (const std::string& task : task_registry().names()) {
    options.task = task;
    options.task_settings = TrainingOptions::default_task_settings(task);
    const TaskDef& def = task_registry().get(task);
    if (!def.metrics) continue;
    try {
      const MetricTable table = def.metrics(TaskContext{options});
      const bool has = std::ranges::any_of(table.metrics, [&](const MetricDef& metric) {
        return lower_case(metric.name) == lower_case(name);
      });
      if (has) tasks.push_back(task);
    } catch (const Error&) {
      // Its metrics depend on a model of its own.
    }
  }
  return tasks;
}

void metrics_key(Schema* schema, MetricInput input, std::vector<std::string> initial) {
  // The names of all metrics are not known before main(), when tasks declare their keys.
  schema->texts("metrics", std::move(initial),
                std::string("Metrics of evaluations, those that compare ") + name_of(input) +
                    "; the first one is shown next to the loss");
}

std::vector<std::string> registered_metrics(const TaskContext& context) {
  std::vector<std::string> names = context.settings().texts("metrics");
  std::erase_if(names, [](const auto& name) { return !named_metric_registry().find(name); });
  return names;
}

void add_named_metrics(const TaskContext& context, MetricInput input, MetricTable* table) {
  const std::vector<std::string> names = context.settings().texts("metrics");
  table->more_metrics = metrics_of(context, input);
  for (size_t i = 0; i < names.size(); ++i) {
    const bool known = table->find(names[i]) != nullptr;  // such as acc5
    const NamedMetric* metric = known ? nullptr : &checked_metric(names[i], context, input);
    if (std::find(names.begin(), names.begin() + i, names[i]) != names.begin() + i) {
      refuse("the metric '" + names[i] + "' is given twice", "remove one of them");
    }
    if (table->headline.empty()) table->headline = names[i];
    if (known) continue;
    table->metrics.push_back({.name = names[i],
                              .decimals = metric->decimals,
                              .larger_is_better = metric->larger_is_better,
                              .collected = true});
  }
}

}  // namespace fleet
