// What a DistributedStrategy asks for, checked, and its application to a Program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optim/check_finite.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// Made for one Program. Not thread-safe.
class Strategy {
 public:
  // Checks fields and what does not go together; says what was switched off, and why. kUsage naming
  // the field; kUnsupported naming every field that differs from its default and that no
  // meta-optimizer takes. context: of the rank that the Program is for.
  explicit Strategy(const StrategyProto& proto = {}, const PassContext& context = {});

  const PassContext& context() const { return context_; }
  // The meta-optimizers that act, by position.
  const std::vector<std::string>& names() const { return names_; }

  // Rewrites the program: mixed precision and fusions of the forward sections, backward from
  // `loss`, fusions of the backward section, what combines gradients over the ranks. The loss is
  // scaled so that gradients are means over the data-parallel ranks. append_optimizer() comes
  // behind it.
  // blocks: of the forward section, for strategies that cut it.
  const BackwardResult& append_backward(Program& program, SectionId forward, VarId loss,
                                        std::vector<Block> blocks = {});

  // Appends section "optimize": checks of gradients, clipping and updates (append_updates() in
  // optim/optimizer.h says what learning_rate and settings are). on_nan: a scaled loss has a check
  // of its own, which leaves updates out whatever this says; where gradients do not travel whole
  // (dgc) kStop makes the update all the same, and kSkip is kUsage.
  void append_optimizer(VarId learning_rate, const Settings& settings,
                        OnNan on_nan = OnNan::kContinue);

  // int32 [1], not 0 where this step's update is left out; kNoVar: none ever is. From
  // append_optimizer() on.
  VarId left_out() const { return build_->scaling.found_inf; }
  // What the host must be able to read after a step, for before_step().
  const std::vector<VarId>& keep() const { return build_->keep; }
  // Lets the meta-optimizers decide about the step at hand.
  void before_step(HostStep& step);
  // What a line of metrics.jsonl says of the step that was decided last.
  std::map<std::string, double> measures() const;

 private:
  void run(void (MetaOptimizer::*phase)(Build&));
  void append_check(OnNan on_nan);

  const PassContext context_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<MetaOptimizer>> parts_;
  std::unique_ptr<Build> build_;  // from append_backward() on
};

}  // namespace fleet
