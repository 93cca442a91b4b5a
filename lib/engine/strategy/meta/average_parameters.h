// Common code of localsgd and adaptive_localsgd: ranks train separately, each on the mean of its
// own samples, and in some steps average their parameters. Only parameters are averaged; the
// optimizer's states stay local to each rank. Parameters are also averaged before evaluation and
// saving.
#pragma once

#include "strategy/meta_optimizer.h"

namespace fleet {

// The derived class decides in which steps.
class AverageParameters : public MetaOptimizer {
 public:
  void groups(BuildContext& build) override;
  void forward(BuildContext& build) override;
  void fuse_update(BuildContext& build) override;

 protected:
  // Call in before_step(): averages the parameters at the end of this step.
  void request(HostStep& step) const { step.info.flags |= uint64_t{1} << flag_; }
  FlagId flag() const { return flag_; }
  // Appends, in `section`, the mean of a variable over the ranks; returns it.
  VarId append_mean(BuildContext& build, SectionId section, VarId var) const;

 private:
  GroupId group_ = -1;
  FlagId flag_ = kNoFlag;
};

// MetaOptimizerDef::needs_float32 of both.
inline constexpr char kAveragesNeedFloat32[] = "each average would be rounded to nearest";

// Both need several ranks, and sgd or momentum. Returns why they cannot act, empty if they can.
std::string averaging_obstacle(const PassContext& context);
// kUsage unless the value of <message>.<field> is 1 or more.
void require_positive(const std::string& message, const char* field, int value);

}  // namespace fleet
