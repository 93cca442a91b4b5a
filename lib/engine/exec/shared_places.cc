#include "exec/shared_places.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "exec/assignment.h"

namespace fleet {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported, "the plans of several shapes differ in " + what);
}

void check_programs(const Program& first, const Program& other) {
  const auto section_text = [](const Section& section) {
    return section.name + " (" + section.when.text() + (section.remote ? ", remote)" : ")");
  };
  const auto group_text = [](const RankGroup& group) {
    return group.text() + " " + std::to_string(group.inner_group_size) +
           (group.own_memory ? " own" : "");
  };
  if (!std::ranges::equal(first.sections(), other.sections(), {}, section_text, section_text)) {
    refuse("their sections");
  }
  if (!std::ranges::equal(first.groups(), other.groups(), {}, group_text, group_text)) {
    refuse("their groups of ranks");
  }
  if (first.flags() != other.flags()) refuse("their flags");
}

bool is_trained_state(const Var& var) {
  return var.kind == VarKind::kParameter || var.kind == VarKind::kState;
}

// Whether its memory is its own in all steps.
bool lasts(const PlannedVar& var) {
  return var.used && !var.shared &&
         (var.region == Region::kPersistent || var.region == Region::kBucket);
}

class Sharing {
 public:
  // some: the own Plan may lack states of the first.
  Sharing(const Plan& first, Plan& own, bool some = false)
      : first_(first), own_(own), some_(some) {}

  void run(size_t* persistent_end) {
    check_programs(first_.program, own_.program);
    check_states();
    for (VarId id = 0; id < own_.program.var_count(); ++id) {
      PlannedVar& var = own_.vars[id];
      if (!lasts(var) || (some_ && var.region == Region::kBucket)) continue;
      const PlannedVar* place = place_of(id);
      if (place) {
        var.offset = place->offset;
      } else {
        var.offset = *persistent_end;
        *persistent_end += aligned(var.bytes);
      }
    }
    check_chains();
  }

 private:
  const std::string& name(VarId id) const { return own_.program.var(id).name; }

  void check_states() const {
    const auto count = [](const Plan& plan) {
      int states = 0;
      for (VarId id = 0; id < plan.program.var_count(); ++id) {
        states += is_trained_state(plan.program.var(id)) ? 1 : 0;
      }
      return states;
    };
    if (!some_ && count(first_) != count(own_)) {
      refuse("the number of their parameters and states");
    }
    for (VarId id = 0; id < own_.program.var_count(); ++id) {
      const Var& var = own_.program.var(id);
      if (!is_trained_state(var)) continue;
      const VarId there = first_.program.find(var.name);
      if (there == kNoVar) refuse("'" + var.name + "'");
      const Var& other = first_.program.var(there);
      const PlannedVar &a = own_.vars[id], &b = first_.vars[there];
      if (var.dtype != other.dtype || !(var.shape == other.shape) || var.remote != other.remote ||
          (some_ ? a.used && !b.used : a.used != b.used) ||
          (a.used && a.layout.text() != b.layout.text())) {
        refuse("'" + var.name + "'");
      }
    }
  }

  // The place of the first Plan's variable; null if it has none that fits, which only variables of
  // one step may lack, or those of a Plan with some of the states.
  const PlannedVar* place_of(VarId id) const {
    const PlannedVar& var = own_.vars[id];
    const VarId there = first_.program.find(name(id));
    const PlannedVar* place = there == kNoVar ? nullptr : &first_.vars[there];
    const bool fits = place && lasts(*place) && place->region == var.region &&
                      place->bytes >= var.bytes && place->group == var.group;
    if (some_) return fits ? place : nullptr;
    if (var.region == Region::kBucket && !(fits && place->offset == var.offset)) {
      refuse("the place of '" + name(id) + "' among what ranks exchange");
    }
    if (!fits && is_trained_state(own_.program.var(id))) refuse("the place of '" + name(id) + "'");
    return fits ? place : nullptr;
  }

  // Variables that an operation needs next to each other still are.
  void check_chains() const {
    for (const ContiguousVars& chain : find_contiguous_vars(own_)) {
      for (size_t i = 1; i < chain.vars.size(); ++i) {
        const PlannedVar &before = own_.vars[chain.vars[i - 1]], &var = own_.vars[chain.vars[i]];
        if (var.offset == before.offset + aligned(before.bytes)) continue;
        refuse("the neighbours of '" + name(chain.vars[i]) + "' in memory");
      }
    }
  }

  const Plan& first_;
  Plan& own_;
  const bool some_;
};

// Moves the variables that ranks exchange behind those of the Plans before, in each group that has
// states among them.
void move_buckets(Plan* plan, std::vector<size_t>* ends) {
  std::set<GroupId> moved;
  const auto in_bucket = [&](VarId id) {
    return plan->vars[id].used && plan->vars[id].region == Region::kBucket;
  };
  for (VarId id = 0; id < plan->program.var_count(); ++id) {
    const bool state = is_trained_state(plan->program.var(id));
    if (state && in_bucket(id)) moved.insert(plan->vars[id].group);
  }
  for (VarId id = 0; id < plan->program.var_count(); ++id) {
    PlannedVar& var = plan->vars[id];
    if (in_bucket(id) && moved.contains(var.group)) var.offset += ends->at(var.group);
  }
  for (const GroupId group : moved) {
    plan->bucket_bytes.at(group) += ends->at(group);
    ends->at(group) = plan->bucket_bytes[group];
  }
}

}  // namespace

std::map<VarId, Layout> lasting_layouts(const Plan& first, const Program& program) {
  std::map<VarId, Layout> layouts;
  for (VarId id = 0; id < first.program.var_count(); ++id) {
    const Var& var = first.program.var(id);
    const VarId there = is_trained_state(var) ? program.find(var.name) : kNoVar;
    // A parameter of another rank has no memory here, but those fetched from it have its layout.
    if (there == kNoVar || (!first.vars[id].used && !var.remote)) continue;
    if (program.var(there).shape == var.shape) layouts[there] = first.vars[id].layout;
  }
  return layouts;
}

void share_places(std::vector<Plan>& plans) {
  for (size_t i = 1; i < plans.size(); ++i) {
    size_t end = plans[0].persistent_bytes;
    Sharing(plans[0], plans[i]).run(&end);
    plans[i].persistent_bytes = end;
  }
}

void share_some_places(const Plan& first, Plan* other, SharedEnds* ends) {
  ends->persistent = std::max(ends->persistent, first.persistent_bytes);
  ends->buckets.resize(std::max(first.bucket_bytes.size(), other->bucket_bytes.size()));
  for (size_t group = 0; group < first.bucket_bytes.size(); ++group) {
    ends->buckets[group] = std::max(ends->buckets[group], first.bucket_bytes[group]);
  }
  Sharing(first, *other, /*some=*/true).run(&ends->persistent);
  other->persistent_bytes = ends->persistent;
  move_buckets(other, &ends->buckets);
}

std::vector<VarId> same_vars(const Program& first, const Program& other) {
  std::vector<VarId> same;
  for (VarId id = 0; id < first.var_count(); ++id) same.push_back(other.find(first.var(id).name));
  return same;
}

}  // namespace fleet
