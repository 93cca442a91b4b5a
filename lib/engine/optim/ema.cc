// ema: updates any number of averages, each with the value it follows: see optim/ema.h. Slots as in
// optim/update_op.h: learning_rate is 1 - decay, the "parameter" of a group is the average, its
// "gradient" the value (float32, or bfloat16 of parameters in it); found_inf: the averages stay.
// The averages are float32.
// ema_rate: from the number of updates so far, rate float32 [1] = 1 - decay (1 up to the first
// update) and begun int32 [1]: 1 after the first update, else 0.
#include "optim/ema.h"

#include <algorithm>
#include <map>

#include "optim/update_op.h"

namespace fleet {

FLEET_OP(ema) { define_update_op(def, /*needs_step=*/false, /*states=*/{}); }

FLEET_OP(ema_rate) {
  def.inputs = {{"updates"}};
  def.outputs = {{"rate"}, {"begun"}};
  def.attributes = {{"decay", 0.9999}, {"warmup", false}, {"gamma", 1.0}, {"power", 2.0 / 3}};
  def.infer = [](ShapeContext& context) {
    FLEET_CHECK(context.shape(0) == Shape{1} && context.dtype(0) == DType::kInt64,
                "ema_rate: updates that are not one int64");
    context.set(0, {1}, DType::kFloat32);
    context.set(1, {1}, DType::kInt32);
  };
}

namespace {

class Averages {
 public:
  Averages(Program& program, const EmaOptions& options)
      : program_(program),
        rate_attributes_({{"decay", options.decay},
                          {"warmup", options.warmup},
                          {"gamma", options.gamma},
                          {"power", options.power}}),
        rate_(options.rate),
        updates_(program.state(kEmaUpdates, {1}, Init(), DType::kInt64)) {}

  // Statistics are excluded: their values may differ between ranks, and rank 0's are broadcast.
  void add_all(SectionId forward, SectionId evaluate) {
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

  void update(SectionId section, VarId found_inf) {
    program_.append(section, "increment", {updates_, found_inf}, {updates_});
    VarId rate = rate_, of_statistics = kNoVar;
    if (rate == kNoVar) {
      rate = program_.emit(section, "ema_rate", {updates_}, rate_attributes_, "ema_rate")[0];
      of_statistics = rate;
    } else if (!statistics_.empty()) {
      of_statistics = program_.emit(
          section, "fill", {}, {{"shape", std::vector<int64_t>{1}}, {"value", 1.0}}, "ema_copy")[0];
    }
    for (const auto& group : {parameters_, narrow_parameters_}) {
      if (!group.empty()) program_.ops().push_back(make_update(section, rate, found_inf, group));
    }
    if (!statistics_.empty()) {
      program_.ops().push_back(make_update(section, of_statistics, found_inf, statistics_));
    }
  }

  // Placed before the first reader, so that each average gets the layout of the value it follows.
  void start(SectionId section, SectionId evaluate) {
    const VarId rate = program_.temporary("ema_start_rate"),
                begun = program_.temporary("ema_begun");
    std::vector<Op> first = {
        program_.make_op(section, "ema_rate", {updates_}, {rate, begun}, rate_attributes_)};
    for (const auto& group : {parameters_, narrow_parameters_, statistics_}) {
      if (!group.empty()) first.push_back(make_update(section, rate, begun, group));
    }
    std::vector<Op>& ops = program_.ops();
    const auto reader =
        std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.section == evaluate; });
    ops.insert(reader, first.begin(), first.end());
  }

  // A low-type copy, which the update of the parameter writes, becomes a cast of the average; so
  // does a parameter in a low type.
  void redirect(SectionId evaluate) {
    std::vector<Op> kept;
    std::map<VarId, VarId> casts;  // by copy
    for (Op& op : program_.ops()) {
      for (VarId& id : op.inputs) {
        if (op.section != evaluate || id == kNoVar) continue;
        const Var& read = program_.var(id);
        const bool narrow = read.kind == VarKind::kParameter && read.dtype != DType::kFloat32 &&
                            op.type() != "cast";  // a cast reads the average itself
        const VarId source = narrow ? id : read.copy_of;
        if (source != kNoVar && !casts.contains(id)) {
          const DType low = program_.var(id).dtype;
          casts[id] = program_.temporary(program_.var(averages_.at(source)).name + ".low");
          kept.push_back(program_.make_op(evaluate, "cast", {averages_.at(source)}, {casts[id]},
                                          {{"to", std::string(name_of(low))}}));
        }
        if (source != kNoVar) id = casts.at(id);
        if (const auto found = averages_.find(id); found != averages_.end()) id = found->second;
      }
      kept.push_back(std::move(op));
    }
    program_.ops() = std::move(kept);
  }

 private:
  void add(VarId id, std::vector<VarId>* group) {
    if (averages_.contains(id)) return;
    const Var& var = program_.var(id);
    averages_[id] = program_.state(kEmaPrefix + var.name, var.shape, Init());
    group->push_back(id);
  }

  Op make_update(SectionId section, VarId rate, VarId skip, const std::vector<VarId>& group) {
    std::vector<VarId> inputs = {rate, kNoVar, skip, kNoVar}, outputs;
    for (const VarId id : group) {
      inputs.insert(inputs.end(), {averages_.at(id), id});
      outputs.insert(outputs.end(), {averages_.at(id), kNoVar});
    }
    return program_.make_op(section, "ema", inputs, outputs);
  }

  Program& program_;
  const Attributes rate_attributes_;
  const VarId rate_;  // kNoVar: by the formula
  const VarId updates_;
  std::vector<VarId> parameters_, narrow_parameters_, statistics_;
  std::map<VarId, VarId> averages_;
};

}  // namespace

void append_ema(Program& program, SectionId forward, SectionId evaluate, SectionId optimize,
                VarId found_inf, const EmaOptions& options) {
  Averages averages(program, options);
  averages.add_all(forward, evaluate);
  averages.redirect(evaluate);
  averages.start(program.add_section("start_ema", {.training = false, .refresh = true}), evaluate);
  const Predicate when = program.sections()[optimize].when;
  averages.update(program.add_section(kEmaSection, when), found_inf);
  verify(program);
}

}  // namespace fleet
