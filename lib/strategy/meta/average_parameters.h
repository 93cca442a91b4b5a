// What localsgd and adaptive_localsgd share: ranks train apart, each on the mean of its own
// samples, and in some steps take the mean of their parameters. Only parameters are averaged: the
// optimizer's states stay each rank's own. Before evaluation and saving they are averaged too.
#pragma once

#include "strategy/meta_optimizer.h"

namespace fleet {

// Called in the phases of the same names; step numbers are none of its business.
class AverageParameters {
 public:
  void groups(Build& build);
  void forward(Build& build);
  void fuse_update(Build& build);
  // In before_step(): parameters are averaged at the end of this step.
  void ask(HostStep& step) const { step.info.flags |= uint64_t{1} << flag_; }

  FlagId flag() const { return flag_; }
  // Appends, in `section`, the mean over the ranks of a variable; returns it.
  VarId append_mean(Build& build, SectionId section, VarId var) const;

 private:
  GroupId group_ = -1;
  FlagId flag_ = kNoFlag;
};

// Both need several ranks, and sgd or momentum: why one cannot act, empty where it can.
std::string why_no_averages(const PassContext& context);
// kUsage unless the value of <message>.<field> is from 1 up.
void require_positive(const std::string& message, const char* field, int value);

}  // namespace fleet
