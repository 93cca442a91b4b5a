#include "passes/pipeline.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "passes/micro_batch_vars.h"
#include "passes/pipeline_traffic.h"
#include "passes/uses.h"

namespace fleet {
namespace {

// Rewrites the Program: the operations of this stage in the order of its actions, with their
// messages; then those of other stages.
class Splitter {
 public:
  Splitter(Program& program, const PipelineOptions& options)
      : program_(program),
        options_(options),
        traffic_(program, options),
        vars_(program, options, traffic_) {}

  StageMap run() {
    find_gradients();
    vars_.grow_feeds();
    old_ = std::move(program_.ops());
    program_.ops().clear();
    emit_all(training_actions(options_.schedule, options_.stages, options_.stage,
                              options_.micro_batches));
    finish_loss();
    emit_all(evaluation_actions(options_.micro_batches));
    finish_rows();
    append_absent_sums();
    append_others();
    remove_marks();
    verify(program_);
    return traffic_.stages();
  }

 private:
  using Kind = PipelineAction::Kind;

  // The gradients of the parameters of this stage, by the operation that completes them.
  void find_gradients() {
    const Uses uses(program_);
    for (const VarId parameter : program_.parameters()) {
      const VarId gradient = program_.gradient(parameter);
      if (gradient == kNoVar || !program_.var(parameter).trainable) continue;
      const int writer = uses.writer(gradient);
      if (writer < 0 || !traffic_.is_own(writer)) continue;
      if (options_.micro_batches > 1) completed_by_[writer].insert(gradient);
      parameters_[gradient].push_back(parameter);
    }
  }

  // ---- messages

  PipelineLink link(Kind kind, bool sends) const {
    if (kind == Kind::kBackward) return sends ? options_.to_previous : options_.from_next;
    return sends ? options_.to_next : options_.from_previous;
  }

  // A message that has ended once an operation has waited for `done`: a control dependency, which
  // passes no data.
  struct Sent {
    PipelineAction action;
    size_t number;  // the action's, in the order of this stage
    VarId done;
  };

  void send(VarId id, const PipelineAction& action, size_t number) {
    const PipelineLink to = link(action.kind, true);
    const VarId done = program_.temporary(program_.var(id).name + "@SENT");
    Op& op = program_.append(traffic_.section_of(action.kind), "send", {id}, {done},
                             {{"peer", int64_t{to.peer}}, {"communicator", int64_t{to.group}}});
    op.stream = to.stream;
    sent_.push_back({action, number, done});
  }

  // Receives what an action reads. after: written by the last operation that it must not overtake,
  // so that no more memory is in use than for the current action and the next one.
  void receive(const PipelineAction& action, VarId after) {
    const int micro_batch = action.micro_batch;
    for (const auto& [owner, id] : traffic_.parameters(action)) {
      if (owner == options_.stage) continue;
      vars_.set_parameter(id, action.kind != Kind::kEvaluate, receive(id, action, after));
    }
    for (const VarId id : traffic_.received(action)) {
      vars_.set(id, micro_batch, receive(id, action, after));
    }
    if (micro_batch == 0) return;
    for (const auto& [id, value] : traffic_.values()) {
      const bool passed = value.once && value.kind == action.kind && value.stage < options_.stage;
      if (passed && vars_.has(id, 0)) vars_.set(id, micro_batch, vars_.at(id, 0));
    }
  }

  VarId receive(VarId id, const PipelineAction& action, VarId after) {
    const PipelineLink from = link(action.kind, false);
    const VarId made = vars_.fresh(id, action.micro_batch);
    const Var& var = program_.var(made);
    Op& op = program_.append(traffic_.section_of(action.kind), "recv", {}, {made},
                             {{"peer", int64_t{from.peer}},
                              {"communicator", int64_t{from.group}},
                              {"shape", to_attribute(var.shape)},
                              {"dtype", std::string(name_of(var.dtype))}});
    op.stream = from.stream;
    if (after != kNoVar) op.after.push_back(after);
    return made;
  }

  // Parameters and received values that stages behind this one need too.
  void pass_on(const PipelineAction& action, size_t number) {
    for (const auto& [owner, id] : traffic_.parameters(action)) {
      if (!traffic_.goes_on(action, owner, id)) continue;
      send(vars_.parameter(id, traffic_.section_of(action.kind)), action, number);
    }
    for (const VarId id : traffic_.received(action)) {
      if (!traffic_.goes_on(traffic_.values().at(id))) continue;
      send(vars_.at(id, action.micro_batch), action, number);
    }
  }

