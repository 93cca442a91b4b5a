#include "ps/update_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "optim/update_op.h"

namespace fleet::ps {
namespace {

// Copies operations. A variable with the elements of a parameter becomes one variable for each
// block of it; others become one variable.
class Builder {
 public:
  Builder(const Program& trainer, const ServedModel& model, const Placement& placement, int server)
      : trainer_(trainer),
        model_(model),
        placement_(placement),
        server_(server),
        own_(placement.blocks_of(server)),
        parameter_of_(parameter_of_vars(trainer, model)),
        norm_parts_(norm_parts(model, placement)) {
    Predicate when;
    if (!norm_parts_.empty()) {
      when.flag = built_.norms_flag = built_.program.add_flag("norms");
      norms_section_ = built_.program.add_section("norms", when);
      when.flag_value = false;
      built_.norms.resize(model.shared_norms.size(), kNoVar);
    }
    section_ = built_.program.add_section("optimize", when);
  }

  ServerProgram build() {
    for (const ServedVar& counter : model_.counters) {
      const VarId id = trainer_.find(counter.name);
      singles_[id] = built_.program.state(counter.name, {1}, Init(), counter.dtype);
      built_.counters.push_back(singles_[id]);
    }
    for (size_t b = 0; b < own_.size(); ++b) add_block(static_cast<int>(b));
    for (const NormParts& parts : norm_parts_) append_parts(parts);
    for (const int i : model_.ops) {
      const Op& op = trainer_.ops()[i];
      if (is_done_by_trainer(op)) continue;
      if (is_update(op)) {
        append_update(op);
      } else if (parameter_of(op.inputs[0]) < 0) {
        append_single(op);
      } else if (parameter_of(op.outputs[0]) < 0) {
        const int norm = shared_norm(i);
        norm < 0 ? append_sum(op) : append_shared_sum(norm, op);
      } else {
        append_for_blocks(op);
      }
    }
    verify(built_.program);
    return std::move(built_);
  }

 private:
  int parameter_of(VarId id) const { return id == kNoVar ? -1 : parameter_of_[id]; }
  const Block& block(int b) const { return placement_.blocks[own_[b]]; }

  void add_block(int b) {
    const ServedParameter& parameter = model_.parameters[block(b).parameter];
    const Shape shape = {block(b).elements()};
    const bool part = block(b).elements() != parameter.elements;
    const std::string range =
        part ? "[" + std::to_string(block(b).begin) + ":" + std::to_string(block(b).end) + "]" : "";
    Program& program = built_.program;
    const auto remember = [&](const std::string& name, VarId id) {
      return in_blocks_[{trainer_.find(name), b}] = id;
    };
    ServerProgram::BlockVars vars;
    vars.value = remember(parameter.name, program.parameter(parameter.name + range, shape, Init()));
    vars.gradient = remember(parameter.gradient, program.feed(parameter.gradient + range,
                                                              parameter.gradient_dtype, shape));
    if (!parameter.average.empty()) {
      vars.average =
          remember(parameter.average, program.state(parameter.average + range, shape, Init()));
    }
    for (const std::string& state : parameter.states) {
      vars.states.push_back(remember(state, program.state(state + range, shape, Init())));
    }
    built_.blocks.push_back(std::move(vars));
  }

  // The variable that stands for one without a parameter. Inputs of the section become feeds.
  VarId single(VarId id) {
    if (id == kNoVar) return kNoVar;
    if (const auto found = singles_.find(id); found != singles_.end()) return found->second;
    const Var& var = trainer_.var(id);
    FLEET_CHECK(var.shape.elements() == 1, "'" + var.name + "' is not part of a parameter");
    const VarId feed = built_.program.feed(var.name, var.dtype, {1});
    if (var.dtype == DType::kInt32) {
      FLEET_CHECK(built_.left_out == kNoVar, "two checks of an update");
      built_.left_out = feed;
    } else {
      FLEET_CHECK(built_.learning_rate == kNoVar, "'" + var.name + "' is fed");
      built_.learning_rate = feed;
    }
    return singles_[id] = feed;
  }

  VarId single_output(VarId id) {
    if (id == kNoVar) return kNoVar;
    const auto found = singles_.find(id);
    if (found != singles_.end()) return found->second;
    return singles_[id] = built_.program.temporary(trainer_.var(id).name);
  }

  VarId in_block(VarId id, int b) const {
    const auto found = in_blocks_.find({id, b});
    FLEET_CHECK(found != in_blocks_.end(), "'" + trainer_.var(id).name + "' has no block");
    return found->second;
  }

  void append_single(const Op& op) {
    if (std::ranges::any_of(op.inputs, [&](VarId id) { return dropped_.contains(id); })) {
      return dropped_.insert(op.outputs.begin(), op.outputs.end());
    }
    std::vector<VarId> inputs, outputs;
    for (const VarId id : op.inputs) inputs.push_back(single(id));
    for (const VarId id : op.outputs) outputs.push_back(single_output(id));
    built_.program.append(section_, op.type(), inputs, outputs, op.attributes);
  }

  // With one server, its own sum is the whole one.
  int shared_norm(int op) const {
    for (size_t n = 0; n < built_.norms.size(); ++n) {
      if (model_.shared_norms[n].op == op) return static_cast<int>(n);
    }
    return -1;
  }

