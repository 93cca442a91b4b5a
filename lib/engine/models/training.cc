#include "models/training.h"

#include <algorithm>

#include "base/text.h"
#include "models/evaluated_network.h"
#include "models/model.h"
#include "models/task.h"

namespace fleet {
namespace {

// The feeds of a program under construction. A section's network gets its inputs from them.
class FeedList {
 public:
  FeedList(Program& program, const TaskContext& context, Training* training)
      : program_(program), context_(context), training_(training) {}

  void add(const FeedDef& feed) {
    if (training_->feed(feed.name) != kNoVar) return;  // model and task both need it
    const VarId var = program_.feed(feed.name, feed.dtype, feed.shape);
    training_->feeds.push_back({feed.name, var, feed.training_only, feed.per_sample, feed.mean_of});
  }

  void add_input(const std::string& name) {
    if (name == kImage && context_.options.bytes) {
      const Shape image = context_.shape(kImage);
      const int64_t pixel = image[1] == 1 ? 1 : 4;
      add({"pixels", DType::kUInt8, {image[0], image[2], image[3], pixel}});
      add({"flip", DType::kUInt8, {image[0]}});
      return;
    }
    const Shape shape = context_.shape(name);
    add({name, find_column(context_.options.columns, name)->dtype, shape});
  }

  // The input of a section's network.
  VarId input(const std::string& name, SectionId section, const std::string& prefix) const {
    if (name != kImage || !context_.options.bytes) return training_->feed(name);
    const VarId image = program_.temporary(prefix + kImage);
    const Normalization& bytes = *context_.options.bytes;
    program_.append(section, "normalize_image",
                    {training_->feed("pixels"), training_->feed("flip")}, {image},
                    {{"mean", bytes.mean}, {"std", bytes.deviation}});
    return image;
  }

 private:
  static constexpr char kImage[] = "image";

  Program& program_;
  const TaskContext& context_;
  Training* training_;
};

// Numbers for each sample come first, then those that a step has once.
void add_feeds(Program& program, const TaskContext& context, Training* training) {
  FeedList list(program, context, training);
  const ModelPorts ports = ports_of(context.options.model, context.model());
  for (const std::string& input : ports.inputs_for(wanted_outputs(context))) list.add_input(input);
  const TaskDef& task = task_registry().get(context.options.task);
  const std::vector<FeedDef> feeds = task.feeds(context);
  const auto add = [&](bool per_sample, bool training_only) {
    for (const FeedDef& feed : feeds) {
      if (feed.per_sample == per_sample && feed.training_only == training_only) list.add(feed);
    }
  };
  add(true, false);
  list.add({"sample_key", DType::kInt64, {context.batch()}});
  add(true, true);
  list.add({"learning_rate", DType::kFloat32, {1}, false, false});
  add(false, false);
  add(false, true);
}

std::string place_of(const std::string& model) { return "model '" + model + "'"; }

// Calls `build`, and blames the model for its errors: its author wrote the network.
template <typename Build>
auto of_model(const std::string& model, const Build& build) {
  try {
    return build();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInternal) throw;
    throw Error(ErrorCode::kUsage, error.failure(), place_of(model),
                "correct its FLEET_MODEL, or the FLEET_OP that it uses");
  }
}

// Appends the network to the section; returns its outputs.
NamedVars build_network(Network& network, const FeedList& feeds, SectionId section,
                        const TrainingOptions& options) {
  const ModelDef& model = model_registry().get(options.model);
  const std::string prefix = network.training() ? "" : "evaluate/";
  const std::set<std::string> wanted = wanted_outputs({options});
  NamedVars inputs;
  for (const std::string& name :
       ports_of(options.model, options.model_settings).inputs_for(wanted)) {
    inputs[name] = feeds.input(name, section, prefix);
  }
  inputs["sample_key"] = network.sample_key();
  network.set_wanted_outputs(wanted);
  set_norms(network, options.model_settings);
  const NamedVars outputs =
      of_model(options.model, [&] { return model.build(network, inputs, options.model_settings); });
  for (const std::string& name : wanted) {
    const VarId var = find_var(outputs, name);
    if (var >= 0 && var < network.program().var_count()) continue;
    throw Error(ErrorCode::kUsage, "returns no variable '" + name + "'", place_of(options.model),
                "return the result of its last layer as '" + name + "', or correct def.outputs");
  }
  return outputs;
}

// Checks the declarations of a model besides its network.
void check_definition(const TrainingOptions& options) {
  const ModelDef& model = model_registry().get(options.model);
  const auto refuse = [&](const std::string& what, const std::string& next) {
    throw Error(ErrorCode::kUsage, what, place_of(options.model), next);
  };
  if (!model.build) refuse("it has no network", "set def.build in its FLEET_MODEL");
  const Column* image = find_column(options.columns, "image");
  if (image && (image->shape.rank() != 3 || image->shape.elements() < 1)) {
    refuse("its image is " + image->shape.text(),
           "set def.image to channels, height and width, each from 1 up");
  }
  if (options.batch < 1) refuse("the batch is empty", "set data.batch_size to 1 or more");
  of_model(options.model, [&] {
    options.model_settings.boolean("use_cudnn");
    options.model_settings.boolean("winograd");
    return 0;
  });
}

bool gives(const std::vector<std::string>& outputs, const std::string& name) {
  return std::ranges::find(outputs, name) != outputs.end();
}

ModelPorts usual_ports(const std::string& model) {
  const ModelDef& def = model_registry().get(model);
  return {def.inputs, def.outputs, def.extras};
}

// A model with these outputs, for these data if possible; "": none.
std::string other_model(const std::vector<std::string>& wanted,
                        const std::vector<Column>& columns) {
  std::string any;
  for (const std::string& name : model_registry().names()) {
    const ModelPorts ports = usual_ports(name);
    if (!ports.gives(wanted)) continue;
    if (any.empty()) any = name;
    const auto has = [&](const auto& input) { return find_column(columns, input) != nullptr; };
    if (std::ranges::all_of(ports.inputs, has)) return name;
  }
  return any;
}

// The kind of a model with these outputs (models/model.h has their usual names).
std::string kind_of_model(const std::vector<std::string>& outputs) {
  if (gives(outputs, "masked_hidden")) return "an encoder of texts";
  if (gives(outputs, "head")) return "a language model";
  if (gives(outputs, "pixel_logits")) return "a network with a class of each pixel";
  return gives(outputs, "logits") ? "a classifier"
                                  : "a model with the outputs " + join(outputs, ", ");
}

// A parameter that only the evaluation has would never be trained.
void check_parameters(const std::vector<VarId>& trained, const Program& program,
                      const std::string& model) {
  if (trained.empty()) {
    throw Error(ErrorCode::kUsage, "has no parameters to train", place_of(model),
                "use a layer that has some, such as linear()");
  }
  const std::vector<VarId> all = program.parameters();
  if (all.size() == trained.size()) return;
  throw Error(ErrorCode::kUsage,
              "'" + program.var(all[trained.size()]).name + "' exists in evaluation only",
              place_of(model), "build the same layers for training and for evaluation");
}

}  // namespace

