#include "passes/micro_batch_vars.h"

#include <string>

namespace fleet {

MicroBatchVars::MicroBatchVars(Program& program, const PipelineOptions& options,
                               const PipelineTraffic& traffic)
    : program_(program), options_(options), traffic_(traffic), local_(options.micro_batches) {
  find_slices();
}

// A feed is sliced where a reader that always runs would read it: the first one may run only in
// steps whose metrics are fetched.
void MicroBatchVars::find_slices() {
  for (const Op& op : program_.ops()) {
    const bool backward = traffic_.kind_of(op) == PipelineAction::kBackward;
    const SectionId section = backward ? options_.forward : op.section;
    const Predicate& when = program_.sections()[section].when;
    for (const VarId id : op.reads()) {
      if (!has_id(options_.batch.feeds, id)) continue;
      SectionId& found = sliced_in_.try_emplace({id, when.training}, section).first->second;
      if (!program_.sections()[found].when.covers(when)) found = section;
    }
  }
}

void MicroBatchVars::grow_feeds() {
  for (const VarId id : options_.batch.feeds) {
    std::vector<int64_t> dims = to_attribute(program_.var(id).shape);
    rows_ = dims[0];
    dims[0] *= options_.micro_batches;
    program_.var(id).shape = Shape(dims);
  }
}

bool MicroBatchVars::is_temporary(VarId id) const {
  return id != kNoVar && program_.var(id).kind == VarKind::kTemporary;
}

VarId MicroBatchVars::fresh(VarId id, int micro_batch) {
  const Var like = program_.var(id);
  const VarId made = program_.temporary(like.name + "#" + std::to_string(micro_batch));
  Var& var = program_.var(made);
  var.dtype = like.dtype;
  var.shape = like.shape;
  var.shape_known = like.shape_known;
  var.gradient_of = like.gradient_of;
  return made;
}

VarId MicroBatchVars::written(VarId id, int micro_batch) {
  if (!is_temporary(id)) return id;
  const auto [known, is_new] = local_[micro_batch].try_emplace(id, id);
  if (!is_new) return known->second;
  const bool own_name = micro_batch == 0 && !has_id(options_.batch.rows, id);
  if (!own_name) known->second = fresh(id, micro_batch);
  return known->second;
}

VarId MicroBatchVars::read(VarId id, int micro_batch, SectionId section) {
  if (id == kNoVar) return id;
  if (has_id(options_.batch.feeds, id)) return slice(id, micro_batch, section);
  if (!is_temporary(id)) {
    return program_.sections()[section].remote ? id : parameter(id, section);
  }
  const auto known = local_[micro_batch].find(id);
  FLEET_CHECK(known != local_[micro_batch].end(),
              "'" + program_.var(id).name + "' is not on its stage yet");
  return known->second;
}

VarId MicroBatchVars::parameter(VarId id, SectionId section) const {
  const auto known = imported_.find({id, traffic_.is_training(section)});
  return known == imported_.end() ? id : known->second;
}

VarId MicroBatchVars::slice(VarId feed, int micro_batch, SectionId section) {
  if (options_.micro_batches == 1) return feed;
  const bool training = traffic_.is_training(section);
  const auto [known, is_new] = slices_.try_emplace({feed, micro_batch, training}, kNoVar);
  if (!is_new) return known->second;
  const SectionId where = sliced_in_.at({feed, training});
  section = program_.sections()[section].remote ? remote_section(where) : where;
  known->second = program_.temporary(program_.var(feed).name + "#" + std::to_string(micro_batch));
  program_.append(
      section, "slice", {feed}, {known->second},
      {{"axis", int64_t{0}}, {"start", rows_ * micro_batch}, {"end", rows_ * (micro_batch + 1)}});
  return known->second;
}

SectionId MicroBatchVars::remote_section(SectionId section) {
  const Section known = program_.sections()[section];
  const SectionId there = program_.find_section(known.name + "_remote");
  return there >= 0 ? there : program_.add_section(known.name + "_remote", known.when, true);
}

}  // namespace fleet
