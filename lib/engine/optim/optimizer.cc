#include "optim/optimizer.h"

#include <algorithm>
#include <map>

#include "optim/parameter_groups.h"
#include "optim/row_update.h"
#include "optim/update_op.h"
#include "optim/update_phases.h"

namespace fleet {
namespace {

// The factor min(1, clip_norm / norm) for these gradients taken together.
VarId append_clip_scale(Program& program, SectionId section, const std::vector<VarId>& gradients,
                        double clip_norm, VarId unscale, const std::string& hint) {
  const VarId squares = program.emit(section, "sum_of_squares", gradients, {}, hint)[0];
  return program.emit(section, "clip_scale", {squares, unscale}, {{"clip_norm", clip_norm}},
                      hint)[0];
}

// The gradient with each element bounded, in float32 and without the loss scale.
VarId append_clip_by_value(Program& program, SectionId section, VarId gradient, double bound,
                           VarId unscale, const std::string& parameter) {
  const std::string hint = parameter + ".clipped";
  gradient = in_float32(program, section, gradient, hint);
  if (unscale != kNoVar) {
    gradient = program.emit(section, "elementwise_mul", {gradient, unscale}, {}, hint)[0];
  }
  return program.emit(section, "clip", {gradient}, {{"min", -bound}, {"max", bound}}, hint)[0];
}

// The gradient with each unit bounded by the unit's size (optim/adaptive_clip.cc), in float32 and
// without the loss scale.
VarId append_adaptive_clip(Program& program, SectionId section, const Update& update,
                           double clip_factor, VarId unscale) {
  const std::string parameter = program.var(update.parameter).name;
  if (update.rows != kNoVar) {
    throw Error(ErrorCode::kUsage, "clip = adaptive needs the whole gradient",
                "the sparse embedding '" + parameter + "'",
                "add it to optimizer.clip_exclude, choose another clip, or set sparse to false");
  }
  const VarId gradient =
      in_float32(program, section, update.gradient, parameter + ".gradient.float32");
  const VarId weights = in_float32(program, section, update.parameter, parameter + ".float32");
  return program.emit(section, "adaptive_clip", {gradient, weights, unscale},
                      {{"clip_factor", clip_factor}}, parameter + ".clipped")[0];
}

void append_clipping(Program& program, SectionId section, const Settings& settings, VarId unscale,
                     std::vector<Update>& updates) {
  const std::string& clip = settings.text("clip");
  const auto refuse = [&](const std::string& key, const std::string& kinds) {
    if (settings.given(key)) {
      throw Error(ErrorCode::kUsage, key + " has no effect with clip = " + clip, "optimizer",
                  "set clip to " + kinds + ", or remove " + key + " from the job");
    }
  };
  if (clip != "norm" && clip != "global_norm") refuse("clip_norm", "global_norm or norm");
  if (clip != "value") refuse("clip_value", "value");
  if (clip != "adaptive") {
    refuse("clip_factor", "adaptive");
    refuse("clip_exclude", "adaptive");
  }
  if (updates.empty()) return;
  if (clip == "global_norm") {
    std::vector<VarId> gradients;
    for (const Update& update : updates) gradients.push_back(update.gradient);
    const VarId scale = append_clip_scale(program, section, gradients, settings.number("clip_norm"),
                                          unscale, "global_norm");
    for (Update& update : updates) update.gradient_scale = scale;
  } else if (clip == "norm") {
    for (Update& update : updates) {
      update.gradient_scale =
          append_clip_scale(program, section, {update.gradient}, settings.number("clip_norm"),
                            unscale, program.var(update.parameter).name + ".norm");
    }
  } else if (clip == "value") {
    const double bound = settings.number("clip_value");
    for (Update& update : updates) {
      update.gradient = append_clip_by_value(program, section, update.gradient, bound, unscale,
                                             program.var(update.parameter).name);
      update.gradient_scale = kNoVar;
    }
  } else if (clip == "adaptive") {
    const std::vector<std::string> excluded = settings.texts("clip_exclude");
    for (Update& update : updates) {
      if (matches_any(excluded, program.var(update.parameter).name)) continue;
      update.gradient =
          append_adaptive_clip(program, section, update, settings.number("clip_factor"), unscale);
      update.gradient_scale = kNoVar;
    }
  }
}

}  // namespace

VarId UpdateContext::state(VarId parameter, const std::string& name) {
  const Var& var = program_.var(parameter);
  return program_.state(var.name + "." + name, var.shape, Init(), var.dtype);
}

VarId UpdateContext::state(VarId parameter, const std::string& name, const Shape& shape) {
  return program_.state(program_.var(parameter).name + "." + name, shape, Init());
}

VarId UpdateContext::step() {
  if (step_ == kNoVar) {
    std::string name = "optimizer.step";
    for (int phase = 1; program_.find(name) != kNoVar; ++phase) {
      name = kStepOfPhase + std::to_string(phase);
    }
    step_ = program_.state(name, {1}, Init(), DType::kInt64);
    program_.append(section_, "increment", {step_, scaling_.found_inf}, {step_});
  }
  return step_;
}

VarId UpdateContext::scaled_rate(VarId rate, double factor) {
  if (factor == 1) return rate;
  const auto [found, is_new] = rates_.try_emplace({rate, factor}, kNoVar);
  if (is_new) {
    found->second =
        program_.emit(section_, "scale", {rate}, {{"scale", factor}}, "learning_rate.scaled")[0];
  }
  return found->second;
}

Registry<OptimizerDef>& optimizer_registry() {
  static Registry<OptimizerDef> registry("optimizer");
  return registry;
}

Schema optimizer_schema(const std::string& name) {
  const OptimizerDef& def = optimizer_registry().get(name);
  return Schema()
      .choice("name", name, optimizer_registry().names(), def.help)
      .section("", def.schema)
      .number("weight_decay", def.weight_decay, 0, 1e6, "weight decay of the parameters")
      .texts("exclude_from_weight_decay", {},
             "parameters whose names contain one of these texts do not decay")
      .boolean("weight_decay_exclude_1d", false,
               "leave out parameters of one dimension (biases, scales of norms), and class tokens, "
               "embeddings of positions and tables of relative positions of image networks, as "
               "timm does; a group's weight_decay comes first")
      .texts("groups", {},
             "'PATTERN: rate=0.1 weight_decay=0' for parameters that match; the first match "
             "counts; rate multiplies the schedule's rate")
      .number("layer_decay", 1, 1e-6, 1,
              "factor of the rate from one block of the model to the block before it: parameters "
              "behind the last block have the schedule's rate, those of the first the lowest; 1: "
              "one rate")
      .texts("frozen", {}, "shell patterns of parameters that are not trained")
      .choice("clip", "none", {"none", "global_norm", "norm", "value", "adaptive"},
              "clip gradients: by their global norm, by the norm of each, per element, or the "
              "gradient of each output row by the norm of its weights")
      .number("clip_norm", 1, 1e-30, 1e30, "largest norm, if clip is global_norm or norm")
      .number("clip_value", 1, 1e-30, 1e30, "largest absolute value, if clip is value")
      .number("clip_factor", 0.01, 1e-30, 1e30,
              "largest norm of a row's gradient in parts of the norm of its weights, if clip is "
              "adaptive")
      .texts("clip_exclude", {},
             "shell patterns of parameters that adaptive clipping leaves out, such as the head");
}

double weight_decay_of(const Settings& settings, const Var& parameter) {
  const std::vector<std::string> parts = settings.texts("exclude_from_weight_decay");
  const bool excluded = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return parameter.name.find(part) != std::string::npos;
  });
  if (excluded) return 0;
  const std::vector<ParameterGroup> groups = parameter_groups(settings);
  const ParameterGroup* group = group_of(groups, parameter.name);
  if (group && group->weight_decay) return *group->weight_decay;
  const bool left_out = settings.boolean("weight_decay_exclude_1d") &&
                        (parameter.shape.rank() <= 1 || parameter.no_weight_decay);
  return left_out ? 0 : settings.number("weight_decay");
}