void check_task_of_model(const TrainingOptions& options) {
  const ModelPorts own = ports_of(options.model, options.model_settings);
  const std::set<std::string> names = wanted_outputs({options});
  const std::vector<std::string> wanted(names.begin(), names.end());
  if (own.gives(wanted)) return;
  std::vector<std::string> tasks;
  for (const std::string& name : task_registry().names()) {
    if (own.gives(task_registry().get(name).outputs)) tasks.push_back(name);
  }
  const std::string other = other_model(wanted, options.columns);
  const std::string next = tasks.empty() ? "" : "set task to " + join(tasks, " or ");
  const std::string instead = other.empty() ? "" : "choose another model, such as " + other;
  throw Error(ErrorCode::kUsage,
              "it is " + kind_of_model(own.outputs) + ", and the task " + options.task + " needs " +
                  kind_of_model(wanted),
              place_of(options.model),
              next + (next.empty() || instead.empty() ? "" : ", or ") + instead);
}

VarId Training::feed(std::string_view name) const {
  const auto found = std::ranges::find(feeds, name, &TrainingFeed::name);
  return found == feeds.end() ? kNoVar : found->var;
}

static VarId sum_of(const std::vector<TrainingSum>& sums, std::string_view name) {
  const auto found = std::ranges::find(sums, name, &TrainingSum::name);
  return found == sums.end() ? kNoVar : found->var;
}

VarId Training::training_sum(std::string_view name) const { return sum_of(training_sums, name); }

VarId Training::evaluation_sum(std::string_view name) const {
  return sum_of(evaluation_sums, name);
}

std::vector<Column> image_columns(const Shape& image) {
  return {{"image", DType::kFloat32, image}, {"label", DType::kInt64, {}}};
}

Training build_training(Program& program, const TrainingOptions& options) {
  check_definition(options);
  check_task_of_model(options);
  const TaskContext context{options};
  const TaskDef& task = task_registry().get(options.task);
  Training training;
  of_model(options.model, [&] {
    training.metrics = std::make_shared<MetricTable>(task.metrics(context));
    add_feeds(program, context, &training);
    return 0;
  });
  const FeedList feeds(program, context, &training);

  training.forward = program.add_section("forward", {.training = true});
  Network network(program, training.forward, true, training.feed("sample_key"));
  training.outputs = build_network(network, feeds, training.forward, options);
  const std::vector<VarId> trained = program.parameters();
  training.blocks = network.blocks();
  training.devices = network.devices();
  training.fetch = program.add_section("fetch", {.training = true, .fetch_only = true});
  TaskBuilder trains(program, context, &training, false);
  task.build(trains);
  FLEET_CHECK(training.loss != kNoVar, "the task " + options.task + " sets no loss");

  training.evaluate = program.add_section("evaluate", {.training = false, .evaluation = true});
  Network evaluation(program, training.evaluate, false, kNoVar);
  training.evaluate_outputs = build_network(evaluation, feeds, training.evaluate, options);
  check_parameters(trained, program, options.model);
  training.make_collector = [options]() -> std::unique_ptr<EvaluationCollector> {
    const TaskDef& def = task_registry().get(options.task);
    return def.collector ? def.collector({options}) : nullptr;
  };
  if (const auto collector = training.make_collector()) {
    for (const std::string& name : collector->outputs()) {
      training.collected.push_back(training.evaluate_output(name));
    }
  }
  TaskBuilder evaluates(program, context, &training, true);
  task.build(evaluates);
  choose_kernels(program, options.model_settings);
  of_model(options.model, [&] {
    verify(program);
    return 0;
  });
  return training;
}

Shape image_shape(const std::string& model, int64_t channels, int64_t height, int64_t width) {
  Shape shape = model_registry().get(model).image;
  if (channels > 0) shape[0] = channels;
  if (height > 0) shape[1] = height;
  if (width > 0) shape[2] = width;
  return shape;
}

}  // namespace fleet
