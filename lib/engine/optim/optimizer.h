// Update rules: each is a registered builder of operations with its own schema.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "graph/program.h"

namespace fleet {

// One parameter to update. The gradient has the parameter's shape, or only its `rows`
// (optim/row_update.h); it is complete and averaged over ranks, and is float32 or a low type.
struct Update {
  VarId parameter;
  VarId gradient;
  VarId gradient_scale;  // shape [1]: factor for the gradient (clipping, scaling); kNoVar: 1
  double weight_decay;   // 0 if excluded
  VarId learning_rate;   // float32 [1]: the rate of its group and layer
  VarId rows = kNoVar;   // the rows that the gradient has; kNoVar: all
};

// Loss scaling: what updates need to know about the gradients. Both kNoVar: no scaling.
struct GradientScaling {
  VarId found_inf = kNoVar;  // int32 [1]: if not 0, this step makes no update
  VarId unscale = kNoVar;    // float32 [1]: factor for the gradients
};

// The interface through which a rule appends its operations.
class UpdateContext {
 public:
  UpdateContext(Program& program, SectionId section, const Settings& settings,
                const GradientScaling& scaling, uint64_t seed = 0)
      : program_(program), section_(section), settings_(settings), scaling_(scaling), seed_(seed) {}
  Program& program() { return program_; }
  SectionId section() const { return section_; }
  const Settings& settings() const { return settings_; }
  const GradientScaling& scaling() const { return scaling_; }
  uint64_t seed() const { return seed_; }  // the job's, for stochastic rounding
  // A state with the parameter's shape and type, initially zero, named "<parameter>.<name>".
  VarId state(VarId parameter, const std::string& name);
  // A float32 state of another shape, for operations of kUpdatedParameter (optim/update_op.h).
  VarId state(VarId parameter, const std::string& name, const Shape& shape);
  // int64 [1], "optimizer.step": the number of updates including the current one.
  VarId step();
  // A learning rate times a factor, computed once for each pair.
  VarId scaled_rate(VarId rate, double factor);

 private:
  Program& program_;
  SectionId section_;
  const Settings& settings_;
  const GradientScaling scaling_;
  const uint64_t seed_;
  VarId step_ = kNoVar;
  std::map<std::pair<VarId, double>, VarId> rates_;
};

// Largest decay of a mean that is divided by 1 - decay^t: a decay of 1 would divide by zero.
inline constexpr double kMaxDecay = 0.9999999;

struct OptimizerDef {
  std::string help;         // one line
  Schema schema;            // its own keys; append_updates() adds the common ones
  double weight_decay = 0;  // default of the common key
  bool averages = false;    // it makes kAverageRate (optim/ema.h): evaluations use an average
  // Appends the operations of one update.
  std::function<void(UpdateContext&, const Update&)> append;
};

Registry<OptimizerDef>& optimizer_registry();

// The keys of a job's "optimizer" section for this optimizer: name, its own, weight_decay,
// exclude_from_weight_decay, weight_decay_exclude_1d, groups, layer_decay, frozen, clip, clip_norm,
// clip_value. kUsage for an unknown name. See optim/parameter_groups.h for groups and frozen,
// optim/layer_decay.h for layer_decay.
Schema optimizer_schema(const std::string& name);

// The weight decay of one parameter: 0 if its name is excluded, else its group's, else 0 if
// weight_decay_exclude_1d leaves it out, else weight_decay.
double weight_decay_of(const Settings& settings, const Var& parameter);

// Appends to section `optimize`: clipping, then an update of each of `parameters` that is trainable
// and has a gradient (Program::gradient). settings: validated by optimizer_schema(); the key "name"
// chooses the rule. learning_rate: a feed float32 [1], set before each step from optim/schedule.h.
// The update also writes the parameter's low-type copy (Program::copy_of). Parameters in bfloat16
// and their states are rounded stochastically, by `seed` (optim/stochastic_rounding.h).
void append_updates(Program& program, SectionId optimize, const std::vector<VarId>& parameters,
                    VarId learning_rate, const Settings& settings,
                    const GradientScaling& scaling = {}, uint64_t seed = 0);

// FLEET_OPTIMIZER(sgd) { def.append = ...; } in lib/engine/optim/sgd.cc.
#define FLEET_OPTIMIZER(name)                                  \
  FLEET_REGISTER(optimizer_##name, ::fleet::OptimizerDef& def, \
                 ::fleet::optimizer_registry().define, #name)

}  // namespace fleet
