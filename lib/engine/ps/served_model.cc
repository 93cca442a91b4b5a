#include "ps/served_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/hash.h"
#include "base/number_text.h"
#include "ops/partial_squares.h"
#include "optim/ema.h"
#include "optim/row_update.h"
#include "strategy/served_tables.h"

namespace fleet::ps {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& where,
                         const std::string& next) {
  throw Error(ErrorCode::kUnsupported, what, where, next);
}

// Operations on single elements, between a gradient and its update.
bool is_elementwise(const Op& op) {
  static const std::set<std::string> kTypes = {"cast", "clip", "scale", "elementwise_mul"};
  return kTypes.contains(op.type());
}

bool is_average(const Op& op) { return op.type() == "ema"; }

// Two different numbers have different texts.
std::string exact_text(const Attribute& value) {
  const double* number = std::get_if<double>(&value);
  return number ? format_printf("%a", *number) : fleet::text_of(value);
}

class Reader {
 public:
  explicit Reader(const Program& program) : program_(program) {}

  ServedModel read() {
    find_ops();
    check_other_sections();
    for (const int i : model_.ops) {
      const Op& op = program_.ops()[i];
      check(op);
      if (is_update(op) && !is_average(op)) add_updates(op);
    }
    if (model_.parameters.empty() && served_tables(program_).empty()) {
      refuse("no parameter is updated in the section optimize", "the model", "train a parameter");
    }
    for (const int i : model_.ops) {
      const Op& op = program_.ops()[i];
      if (is_average(op)) add_averages(op);
      if (op.type() == "sum_of_squares") add_norm(i, op);
      if (op.type() == "check_finite") add_check(op);
      if (op.type() == "count_skipped_updates") model_.counts_skips = true;
      if (!is_done_by_trainer(op)) add_counters(op);
    }
    add_kept();
    write_rule();
    return std::move(model_);
  }

 private:
  const Var& var(VarId id) const { return program_.var(id); }

  bool is_served(SectionId id) const {
    const Section& section = program_.sections()[id];
    return !section.remote && (section.name == "optimize" || section.name == kEmaSection);
  }

  void find_ops() {
    FLEET_CHECK(program_.find_section("optimize") >= 0, "a Program without updates");
    for (size_t i = 0; i < program_.ops().size(); ++i) {
      const Op& op = program_.ops()[i];
      if (!is_served(op.section)) continue;
      model_.ops.push_back(static_cast<int>(i));
      for (const VarId id : op.writes()) {
        if (var(id).kind == VarKind::kTemporary) writers_[id] = &op;
      }
    }
  }

  void check_other_sections() const {
    for (const Op& op : program_.ops()) {
      if (is_served(op.section)) continue;
      for (const VarId id : op.writes()) {
        if (var(id).kind != VarKind::kParameter) continue;
        refuse("parameter servers do not support updates by " + op.type() + " in the section " +
                   program_.sections()[op.section].name,
               "strategy", "remove the strategy that adds this section");
      }
    }
  }

  // Refuses operations that a server cannot run on blocks.
  void check(const Op& op) const {
    const std::string& type = op.type();
    if (type == "check_finite_and_unscale" || type == "update_loss_scaling") {
      refuse("parameter servers do not support loss scaling (float16)", "strategy.amp",
             "use bfloat16, or remove strategy.amp");
    }
    if (type.ends_with("_rows") && op.inputs.size() > kRowUpdateParameter) {
      refuse("dense parameter servers do not support the rows of sparse embeddings",
             "the sparse embedding '" + var(op.inputs[kRowUpdateParameter]).name + "'",
             "set sparse to false");
    }
    if (type == "all_gather" || type == "reduce_scatter" || type == "broadcast") {
      refuse("parameter servers cannot be combined with sharding", "strategy.sharding",
             "remove it");
    }
    if (type == "all_reduce" && var(op.outputs[0]).dtype != DType::kInt32) {
      refuse("parameter servers already sum the gradients", "strategy", "remove " + type);
    }
    const bool known = is_update(op) || is_elementwise(op) || is_done_by_trainer(op) ||
                       type == "sum_of_squares" || has_single_elements(op);
    if (!known) {
      refuse("parameter servers do not support the operation " + type + " in an update",
             "strategy and optimizer", "remove the setting that adds it");
    }
  }

  bool has_single_elements(const Op& op) const {
    return std::ranges::all_of(op.vars(), [&](VarId id) { return var(id).shape.elements() == 1; });
  }