  void append_parts(const NormParts& parts) {
    const auto own = std::ranges::find(own_, parts.block);
    if (own == own_.end()) return;
    const SharedNorm& norm = model_.shared_norms[parts.norm];
    const int parameter = placement_.blocks[parts.block].parameter;
    const auto at = std::ranges::find(norm.parameters, parameter) - norm.parameters.begin();
    const VarId input = trainer_.ops()[norm.op].inputs[at];
    const VarId value = norm_input(input, static_cast<int>(own - own_.begin()));
    built_.parts.push_back(
        built_.program.emit(norms_section_, "partial_squares", {value}, {}, "parts")[0]);
  }

  // The input of a block's sum: the gradient, or its value after the element-wise operations of the
  // section, which this section then repeats.
  VarId norm_input(VarId id, int b) {
    for (const int i : model_.ops) {
      const Op& op = trainer_.ops()[i];
      if (trainer_.var(id).kind != VarKind::kTemporary || is_update(op)) continue;
      if (std::ranges::find(op.outputs, id) == op.outputs.end()) continue;
      std::vector<VarId> inputs = {norm_input(op.inputs[0], b)};
      for (size_t k = 1; k < op.inputs.size(); ++k) inputs.push_back(single(op.inputs[k]));
      return built_.program.emit(norms_section_, op.type(), inputs, op.attributes)[0];
    }
    return in_block(id, b);
  }

  // A sum over blocks of several servers.
  void append_shared_sum(int norm, const Op& op) {
    int64_t parts = 0;
    bool needed = false;
    for (const NormParts& one : norm_parts_) {
      if (one.norm != norm) continue;
      parts += one.count;
      needed |= placement_.blocks[one.block].server == server_;
    }
    if (!needed) return void(dropped_.insert(op.outputs[0]));
    built_.norms[norm] =
        built_.program.feed("parts of norm " + std::to_string(norm), DType::kFloat64, {parts});
    built_.program.append(section_, "sum_partials", {built_.norms[norm]},
                          {single_output(op.outputs[0])});
  }

  // A sum over whole parameters. A server without them does not need it.
  void append_sum(const Op& op) {
    std::vector<VarId> inputs;
    for (const VarId id : op.inputs) {
      for (size_t b = 0; b < own_.size(); ++b) {
        const int at = static_cast<int>(b);
        if (block(at).parameter == parameter_of(id)) inputs.push_back(in_block(id, at));
      }
    }
    if (inputs.empty()) return void(dropped_.insert(op.outputs[0]));
    built_.program.append(section_, op.type(), inputs, {single_output(op.outputs[0])},
                          op.attributes);
  }

  void append_for_blocks(const Op& op) {
    const int parameter = parameter_of(op.inputs[0]);
    for (size_t i = 0; i < own_.size(); ++i) {
      const int b = static_cast<int>(i);
      if (block(b).parameter != parameter) continue;
      std::vector<VarId> inputs;
      for (const VarId id : op.inputs) {
        inputs.push_back(parameter_of(id) < 0 ? single(id) : in_block(id, b));
      }
      const VarId out = built_.program.temporary(trainer_.var(op.outputs[0]).name);
      in_blocks_[{op.outputs[0], b}] = out;
      built_.program.append(section_, op.type(), inputs, {out}, op.attributes);
    }
  }

  // The groups of an update, one for each block. Copies in a low type stay on the trainer.
  void append_update(const Op& op) {
    const UpdateGroups groups(*op.def, op.inputs.size());
    std::vector<VarId> tensors, outputs;
    for (int k = 0; k < groups.count; ++k) {
      for (size_t i = 0; i < own_.size(); ++i) {
        const int b = static_cast<int>(i);
        // An average has a parameter if the value that it follows has.
        if (block(b).parameter != parameter_of(op.inputs[groups.gradient(k)])) continue;
        for (int j = 0; j < groups.inputs_each; ++j) {
          tensors.push_back(in_block(op.inputs[groups.parameter(k) + j], b));
        }
        outputs.push_back(in_block(op.inputs[groups.parameter(k)], b));
        for (int s = 0; s < groups.states(); ++s) {
          outputs.push_back(in_block(op.inputs[groups.state(k, s)], b));
        }
        outputs.push_back(kNoVar);
      }
    }
    if (tensors.empty()) return;
    std::vector<VarId> inputs;
    for (int i = 0; i < groups.first_input; ++i) inputs.push_back(single(op.inputs[i]));
    inputs.insert(inputs.end(), tensors.begin(), tensors.end());
    built_.program.append(section_, op.type(), inputs, outputs, op.attributes);
  }

  const Program& trainer_;
  const ServedModel& model_;
  const Placement& placement_;
  const int server_;
  const std::vector<int> own_;           // indices of blocks
  const std::vector<int> parameter_of_;  // by variable of the trainer
  const std::vector<NormParts> norm_parts_;
  ServerProgram built_;
  SectionId section_ = 0, norms_section_ = 0;
  std::map<VarId, VarId> singles_;
  std::map<std::pair<VarId, int>, VarId> in_blocks_;
  std::set<VarId> dropped_;  // sums of parameters of other servers, and what they lead to
};

}  // namespace

ServerProgram server_program(const Program& trainer, const ServedModel& model,
                             const Placement& placement, int server) {
  return Builder(trainer, model, placement, server).build();
}

}  // namespace fleet::ps