  // The messages whose memory the Plan may use again once this action starts. The neighbour has
  // long taken them, so that this waits for nothing; it tells the Plan that they have ended.
  std::vector<VarId> ended_before(const PipelineAction& action, size_t number) {
    std::vector<VarId> done;
    std::erase_if(sent_, [&](const Sent& sent) {
      const bool ended =
          sent.action.kind == Kind::kForward
              ? action.kind == Kind::kBackward && sent.action.micro_batch == action.micro_batch
              : sent.number + 2 <= number;
      if (ended) done.push_back(sent.done);
      return ended;
    });
    return done;
  }

  // ---- operations

  void emit_all(const std::vector<PipelineAction>& actions) {
    std::vector<VarId> ends(actions.size(), kNoVar);  // written last by each action
    sent_.clear();
    for (size_t k = 0; k < actions.size(); ++k) {
      if (k == 0) receive(actions[0], kNoVar);
      // The next action's message is sent while this action computes.
      if (k + 1 < actions.size()) receive(actions[k + 1], k > 0 ? ends[k - 1] : kNoVar);
      ends[k] = emit(actions[k], k);
      if (ends[k] == kNoVar && k > 0) ends[k] = ends[k - 1];
    }
  }

  // The operations of an action. Returns a variable that the last of them wrote.
  VarId emit(const PipelineAction& action, size_t number) {
    pass_on(action, number);
    const size_t begin = program_.ops().size();
    for (size_t i = 0; i < old_.size(); ++i) {
      if (!traffic_.is_own(i) || traffic_.kind_of(old_[i]) != action.kind) continue;
      Op op = renamed(old_[i], action.micro_batch, old_[i].section);
      program_.ops().push_back(std::move(op));
      for (const VarId id : old_[i].outputs) {
        const auto value = traffic_.values().find(id);
        if (value == traffic_.values().end() || value->second.op != static_cast<int>(i)) continue;
        if (traffic_.goes_on(value->second)) send_value(id, value->second, action, number);
      }
      const auto completed = completed_by_.find(static_cast<int>(i));
      if (completed != completed_by_.end()) {
        for (const VarId gradient : completed->second) accumulate(gradient, action.micro_batch);
      }
      add_sums(old_[i], action.micro_batch);
    }
    return wait_and_end(begin, action, number);
  }

  void send_value(VarId id, const StageValue& value, const PipelineAction& action, size_t number) {
    const bool part = traffic_.is_part(id);
    if (part) accumulate(id, action.micro_batch);
    if (!traffic_.is_sent(id, value, action.micro_batch)) return;
    send(part ? id : vars_.written(id, action.micro_batch), action, number);
  }

  // Lets the first operation from `begin` on wait for earlier messages. Returns what the last one
  // wrote; kNoVar if none.
  VarId wait_and_end(size_t begin, const PipelineAction& action, size_t number) {
    VarId end = kNoVar;
    bool first = true;
    for (size_t i = begin; i < program_.ops().size(); ++i) {
      Op& op = program_.ops()[i];
      if (op.stream != 0 || op.section != traffic_.section_of(action.kind)) continue;
      if (std::exchange(first, false)) op.after = ended_before(action, number);
      for (const VarId id : op.writes()) end = id;
    }
    return end;
  }

  Op renamed(const Op& op, int micro_batch, SectionId section) {
    Op copy = op;
    copy.section = section;
    const bool is_last = micro_batch + 1 == options_.micro_batches;
    if (!is_last && !program_.sections()[section].remote) {
      std::erase_if(copy.inputs, [this](VarId id) { return traffic_.is_part(id); });
    }
    for (VarId& id : copy.inputs) id = vars_.read(id, micro_batch, section);
    for (VarId& id : copy.outputs) id = vars_.written(id, micro_batch);
    return copy;
  }

  // Adds the gradient of a micro-batch to that of the first, or to a wider sum.
  void accumulate(VarId gradient, int micro_batch) {
    const SectionId backward = options_.backward;
    VarId part = vars_.written(gradient, micro_batch);
    VarId sum = gradient;
    if (program_.var(gradient).dtype != DType::kFloat32) {
      const std::vector<VarId>& parameters = parameters_.at(gradient);
      if (micro_batch == 0) {
        sum = program_.temporary(program_.var(gradient).name + "@SUM");
        program_.append(backward, "cast", {gradient}, {sum});
        for (const VarId parameter : parameters) program_.set_gradient(parameter, sum);
        return;
      }
      sum = program_.gradient(parameters.front());
      const VarId wide = program_.temporary(program_.var(part).name + "@float32");
      program_.append(backward, "cast", {part}, {wide});
      part = wide;
    }
    if (micro_batch > 0) program_.append(backward, "sum", {part, sum}, {sum});
  }