  void add_updates(const Op& op) {
    const UpdateGroups groups(*op.def, op.inputs.size());
    const bool whole = op.def->find_trait<ParameterUpdate>()->whole;
    for (int k = 0; k < groups.count; ++k) {
      const VarId parameter = op.inputs[groups.parameter(k)];
      check_parameter(var(parameter));
      FLEET_CHECK(!index_.contains(parameter), var(parameter).name + " is updated twice");
      index_[parameter] = static_cast<int>(model_.parameters.size());
      const VarId gradient = source_of(op.inputs[groups.gradient(k)]);
      ServedParameter served{.name = var(parameter).name,
                             .elements = var(parameter).shape.elements(),
                             .gradient = var(gradient).name,
                             .gradient_dtype = var(gradient).dtype,
                             .accumulated = var(gradient).kind == VarKind::kState,
                             .whole = whole,
                             .states = {},
                             .average = ""};
      for (int s = 0; s < groups.states(); ++s) {
        const VarId state = op.inputs[groups.state(k, s)];
        served.states.push_back(var(state).name);
        held_.insert(state);
      }
      held_.insert(parameter);
      of_source_[gradient] = index_[parameter];
      model_.parameters.push_back(std::move(served));
    }
  }

  static void check_parameter(const Var& parameter) {
    if (parameter.dtype != DType::kFloat32) {
      refuse("parameter servers hold float32 only", "train.weights_dtype", "set it to float32");
    }
    if (parameter.owner >= 0 || parameter.remote) {
      refuse("parameter servers cannot be combined with parameters divided among ranks",
             "strategy.sharding", "remove strategy.sharding and strategy.pipeline");
    }
  }

  // The variable before the operations of the section: what the trainer pushes.
  VarId source_of(VarId gradient) const {
    for (auto found = writers_.find(gradient); found != writers_.end();
         found = writers_.find(gradient)) {
      const Op& op = *found->second;
      if (!is_elementwise(op)) {
        refuse("parameter servers do not support gradients from " + op.type(), "strategy",
               "remove the strategy that adds it");
      }
      gradient = op.inputs[0];
    }
    return gradient;
  }

  void add_averages(const Op& op) {
    const UpdateGroups groups(*op.def, op.inputs.size());
    for (int k = 0; k < groups.count; ++k) {
      const VarId average = op.inputs[groups.parameter(k)], value = op.inputs[groups.gradient(k)];
      if (const auto found = index_.find(value); found != index_.end()) {
        model_.parameters[found->second].average = var(average).name;
        held_.insert(average);
      } else if (var(value).kind != VarKind::kParameter) {  // frozen ones stay equal to theirs
        refuse(
            "parameter servers do not average running statistics such as '" + var(value).name + "'",
            "train.ema.decay", "set it to 0, or use a model without batch normalization");
      }
    }
  }

  // The norm of a single parameter needs no exchange if the parameter is whole.
  void add_norm(int index, const Op& op) {
    SharedNorm norm{.op = index, .parameters = {}};
    for (const VarId id : op.inputs) norm.parameters.push_back(of_source_.at(source_of(id)));
    if (norm.parameters.size() > 1) return model_.shared_norms.push_back(std::move(norm));
    model_.parameters[norm.parameters.at(0)].whole = true;
  }

  void add_check(const Op& op) {
    for (size_t i = 1; i < op.inputs.size(); ++i) model_.checked.push_back(var(op.inputs[i]).name);
  }

  void add_counters(const Op& op) {
    for (const VarId id : op.reads()) {
      const Var& read = var(id);
      if (read.kind != VarKind::kState || held_.contains(id) || read.shape.elements() != 1)
        continue;
      if (of_source_.contains(id) || (is_average(op) && !is_scalar_of(op, id))) continue;
      held_.insert(id);
      model_.counters.push_back({read.name, read.dtype, 1});
    }
  }

  // Whether it is among the inputs before the groups.
  static bool is_scalar_of(const Op& op, VarId id) {
    const auto end = op.inputs.begin() + kUpdateStep + 1;
    return std::find(op.inputs.begin(), end, id) != end;
  }

  void add_kept() {
    for (VarId id = 0; id < program_.var_count(); ++id) {
      const Var& other = var(id);
      if (!is_saved(other) || other.per_rank || other.remote) continue;
      if (held_.contains(id) || of_source_.contains(id)) continue;
      model_.kept.push_back({other.name, other.dtype, other.shape.elements()});
    }
  }

