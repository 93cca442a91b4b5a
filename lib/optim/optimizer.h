// Update rules: each a registered builder of operations, with a schema of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "graph/program.h"

namespace fleet {

// One parameter to update. The gradient is of the parameter's shape, complete and averaged over
// ranks; float32 or a low type.
struct Update {
  VarId parameter;
  VarId gradient;
  VarId gradient_scale;  // shape [1]: multiplies the gradient (clipping, scaling); kNoVar: 1
  double weight_decay;   // 0 where excluded
  VarId learning_rate;   // float32 [1]: its group's
};

// Of a loss that was scaled: what updates need to know of the gradients. Both kNoVar: not scaled.
struct GradientScaling {
  VarId found_inf = kNoVar;  // int32 [1]: not 0: no update in this step
  VarId unscale = kNoVar;    // float32 [1]: multiplies the gradients
};

// What a rule builds with.
class UpdateContext {
 public:
  UpdateContext(Program& program, SectionId section, const Settings& settings,
                const GradientScaling& scaling)
      : program_(program), section_(section), settings_(settings), scaling_(scaling) {}
  Program& program() { return program_; }
  SectionId section() const { return section_; }
  const Settings& settings() const { return settings_; }
  const GradientScaling& scaling() const { return scaling_; }
  // A state of the parameter's shape that begins as zeros, named "<parameter>.<name>".
  VarId state(VarId parameter, const std::string& name);
  // int64 [1], "optimizer.step": the number of updates including the one at hand.
  VarId step();

 private:
  Program& program_;
  SectionId section_;
  const Settings& settings_;
  const GradientScaling scaling_;
  VarId step_ = kNoVar;
};

struct OptimizerDef {
  std::string help;         // one line
  Schema schema;            // its own keys; append_updates() adds the common ones
  double weight_decay = 0;  // default of the common key
  std::function<void(UpdateContext&, const Update&)> append;  // the operations of one update
};

Registry<OptimizerDef>& optimizer_registry();
bool register_optimizer(const std::string& name, void (*define)(OptimizerDef&));

// The keys of a job's "optimizer" section for this optimizer: name, its own, weight_decay,
// exclude_from_weight_decay, groups, frozen, clip, clip_norm, clip_value. kUsage for an unknown
// name. optim/parameter_groups.h has what groups and frozen say.
Schema optimizer_schema(const std::string& name);

// What `settings` say of one parameter: 0 where its name is excluded, else its group's, else
// weight_decay.
double weight_decay_of(const Settings& settings, const std::string& parameter);

// Appends, in section `optimize`: clipping, then an update of each of `parameters` that is
// trainable and has a gradient (Program::gradient). settings: validated by optimizer_schema(); its
// key "name" chooses the rule. learning_rate: a feed float32 [1], set before each step from
// optim/schedule.h. A parameter's copy in a low type (Program::copy_of) is written with it.
void append_updates(Program& program, SectionId optimize, const std::vector<VarId>& parameters,
                    VarId learning_rate, const Settings& settings,
                    const GradientScaling& scaling = {});

// FLEET_OPTIMIZER(sgd) { def.append = ...; } in lib/optim/sgd.cc.
#define FLEET_OPTIMIZER(name)                                      \
  static void define_optimizer_##name(::fleet::OptimizerDef& def); \
  [[maybe_unused]] static const bool registered_optimizer_##name = \
      ::fleet::register_optimizer(#name, define_optimizer_##name); \
  static void define_optimizer_##name(::fleet::OptimizerDef& def)

}  // namespace fleet