  bool is_sum(VarId id) const { return id == options_.loss || has_id(options_.batch.sums, id); }

  void add_sums(const Op& op, int micro_batch) {
    for (const VarId id : op.outputs) {
      if (id == kNoVar || !is_sum(id) || micro_batch == 0) continue;
      program_.append(op.section, "sum", {id, vars_.written(id, micro_batch)}, {id});
    }
  }

  bool computes(VarId id) const {
    const auto value = traffic_.values().find(id);
    return value != traffic_.values().end() && value->second.stage == options_.stage;
  }

  void finish_loss() {
    if (options_.micro_batches == 1 || !computes(options_.loss)) return;
    program_.append(options_.forward, "scale", {options_.loss}, {options_.loss},
                    {{"scale", 1.0 / options_.micro_batches}});
  }

  void finish_rows() {
    for (const VarId id : options_.batch.rows) {
      std::vector<int64_t> dims = to_attribute(program_.var(id).shape);
      dims[0] *= options_.micro_batches;
      program_.var(id).shape = Shape(dims);
      if (!computes(id)) {
        program_.var(id).remote = true;
        continue;
      }
      std::vector<VarId> parts;
      for (int i = 0; i < options_.micro_batches; ++i) parts.push_back(vars_.at(id, i));
      program_.append(old_[traffic_.values().at(id).op].section, "concat", parts, {id},
                      {{"axis", int64_t{0}}});
    }
  }

  // Sums that another stage computes, so that sums over all ranks are right.
  void append_absent_sums() {
    for (const auto& [id, value] : traffic_.values()) {
      if (!is_sum(id) || value.stage == options_.stage) continue;
      vars_.set(id, 0, vars_.fresh(id, 0));  // for the operations of that stage
      program_.append(old_[value.op].section, "fill", {}, {id},
                      {{"shape", to_attribute(program_.var(id).shape)}, {"value", 0.0}});
    }
  }

  void remove_marks() {
    for (Op& op : program_.ops()) {
      if (!op.attributes.has(kStageAnnotation)) continue;
      Attributes attributes;
      for (const auto& [name, value] : op.attributes.all()) {
        if (name != kStageAnnotation) attributes.set(name, value);
      }
      op.attributes = std::move(attributes);
    }
  }

  // ---- operations of other stages

  bool touches_others(const Op& op) const {
    const std::map<VarId, int>& of_var = traffic_.stages().of_var;
    const auto others = [&](const std::vector<VarId>& ids) {
      return std::any_of(ids.begin(), ids.end(), [&](VarId id) {
        const auto found = of_var.find(id);
        return found != of_var.end() && found->second != options_.stage;
      });
    };
    return others(op.inputs) || others(op.outputs);
  }

  // Values that this stage received keep the name under which the other stage writes them.
  void append_others() {
    for (const auto& [id, value] : traffic_.values()) {
      const bool fresh_name = is_sum(id) || has_id(options_.batch.rows, id);
      if (value.stage != options_.stage && !fresh_name) vars_.set(id, 0, id);
    }
    for (size_t i = 0; i < old_.size(); ++i) {
      if (traffic_.is_own(i)) continue;
      const bool about_samples = traffic_.stages().of_op[i] >= 0;
      if (!about_samples && !touches_others(old_[i])) {
        program_.ops().push_back(old_[i]);
        continue;
      }
      const SectionId section = vars_.remote_section(old_[i].section);
      Op op = about_samples ? renamed(old_[i], 0, section) : old_[i];
      op.section = section;
      program_.ops().push_back(op);
    }
  }

  Program& program_;
  const PipelineOptions& options_;
  const PipelineTraffic traffic_;
  MicroBatchVars vars_;
  std::map<int, std::set<VarId>> completed_by_;     // operation -> gradients
  std::map<VarId, std::vector<VarId>> parameters_;  // by gradient
  std::vector<Sent> sent_;
  std::vector<Op> old_;
};

}  // namespace

StageMap split_pipeline(Program& program, const PipelineOptions& options) {
  return Splitter(program, options).run();
}

}  // namespace fleet
