// Checks a DistributedStrategy and applies it to a Program.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "optim/check_finite.h"
#include "optim/update_phases.h"
#include "strategy/meta_optimizer.h"
#include "strategy/sparse_rows.h"

namespace fleet {

// The parts of a model that strategies may use.
struct ModelParts {
  std::vector<Block> blocks = {};      // the forward section's, for strategies that cut it
  std::vector<Block> devices = {};     // Training::devices
  BatchVars batch = {};                // for strategies that divide a batch
  std::vector<VarId> rows = {};        // feeds of served_tables(), whose gradients are pushed
  std::set<VarId> trained_later = {};  // parameters that only later Programs of the job train
};

// The context with the ranks and micro-batches that the strategy divides the job into. kUsage and
// kUnsupported if it cannot.
PassContext divide(const StrategyProto& proto, PassContext context);

// For one Program. Not thread-safe.
class Strategy {
 public:
  // Checks fields and their combinations; logs switched-off features with reasons. kUsage naming
  // the field; kUnsupported naming every field that differs from its default and that no
  // meta-optimizer handles. context: that of the rank that runs the Program.
  explicit Strategy(const StrategyProto& proto = {}, const PassContext& context = {});

  const PassContext& context() const { return context_; }
  // The meta-optimizers that act, by position.
  const std::vector<std::string>& names() const { return names_; }

  // Rewrites the program: mixed precision and fusions of the forward sections, backward from
  // `loss`, fusions of the backward section, and the combination of gradients over the ranks. The
  // loss is scaled so that gradients are means over the data-parallel ranks. Call
  // append_optimizer() afterwards. The model is built for context().batch / micro_batches samples.
  const BackwardResult& append_backward(Program& program, SectionId forward, VarId loss,
                                        ModelParts parts = {});

  // Appends section "optimize": checks of gradients, clipping and updates (see append_updates() in
  // optim/optimizer.h for learning_rate and settings). on_nan: with loss scaling a separate check
  // always leaves out bad updates, whatever this says. If gradients are not sent as a whole (dgc),
  // kStop applies the update all the same, and kSkip is kUsage.
  // trained_from: see append_updates_by_phase().
  void append_optimizer(VarId learning_rate, const Settings& settings,
                        OnNan on_nan = OnNan::kContinue, const TrainedFrom& trained_from = {});

  // int32 [1], not 0 if the update of this step is left out; kNoVar: none ever is. Valid after
  // append_optimizer().
  VarId left_out() const { return build_->scaling.found_inf; }
  // The variables that the host must be able to read after a step, for before_step().
  const std::vector<VarId>& keep() const { return build_->keep; }
  // Lets the meta-optimizers decide about the current step.
  void before_step(HostStep& step);
  // Values for a line of metrics.jsonl about the last step passed to before_step().
  std::map<std::string, double> measures() const;

 private:
  void run(void (MetaOptimizer::*phase)(BuildContext&));
  void append_check(OnNan on_nan);
  void append_skip_count(OnNan on_nan);

  const PassContext context_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<MetaOptimizer>> parts_;
  std::unique_ptr<BuildContext> build_;  // set by append_backward()
  SparseRows sparse_rows_;
};

}  // namespace fleet
