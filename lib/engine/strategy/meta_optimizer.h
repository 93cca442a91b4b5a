// Meta-optimizers: features that a DistributedStrategy can switch on, each in its own file in
// strategy/meta/. strategy/strategy.h decides which of them act.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/program.h"
#include "optim/optimizer.h"
#include "passes/backward.h"
#include "passes/pass.h"
#include "passes/pipeline.h"
#include "strategy/strategy_file.h"

namespace fleet {

// A Program on its way from the model to a training step, and the state that meta-optimizers share
// about it.
struct BuildContext {
  Program& program;
  const PassContext& context;
  SectionId forward = -1;
  VarId loss = kNoVar;
  std::vector<Block> blocks = {};      // the forward section's, if the model names them
  std::vector<Block> devices = {};     // where the model sets a device; output: the previous value
  BatchVars batch = {};                // what depends on the number of samples
  std::set<VarId> trained_later = {};  // parameters that only later Programs of the job train
  std::optional<DType> low = {};       // the low type that the forward part computes in
  VarId loss_scaling = kNoVar;         // float32 [1], the factor of the loss
  // The factor of d(loss): 1 / data-parallel ranks, so that a sum over the ranks averages.
  double loss_factor = 1;
  bool sums_gradients = true;      // false: another meta-optimizer combines them
  bool sums_on_owners = false;     // sharding sums them, each on the rank that owns the parameter
  SectionId sums_in = -1;          // the section of the sums; -1: where gradients are computed
  bool updates_elsewhere = false;  // parameter servers make the updates
  std::vector<VarId> rows = {};    // feeds of rows of tables, whose gradients are pushed to servers
  // Parameters that a meta-optimizer updates itself, each with the section in which its gradient is
  // summed like others; -1: it is not.
  std::map<VarId, SectionId> updated_separately = {};
  BackwardResult backward = {};  // from the phase fuse_backward() on
  SectionId optimize = -1;       // the section of the updates, from the phase update() on
  VarId learning_rate = kNoVar;  // float32 [1], from the phase update() on
  Predicate update_when = {};    // when updates run; set it before update()
  Settings optimizer = {};       // the update rule's; may be replaced in update() and later
  GradientScaling scaling = {};  // needed by updates if gradients are scaled
  bool skips_updates = false;    // training continues after steps with scaling.found_inf
  std::vector<VarId> keep = {};  // variables that before_step() reads
};

// A training step before its execution.
struct HostStep {
  StepInfo& info;  // callers may set flags
  double learning_rate = 0;
  // A kept variable after the previous step; waits for it.
  std::function<std::vector<float>(VarId)> read;
};

// Builds and trains one Program. The phases are called in this order; within a phase, all
// meta-optimizers by position.
class MetaOptimizer {
 public:
  virtual ~MetaOptimizer() = default;
  virtual void groups(BuildContext&) {}         // creates groups of ranks
  virtual void forward(BuildContext&) {}        // rewrites the model's operations
  virtual void fuse_forward(BuildContext&) {}   // fuses them
  virtual void fuse_backward(BuildContext&) {}  // fuses operations appended by the backward pass
  virtual void gradients(BuildContext&) {}  // changes the types in which gradients are exchanged
  virtual void communication(BuildContext&) {}  // combines gradients over the ranks
  virtual void update(BuildContext&) {}         // prepares the updates of parameters
  virtual void fuse_update(BuildContext&) {}    // fuses the updates
  virtual void finish(const BuildContext&) {}   // inspects the whole Program
  // On the host, before each training step.
  virtual void before_step(HostStep&) {}
  // Adds its values to a line of metrics.jsonl, by key; called after before_step().
  virtual void measure(std::map<std::string, double>&) const {}
};

// How ranks and batches are divided (PassContext).
struct Division {
  std::vector<int> data_parallel = {};
  int stages = 1;
  int64_t micro_batches = 1;
};

struct MetaOptimizerDef {
  std::string name;  // the name under which it is registered
  std::string help;  // one line
  // The fields of DistributedStrategy that it handles ("amp", "build_strategy.fuse_bn_act_ops"); a
  // message ("amp_configs") stands for all of its fields.
  std::vector<std::string> fields;
  int position = 0;  // lower ones come first in each phase
  // Whether the strategy requests it; null: always.
  std::function<bool(const StrategyProto&)> requested;
  // Returns why it cannot act in this job, as a clause ("it needs several ranks"); empty if it can.
  // Null: it always can.
  std::function<std::string(const StrategyProto&, const PassContext&)> obstacle;
  std::string remedy = "change that";  // what to do about the obstacle, as an imperative clause
  // Why it needs parameters in float32 (train.weights_dtype), as a clause; empty: it does not.
  std::string needs_float32 = {};
  // Called before the obstacles of all others, which see the result; null: it divides nothing. For
  // a meta-optimizer without an obstacle, which competes with none.
  std::function<Division(const StrategyProto&, const PassContext&)> divide = {};
  // For a meta-optimizer that competes with others by Paddle's rules (choose_chain()): its class
  // in Paddle, and the meta-optimizers it may wrap. Empty: it can be combined with all.
  std::string paddle_class;
  std::vector<std::string> wraps;
  // Checks its fields (kUsage, kUnsupported naming them); returns null if it changes nothing in the
  // Program. One that never does has `check` instead.
  std::function<std::unique_ptr<MetaOptimizer>(const StrategyProto&, const PassContext&)> create;
  std::function<void(const StrategyProto&, const PassContext&)> check;
  // Its documentation (strategy/reference.h).
  std::string when = {};    // when to use it, as a sentence
  std::string cost = {};    // its cost, as a sentence
  std::string figure = {};  // a measurement, with its command or page; empty: none yet
};

using MetaOptimizerDefs = std::vector<const MetaOptimizerDef*>;

Registry<MetaOptimizerDef>& meta_optimizer_registry();
MetaOptimizerDefs meta_optimizers_by_position();
bool register_meta_optimizer(const std::string& name, void (*define)(MetaOptimizerDef&));

// FLEET_META_OPTIMIZER(amp) { def.help = ...; } in lib/engine/strategy/meta/amp.cc.
#define FLEET_META_OPTIMIZER(name)                                      \
  FLEET_REGISTER(meta_optimizer_##name, ::fleet::MetaOptimizerDef& def, \
                 ::fleet::register_meta_optimizer, #name)

// Which ones act if several are requested that cannot all be combined: the rules of the strategy
// compiler of Paddle 2.0 to 2.6 (python/paddle/distributed/fleet/base/strategy_compiler.py), so
// that a strategy means the same here. tests/engine/strategy/golden/ has its results, and the known
// differences of releases before 2.6.
//
// Two of them form a chain if one may wrap the other; a chain to one and one from it join to a
// longer one if the first may also wrap the last. The longest chain that Paddle's algorithm finds
// wins; if no two can be combined, the first by class. Returns the winner's names, outermost first.
// None may wrap itself, directly or through others.
std::vector<std::string> choose_chain(MetaOptimizerDefs links);
// The names among `winners` that cannot be combined with `loser`: neither may wrap the other.
std::vector<std::string> conflicts(const MetaOptimizerDef& loser, const MetaOptimizerDefs& winners);

// A meta-optimizer that consists of one pass, switched by one bool field.
enum class PassPhase { kFuseForward, kFuseBackward, kGradients, kFuseUpdate };
struct PassSwitch {
  const char* field;  // "build_strategy.fuse_bn_act_ops"
  bool unset;         // whether it runs if the user did not set the field
  PassPhase phase;
  const char* pass;
};
void switch_pass(MetaOptimizerDef& def, const PassSwitch& on);

}  // namespace fleet