// The rate of each group: the schedule's rate times a factor, computed once per factor.
class GroupRates {
 public:
  GroupRates(Program& program, SectionId section, VarId learning_rate, const Settings& settings)
      : program_(program), section_(section), groups_(parameter_groups(settings)) {
    by_factor_[1] = learning_rate;
  }
  VarId of(const Var& parameter) {
    const ParameterGroup* group = group_of(groups_, parameter.name);
    const double factor = (group ? group->rate : 1) * parameter.rate;
    if (const auto found = by_factor_.find(factor); found != by_factor_.end()) return found->second;
    return by_factor_[factor] = program_.emit(section_, "scale", {by_factor_[1]},
                                              {{"scale", factor}}, "learning_rate.group")[0];
  }

 private:
  Program& program_;
  const SectionId section_;
  const std::vector<ParameterGroup> groups_;
  std::map<double, VarId> by_factor_;
};

void append_updates(Program& program, SectionId optimize, const std::vector<VarId>& parameters,
                    VarId learning_rate, const Settings& settings, const GradientScaling& scaling,
                    uint64_t seed) {
  append_updates_by_phase(program, optimize, parameters, learning_rate, settings, scaling, seed,
                          {});
}

void append_updates_by_phase(Program& program, SectionId optimize,
                             const std::vector<VarId>& parameters, VarId learning_rate,
                             const Settings& settings, const GradientScaling& scaling,
                             uint64_t seed, const TrainedFrom& trained_from) {
  const OptimizerDef& def = optimizer_registry().get(settings.text("name"));
  std::vector<Update> updates;
  GroupRates rates(program, optimize, learning_rate, settings);
  for (VarId parameter : parameters) {
    const VarId gradient = program.gradient(parameter);
    if (!program.var(parameter).trainable || gradient == kNoVar) continue;
    updates.push_back({parameter, gradient, scaling.unscale,
                       weight_decay_of(settings, program.var(parameter)),
                       rates.of(program.var(parameter)), rows_of_gradient(program, gradient)});
  }
  append_clipping(program, optimize, settings, scaling.unscale, updates);
  std::map<int, std::vector<Update>> by_phase;  // the first one's count is "optimizer.step"
  for (const Update& update : updates) {
    const auto found = trained_from.find(update.parameter);
    by_phase[found == trained_from.end() ? 0 : found->second].push_back(update);
  }
  for (const auto& [phase, of_phase] : by_phase) {
    UpdateContext context(program, optimize, settings, scaling, seed);
    for (const Update& update : of_phase) def.append(context, update);
  }
}

}  // namespace fleet
