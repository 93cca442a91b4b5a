// Meta-optimizers: what a DistributedStrategy can switch on, each a file of its own in
// strategy/meta/. Which of them act is decided in strategy/strategy.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/block.h"
#include "optim/optimizer.h"
#include "passes/backward.h"
#include "passes/pass.h"
#include "strategy/strategy_file.h"

namespace fleet {

// A Program on its way from the model to a training step, and what meta-optimizers tell each other
// about it.
struct Build {
  Program& program;
  const PassContext& context;
  SectionId forward = -1;
  VarId loss = kNoVar;
  std::vector<Block> blocks = {};  // of the forward section, where the model says
  std::optional<DType> low;        // the low type that the forward part computes in
  VarId loss_scaling = kNoVar;     // float32 [1] that the loss is multiplied with
  // What d(loss) is multiplied with: 1 / data-parallel ranks, so that a sum over them averages.
  double loss_factor = 1;
  bool sums_gradients = true;  // false: another meta-optimizer combines them
  SectionId sums_in = -1;      // the section of the sums; -1: where gradients are computed
  // Parameters that a meta-optimizer updates by itself, with the section in which their gradients
  // are summed as others are; -1: they are not.
  std::map<VarId, SectionId> apart = {};
  BackwardResult backward;       // from the phase fuse_backward() on
  SectionId optimize = -1;       // where updates go, from the phase update() on
  VarId learning_rate = kNoVar;  // float32 [1], from the phase update() on
  Predicate update_when;         // when they run; to be set before that
  Settings optimizer;       // of the rule of the updates, in and behind update(): to be replaced
  GradientScaling scaling;  // what updates need to know of scaled gradients
  std::vector<VarId> keep;  // what before_step() reads
};

// A training step that is about to run.
struct HostStep {
  StepInfo& info;  // flags may be set in it
  double learning_rate = 0;
  // A kept variable as the step before left it; waits for it.
  std::function<std::vector<float>(VarId)> read;
};

// Makes and trains one Program. The phases are called in this order, each for all meta-optimizers
// by position.
class MetaOptimizer {
 public:
  virtual ~MetaOptimizer() = default;
  virtual void groups(Build&) {}         // asks for groups of ranks
  virtual void forward(Build&) {}        // rewrites the model's operations
  virtual void fuse_forward(Build&) {}   // joins them
  virtual void fuse_backward(Build&) {}  // joins what the backward pass has appended
  virtual void gradients(Build&) {}      // changes the types in which gradients travel
  virtual void communication(Build&) {}  // combines gradients over the ranks
  virtual void update(Build&) {}         // what comes before the updates of parameters
  virtual void fuse_update(Build&) {}    // joins the updates
  virtual void finish(const Build&) {}   // looks at the whole Program
  // On the host, before each training step.
  virtual void before_step(HostStep&) {}
  // Adds what a line of metrics.jsonl says of it, by key; behind before_step().
  virtual void measure(std::map<std::string, double>&) const {}
};

struct MetaOptimizerDef {
  std::string name;  // the one it is registered under
  std::string help;  // one line
  // The fields of DistributedStrategy that it takes over ("amp", "build_strategy.fuse_bn_act_ops");
  // a message ("amp_configs") stands for all of its fields.
  std::vector<std::string> fields;
  int position = 0;  // lower ones come first in each phase
  // Whether the strategy asks for it; null: it is always there.
  std::function<bool(const StrategyProto&)> asked;
  // Why it cannot act in this job, in a clause ("it needs several ranks"); empty where it can.
  // Null: it always can.
  std::function<std::string(const StrategyProto&, const PassContext&)> obstacle;
  // One that competes with others, by Paddle's rules (strategy/chain.h): its class there, and the
  // meta-optimizers it may wrap. Empty: it goes with all.
  std::string paddle_class;
  std::vector<std::string> wraps;
  // Checks its fields (kUsage, kUnsupported naming them); null: there is nothing to do in the
  // Program.
  std::function<std::unique_ptr<MetaOptimizer>(const StrategyProto&, const PassContext&)> create;
  // What users read of it (strategy/reference.h). By path, a line on each of its fields; the only
  // field, and the one of the same name, need none: theirs is `help`.
  std::map<std::string, std::string> field_help = {};
  std::string when = {};    // when to use it, a sentence
  std::string cost = {};    // what it costs, a sentence
  std::string figure = {};  // something measured, with its command or page; empty: nothing yet
};

Registry<MetaOptimizerDef>& meta_optimizer_registry();
bool register_meta_optimizer(const std::string& name, void (*define)(MetaOptimizerDef&));

// FLEET_META_OPTIMIZER(amp) { def.help = ...; } in lib/strategy/meta/amp.cc.
#define FLEET_META_OPTIMIZER(name)                                           \
  static void define_meta_optimizer_##name(::fleet::MetaOptimizerDef& def);  \
  [[maybe_unused]] static const bool registered_meta_optimizer_##name =      \
      ::fleet::register_meta_optimizer(#name, define_meta_optimizer_##name); \
  static void define_meta_optimizer_##name(::fleet::MetaOptimizerDef& def)

// A meta-optimizer that is one pass, switched by one bool field.
enum class PassPhase { kFuseForward, kFuseBackward, kGradients, kFuseUpdate };
struct PassSwitch {
  const char* field;  // "build_strategy.fuse_bn_act_ops"
  bool unset;         // whether it runs where the user left the field unset
  PassPhase phase;
  const char* pass;
};
void switch_pass(MetaOptimizerDef& def, const PassSwitch& on);

}  // namespace fleet
