// Averages of weights and running statistics in a Program, for optim/ema.h and optim/swa.h.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "graph/program.h"
#include "optim/ema.h"

namespace fleet {

class Averages {
 public:
  Averages(Program& program, const EmaOptions& options);

  // Gives an average to each parameter, to each state that section `evaluate` reads, and to the
  // statistics that section `forward` writes.
  void add_all(SectionId forward, SectionId evaluate);
  // Appends an update of all averages. found_inf: kNoVar: none is left out. copies: the averages of
  // statistics become their values, as always if the options give the rate.
  void update(SectionId section, VarId found_inf, bool copies = false);
  // Makes the averages equal to the values until their first update. Placed before the first
  // operation of section `before`, so that each average gets the layout of the value it follows; or
  // at the end without one.
  void start(SectionId section, SectionId before);
  // Makes these sections read the averages. A low-type copy, which the update of the parameter
  // writes, becomes a cast of the average; so does a parameter in a low type.
  void redirect(const std::set<SectionId>& sections);
  VarId of(VarId id) const { return averages_.at(id); }
  // Whether the variable has an average.
  bool has(VarId id) const { return averages_.contains(id); }

 private:
  void add(VarId id, std::vector<VarId>* group);
  Op make_update(SectionId section, VarId rate, VarId skip, const std::vector<VarId>& group);

  Program& program_;
  const Attributes rate_attributes_;
  const VarId rate_;  // kNoVar: by the formula
  const VarId updates_;
  std::vector<VarId> parameters_, narrow_parameters_, statistics_;
  std::map<VarId, VarId> averages_;
};

}  // namespace fleet