  void write_rule() {
    for (const int i : model_.ops) {
      const Op& op = program_.ops()[i];
      if (is_done_by_trainer(op)) continue;
      model_.rule += op.type();
      for (const auto& [name, value] : op.attributes.all()) {
        model_.rule += " " + name + "=" + exact_text(value);
      }
      for (const VarId id : op.inputs) {
        const bool lasts = id != kNoVar && var(id).kind != VarKind::kTemporary;
        model_.rule += lasts ? " " + var(id).name : "";
      }
      model_.rule += "\n";
    }
  }

  const Program& program_;
  ServedModel model_;
  std::map<VarId, const Op*> writers_;  // by temporary, in the served sections
  std::map<VarId, int> index_;          // by parameter
  std::map<VarId, int> of_source_;      // the parameter, by pushed gradient
  std::set<VarId> held_;                // parameters, states, averages and counters
};

}  // namespace

bool is_done_by_trainer(const Op& op) {
  static const std::set<std::string> kTypes = {"check_finite", "count_skipped_updates", "fill",
                                               "all_reduce"};
  return kTypes.contains(op.type());
}

ServedModel served_model(const Program& trainer) { return Reader(trainer).read(); }

std::vector<int> parameter_of_vars(const Program& trainer, const ServedModel& model) {
  std::vector<int> of(static_cast<size_t>(trainer.var_count()), -1);
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    const ServedParameter& parameter = model.parameters[p];
    const auto set = [&](const std::string& name) {
      if (!name.empty()) of[trainer.find(name)] = static_cast<int>(p);
    };
    set(parameter.name);
    set(parameter.gradient);
    set(parameter.average);
    for (const std::string& state : parameter.states) set(state);
  }
  for (const int i : model.ops) {
    const Op& op = trainer.ops()[i];
    if (is_elementwise(op) && of[op.inputs[0]] >= 0) of[op.outputs[0]] = of[op.inputs[0]];
  }
  return of;
}

std::vector<PlacedParameter> ServedModel::placed_parameters() const {
  std::vector<PlacedParameter> placed;
  for (const ServedParameter& parameter : parameters) {
    const size_t values = 1 + parameter.states.size() + (parameter.average.empty() ? 0 : 1);
    placed.push_back({.name = parameter.name,
                      .elements = parameter.elements,
                      .element_bytes = values * sizeof(float),
                      .whole = parameter.whole});
  }
  return placed;
}

std::vector<PlacedVar> ServedModel::placed_vars() const {
  std::vector<PlacedVar> placed;
  for (const ServedVar& var : kept) placed.push_back({var.name, var.bytes()});
  return placed;
}

uint64_t ServedModel::hash_of_parameters() const {
  std::string text;
  for (const ServedParameter& parameter : parameters) {
    text += parameter.name + " " + std::to_string(parameter.elements) + " " +
            name_of(parameter.gradient_dtype) + " " + parameter.average + "\n";
  }
  for (const auto* vars : {&counters, &kept}) {
    for (const ServedVar& var : *vars) {
      text += var.name + " " + std::to_string(var.elements) + " " + name_of(var.dtype) + "\n";
    }
  }
  return hash_text(text);
}

uint64_t ServedModel::hash_of_rule() const { return hash_text(rule); }

Placement place(const ServedModel& model, int servers) {
  PlacementOptions options;
  if (!model.shared_norms.empty()) {
    static_assert(kSquaresPart >= PlacementOptions().min_elements);
    options.min_elements = options.alignment = kSquaresPart;
  }
  return place(model, servers, options);
}

Placement place(const ServedModel& model, int servers, const PlacementOptions& options) {
  return place(model.placed_parameters(), model.placed_vars(), servers, options);
}

std::vector<NormParts> norm_parts(const ServedModel& model, const Placement& placement) {
  std::vector<NormParts> all;
  if (placement.servers == 1) return all;
  std::vector<std::vector<int>> blocks(model.parameters.size());  // by parameter
  for (size_t b = 0; b < placement.blocks.size(); ++b) {
    blocks[placement.blocks[b].parameter].push_back(static_cast<int>(b));
  }
  for (size_t n = 0; n < model.shared_norms.size(); ++n) {
    for (const int parameter : model.shared_norms[n].parameters) {
      for (const int block : blocks[parameter]) {
        all.push_back({.norm = static_cast<int>(n),
                       .block = block,
                       .count = parts_of_squares(placement.blocks[block].elements())});
      }
    }
  }
  return all;
}

}  // namespace fleet::ps
