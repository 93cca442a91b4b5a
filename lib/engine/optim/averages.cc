#include "optim/averages.h"

#include <algorithm>

namespace fleet {

Averages::Averages(Program& program, const EmaOptions& options)
    : program_(program),
      rate_attributes_({{"decay", options.decay},
                        {"warmup", options.warmup},
                        {"gamma", options.gamma},
                        {"power", options.power}}),
      rate_(options.rate),
      updates_(program.state(kEmaUpdates, {1}, Init(), DType::kInt64)) {}

// Statistics are excluded: their values may differ between ranks, and rank 0's are broadcast.
void Averages::add_all(SectionId forward, SectionId evaluate) {
  for (const VarId parameter : program_.parameters()) {
    const bool narrow = program_.var(parameter).dtype != DType::kFloat32;
    add(parameter, narrow ? &narrow_parameters_ : &parameters_);
  }
  for (const Op& op : program_.ops()) {
    const bool reads = op.section == evaluate, writes = op.section == forward;
    if (!reads && !writes) continue;
    for (const VarId id : reads ? op.inputs : op.outputs) {
      if (id == kNoVar || program_.var(id).kind != VarKind::kState) continue;
      if (program_.var(id).copy_of == kNoVar) add(id, &statistics_);
    }
  }
}

void Averages::update(SectionId section, VarId found_inf, bool copies) {
  program_.append(section, "increment", {updates_, found_inf}, {updates_});
  const VarId rate = rate_ != kNoVar ? rate_
                                     : program_.emit(section, "ema_rate", {updates_},
                                                     rate_attributes_, "ema_rate")[0];
  for (const auto& group : {parameters_, narrow_parameters_}) {
    if (!group.empty()) program_.ops().push_back(make_update(section, rate, found_inf, group));
  }
  if (statistics_.empty()) return;
  VarId own = rate;
  if (copies || rate_ != kNoVar) {
    own = program_.emit(section, "fill", {}, {{"shape", std::vector<int64_t>{1}}, {"value", 1.0}},
                        "ema_copy")[0];
  }
  program_.ops().push_back(make_update(section, own, found_inf, statistics_));
}

void Averages::start(SectionId section, SectionId before) {
  const VarId rate = program_.temporary("ema_start_rate"), begun = program_.temporary("ema_begun");
  std::vector<Op> first = {
      program_.make_op(section, "ema_rate", {updates_}, {rate, begun}, rate_attributes_)};
  for (const auto& group : {parameters_, narrow_parameters_, statistics_}) {
    if (!group.empty()) first.push_back(make_update(section, rate, begun, group));
  }
  std::vector<Op>& ops = program_.ops();
  const auto reader =
      std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.section == before; });
  ops.insert(reader, first.begin(), first.end());
}

void Averages::redirect(const std::set<SectionId>& sections) {
  std::vector<Op> kept;
  std::map<std::pair<SectionId, VarId>, VarId> casts;  // by section and copy
  for (Op& op : program_.ops()) {
    for (VarId& id : op.inputs) {
      if (!sections.contains(op.section) || id == kNoVar) continue;
      const Var& read = program_.var(id);
      const bool narrow = read.kind == VarKind::kParameter && read.dtype != DType::kFloat32 &&
                          op.type() != "cast";  // a cast reads the average itself
      const VarId source = narrow ? id : read.copy_of;
      const std::pair<SectionId, VarId> key = {op.section, id};
      if (source != kNoVar && !casts.contains(key)) {
        const DType low = program_.var(id).dtype;
        casts[key] = program_.temporary(program_.var(averages_.at(source)).name + ".low");
        kept.push_back(program_.make_op(op.section, "cast", {averages_.at(source)}, {casts[key]},
                                        {{"to", std::string(name_of(low))}}));
      }
      if (source != kNoVar) id = casts.at(key);
      if (const auto found = averages_.find(id); found != averages_.end()) id = found->second;
    }
    kept.push_back(std::move(op));
  }
  program_.ops() = std::move(kept);
}

void Averages::add(VarId id, std::vector<VarId>* group) {
  if (averages_.contains(id)) return;
  const Var& var = program_.var(id);
  averages_[id] = program_.state(kEmaPrefix + var.name, var.shape, Init());
  group->push_back(id);
}

Op Averages::make_update(SectionId section, VarId rate, VarId skip,
                         const std::vector<VarId>& group) {
  std::vector<VarId> inputs = {rate, kNoVar, skip, kNoVar}, outputs;
  for (const VarId id : group) {
    inputs.insert(inputs.end(), {averages_.at(id), id});
    outputs.insert(outputs.end(), {averages_.at(id), kNoVar});
  }
  return program_.make_op(section, "ema", inputs, outputs);
}

}  // namespace fleet
