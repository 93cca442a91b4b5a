#include "models/training.h"

#include "models/model.h"

namespace fleet {
namespace {

// Per-sample values.
struct Losses {
  VarId values;
  VarId weights = kNoVar;  // the weight of the label, if classes have weights
};

Metrics append_metrics(Program& program, SectionId section, const Training& training, VarId logits,
                       const Losses& losses, const std::string& prefix) {
  Metrics metrics;
  const auto sum = [&](VarId values, const char* name) {
    return program.emit(section, "weighted_sum", {values, training.weight}, {}, prefix + name)[0];
  };
  metrics.losses = sum(losses.values, "losses");
  if (losses.weights != kNoVar) metrics.loss_weights = sum(losses.weights, "loss_weights");
  metrics.counts = program.emit(section, "accuracy", {logits, training.label, training.weight},
                                {{"k", training.top_k}}, prefix + "counts")[0];
  return metrics;
}

// The logits that losses are computed from, and the names of their variables.
struct LossContext {
  SectionId section;
  VarId logits;
  std::string prefix;
};

Losses append_losses(Program& program, const LossContext& context, VarId label,
                     const Training& training, const TrainingOptions& options) {
  const auto& [section, logits, prefix] = context;
  const Attributes attributes = {{"label_smoothing", options.label_smoothing},
                                 {"ignore_index", options.ignore_index}};
  const VarId losses = program.temporary(prefix + "sample_losses");
  if (!options.class_weights) {
    program.append(section, "softmax_with_cross_entropy", {logits, label}, {losses}, attributes);
    return {losses};
  }
  const VarId weights = program.temporary(prefix + "sample_weights");
  program.append(section, "weighted_cross_entropy", {logits, label, training.class_weights},
                 {losses, weights}, attributes);
  return {losses, weights};
}

// Losses with two labels for each sample.
Losses append_mixed_losses(Program& program, const LossContext& context, const Training& training,
                           const TrainingOptions& options) {
  const Losses own = append_losses(program, context, training.label, training, options);
  LossContext of_other = context;
  of_other.prefix += "other_";
  const Losses other = append_losses(program, of_other, training.other_label, training, options);
  // other + share * (own - other)
  const auto mixed = [&](VarId a, VarId b, const std::string& name) {
    const auto emit = [&](const char* op, VarId x, VarId y, const std::string& out) {
      return program.emit(context.section, op, {x, y}, {}, context.prefix + out)[0];
    };
    const VarId distance = emit("elementwise_sub", a, b, name + "_distance");
    const VarId part = emit("elementwise_mul", distance, training.own_share, name + "_part");
    return emit("elementwise_add", b, part, name);
  };
  Losses losses{mixed(own.values, other.values, "mixed_losses")};
  if (own.weights != kNoVar) losses.weights = mixed(own.weights, other.weights, "mixed_weights");
  return losses;
}

// Moves convolutions that have a kernel of our own away from cuDNN.
void leave_cudnn(Program& program) {
  for (Op& op : program.ops()) {
    const bool depthwise = op.type() == "conv2d" && op.attributes.integer("groups") > 1 &&
                           program.var(op.inputs[1]).shape[1] == 1;
    if (depthwise || op.type() == "conv2d_transpose") op.attributes.set("use_cudnn", false);
  }
}

void leave_winograd(Program& program) {
  for (Op& op : program.ops()) {
    if (op.attributes.has("winograd")) op.attributes.set("winograd", false);
  }
}

void add_feeds(Program& program, const TrainingOptions& options, Training* training) {
  const Shape& image = options.image;
  const Shape samples = {options.batch};
  if (options.bytes) {
    const int64_t pixel = image[0] == 1 ? 1 : 4;
    training->pixels =
        program.feed("pixels", DType::kUInt8, {options.batch, image[1], image[2], pixel});
    training->flip = program.feed("flip", DType::kUInt8, samples);
  } else {
    training->image =
        program.feed("image", DType::kFloat32, {options.batch, image[0], image[1], image[2]});
  }
  training->label = program.feed("label", DType::kInt64, samples);
  training->weight = program.feed("weight", DType::kFloat32, samples);
  training->sample_key = program.feed("sample_key", DType::kInt64, samples);
  if (options.mixed_labels) {
    training->other_label = program.feed("other_label", DType::kInt64, samples);
    training->own_share = program.feed("own_share", DType::kFloat32, samples);
  }
  training->learning_rate = program.feed("learning_rate", DType::kFloat32, {1});
  if (options.class_weights) {
    const int64_t classes = options.model_settings.integer("num_classes");
    training->class_weights = program.feed("class_weights", DType::kFloat32, {classes});
  }
}

// The input of a section's network.
VarId append_image(Program& program, SectionId section, const TrainingOptions& options,
                   const Training& training, const std::string& prefix) {
  if (!options.bytes) return training.image;
  const VarId image = program.temporary(prefix + "image");
  program.append(section, "normalize_image", {training.pixels, training.flip}, {image},
                 {{"mean", options.bytes->mean}, {"std", options.bytes->deviation}});
  return image;
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

// Appends the network to the section; returns the logits.
VarId build_network(Network& network, VarId image, const TrainingOptions& options) {
  const ModelDef& model = model_registry().get(options.model);
  const VarId logits =
      of_model(options.model, [&] { return model.build(network, image, options.model_settings); });
  const Shape wanted = {options.batch, options.model_settings.integer("num_classes")};
  if (logits < 0 || logits >= network.program().var_count()) {
    throw Error(ErrorCode::kUsage, "returns no variable", place_of(options.model),
                "return the logits: the result of its last layer");
  }
  const Var& var = network.program().var(logits);
  if (var.shape == wanted && var.dtype == DType::kFloat32) return logits;
  throw Error(ErrorCode::kUsage, std::string("returns ") + name_of(var.dtype) + var.shape.text(),
              place_of(options.model),
              "return logits, float32 [batch, num_classes] = " + wanted.text());
}

// What a model declares besides its network.
void check_definition(const TrainingOptions& options) {
  const ModelDef& model = model_registry().get(options.model);
  const auto refuse = [&](const std::string& what, const std::string& next) {
    throw Error(ErrorCode::kUsage, what, place_of(options.model), next);
  };
  if (!model.build) refuse("it has no network", "set def.build in its FLEET_MODEL");
  if (options.image.rank() != 3 || options.image.elements() < 1) {
    refuse("its image is " + options.image.text(),
           "set def.image to channels, height and width, each from 1 up");
  }
  if (options.batch < 1) refuse("the batch is empty", "set data.batch_size to 1 or more");
  of_model(options.model, [&] {
    options.model_settings.boolean("use_cudnn");
    options.model_settings.boolean("winograd");
    return options.model_settings.integer("num_classes");
  });
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

Training build_training(Program& program, const TrainingOptions& options) {
  check_definition(options);
  const int64_t classes = options.model_settings.integer("num_classes");
  Training training;
  add_feeds(program, options, &training);
  training.top_k = classes > 5 ? 5 : 1;

  training.forward = program.add_section("forward", {.training = true});
  Network network(program, training.forward, true, training.sample_key);
  const VarId image = append_image(program, training.forward, options, training, "");
  training.logits = build_network(network, image, options);
  const std::vector<VarId> trained = program.parameters();
  training.blocks = network.blocks();
  training.devices = network.devices();
  const LossContext forward{training.forward, training.logits, ""};
  Losses losses = options.mixed_labels
                      ? append_mixed_losses(program, forward, training, options)
                      : append_losses(program, forward, training.label, training, options);
  training.loss = program.emit(training.forward, "mean", {losses.values}, {}, "loss")[0];

  training.fetch = program.add_section("fetch", {.training = true, .fetch_only = true});
  training.training_metrics =
      append_metrics(program, training.fetch, training, training.logits, losses, "fetch/");

  training.evaluate = program.add_section("evaluate", {.training = false, .evaluation = true});
  Network evaluation(program, training.evaluate, false, kNoVar);
  const VarId evaluated = append_image(program, training.evaluate, options, training, "evaluate/");
  training.evaluate_logits = build_network(evaluation, evaluated, options);
  check_parameters(trained, program, options.model);
  losses = append_losses(program, {training.evaluate, training.evaluate_logits, "evaluate/"},
                         training.label, training, options);
  training.evaluation_metrics = append_metrics(program, training.evaluate, training,
                                               training.evaluate_logits, losses, "evaluate/");
  if (!options.model_settings.boolean("use_cudnn")) leave_cudnn(program);
  if (!options.model_settings.boolean("winograd")) leave_winograd(program);
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
