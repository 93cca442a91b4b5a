#include "passes/pipeline.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "passes/uses.h"

namespace fleet {
namespace {

using Kind = PipelineAction::Kind;

bool has_id(const std::vector<VarId>& ids, VarId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// A temporary that operations about samples write.
struct Value {
  int stage = -1;
  Kind kind = Kind::kForward;
  int op = 0;        // its first writer
  int furthest = 0;  // the stage furthest from its own that reads it
  // Computed from parameters alone, so that one message serves all micro-batches.
  bool once = false;
};

class Splitter {
 public:
  Splitter(Program& program, const PipelineOptions& options)
      : program_(program), options_(options), local_(options.micro_batches) {}

  StageMap run() {
    stages_ = find_stages(program_, options_.backward, options_.stages);
    find_values();
    find_readers();
    find_imports();
    find_gradients();
    find_parts();
    find_slices();
    grow_feeds();
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
    return std::move(stages_);
  }

 private:
  bool is_training(SectionId section) const { return program_.sections()[section].when.training; }
  Kind kind_of(const Op& op) const {
    if (op.section == options_.backward) return Kind::kBackward;
    return is_training(op.section) ? Kind::kForward : Kind::kEvaluate;
  }
  bool is_temporary(VarId id) const {
    return id != kNoVar && program_.var(id).kind == VarKind::kTemporary;
  }
  // The section of an action's messages.
  SectionId section_of(Kind kind) const {
    return kind == Kind::kForward    ? options_.forward
           : kind == Kind::kBackward ? options_.backward
                                     : evaluate_;
  }
  bool in_own_stage(size_t op) const { return stages_.of_op[op] == options_.stage; }

  void find_values() {
    const std::vector<Op>& ops = program_.ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      if (stages_.of_op[i] < 0) continue;
      if (kind_of(ops[i]) == Kind::kEvaluate) evaluate_ = ops[i].section;
      for (const VarId id : ops[i].outputs) {
        if (!is_temporary(id)) continue;
        values_.try_emplace(id, Value{.stage = stages_.of_op[i],
                                      .kind = kind_of(ops[i]),
                                      .op = static_cast<int>(i),
                                      .furthest = stages_.of_op[i],
                                      .once = is_of_parameters(ops[i])});
      }
    }
  }

  bool is_of_parameters(const Op& op) const {
    const std::vector<VarId> reads = op.reads();
    return kind_of(op) != Kind::kBackward && !reads.empty() &&
           std::all_of(reads.begin(), reads.end(), [this](VarId id) {
             const auto value = values_.find(id);
             return value == values_.end() ? is_model_parameter(id) : value->second.once;
           });
  }

  bool is_model_parameter(VarId id) const {
    const Var& var = program_.var(id);
    return var.kind == VarKind::kParameter || var.copy_of != kNoVar;
  }

  int owner_of(VarId parameter) const {
    const VarId whole = program_.var(parameter).copy_of;
    return stages_.of_var.at(whole == kNoVar ? parameter : whole);
  }

  // Parameters, and copies of them, that stages behind their owner read.
  void find_imports() {
    const std::vector<Op>& ops = program_.ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      const int stage = stages_.of_op[i];
      if (stage < 0) continue;
      for (const VarId id : ops[i].reads()) {
        if (!is_model_parameter(id) || owner_of(id) == stage) continue;
        const std::tuple key(is_training(ops[i].section), owner_of(id), id);
        int& furthest = imports_.try_emplace(key, stage).first->second;
        furthest = std::max(furthest, stage);
      }
    }
  }

  // Later stages' parts of the gradient of a parameter that they read: only the sum reads them, in
  // the stage of the parameter. Each stage adds up its micro-batches before it sends its part.
  void find_parts() {
    const Uses uses(program_);
    for (const VarId parameter : program_.parameters()) {
      const VarId gradient = program_.gradient(parameter);
      const auto owner = stages_.of_var.find(parameter);
      const int writer = gradient == kNoVar ? -1 : uses.writer(gradient);
      if (writer < 0 || owner == stages_.of_var.end()) continue;
      FLEET_CHECK(stages_.of_op[writer] == owner->second,
                  "the gradient of '" + program_.var(parameter).name + "' is in another stage");
      const Op& sum = program_.ops()[writer];
      if (sum.type() != "sum") continue;
      for (const VarId id : sum.inputs) {
        const auto value = values_.find(id);
        if (value == values_.end() || value->second.stage == owner->second) continue;
        if (uses.readers(id).size() > 1 || program_.var(id).dtype != DType::kFloat32) continue;
        parts_.insert(id);
      }
    }
  }

  bool is_last(int micro_batch) const { return micro_batch + 1 == options_.micro_batches; }

  // Values of the forward part go to later stages, gradients to earlier ones.
  void find_readers() {
    const std::vector<Op>& ops = program_.ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      const int stage = stages_.of_op[i];
      if (stage < 0) continue;
      for (const VarId id : ops[i].inputs) {
        const auto found = values_.find(id);
        if (found == values_.end() || found->second.stage == stage) continue;
        Value& value = found->second;
        const bool up = value.kind == Kind::kBackward;
        if (up != (stage < value.stage)) {
          throw Error(ErrorCode::kUsage,
                      "stage " + std::to_string(stage) + " would need '" + program_.var(id).name +
                          "' of stage " + std::to_string(value.stage),
                      "strategy pipeline_configs.cut", "cut the model elsewhere");
        }
        value.furthest = up ? std::min(value.furthest, stage) : std::max(value.furthest, stage);
      }
    }
  }

  // The gradients of the parameters of this stage, by the operation that completes them.
  void find_gradients() {
    const Uses uses(program_);
    for (const VarId parameter : program_.parameters()) {
      const VarId gradient = program_.gradient(parameter);
      if (gradient == kNoVar || !program_.var(parameter).trainable) continue;
      const int writer = uses.writer(gradient);
      if (writer < 0 || !in_own_stage(writer)) continue;
      if (options_.micro_batches > 1) completed_by_[writer].insert(gradient);
      parameters_[gradient].push_back(parameter);
    }
  }

  // A feed is sliced where a reader that always runs would read it: the first one may run only in
  // steps whose metrics are fetched.
  void find_slices() {
    for (const Op& op : program_.ops()) {
      const SectionId section = kind_of(op) == Kind::kBackward ? options_.forward : op.section;
      const Predicate& when = program_.sections()[section].when;
      for (const VarId id : op.reads()) {
        if (!has_id(options_.batch.feeds, id)) continue;
        SectionId& found = sliced_in_.try_emplace({id, when.training}, section).first->second;
        if (!program_.sections()[found].when.covers(when)) found = section;
      }
    }
  }

  void grow_feeds() {
    for (const VarId id : options_.batch.feeds) {
      std::vector<int64_t> dims = to_attribute(program_.var(id).shape);
      rows_ = dims[0];
      dims[0] *= options_.micro_batches;
      program_.var(id).shape = Shape(dims);
    }
  }

  // ---- names within a micro-batch

  VarId fresh(VarId id, int micro_batch) {
    const Var like = program_.var(id);
    const VarId made = program_.temporary(like.name + "#" + std::to_string(micro_batch));
    Var& var = program_.var(made);
    var.dtype = like.dtype;
    var.shape = like.shape;
    var.shape_known = like.shape_known;
    var.gradient_of = like.gradient_of;
    return made;
  }

  VarId written(VarId id, int micro_batch) {
    if (!is_temporary(id)) return id;
    const auto [known, is_new] = local_[micro_batch].try_emplace(id, id);
    if (!is_new) return known->second;
    const bool own_name = micro_batch == 0 && !has_id(options_.batch.rows, id);
    if (!own_name) known->second = fresh(id, micro_batch);
    return known->second;
  }

  VarId read(VarId id, int micro_batch, SectionId section) {
    if (id == kNoVar) return id;
    if (has_id(options_.batch.feeds, id)) return slice(id, micro_batch, section);
    if (!is_temporary(id)) return program_.sections()[section].remote ? id : here(id, section);
    const auto known = local_[micro_batch].find(id);
    FLEET_CHECK(known != local_[micro_batch].end(),
                "'" + program_.var(id).name + "' is not on its stage yet");
    return known->second;
  }

  // A parameter in this stage: itself, or what its owner sent.
  VarId here(VarId id, SectionId section) const {
    const auto known = imported_.find({id, is_training(section)});
    return known == imported_.end() ? id : known->second;
  }

  // The rows of a micro-batch. Section: the first reader's, which may be `remote`, as the slice is
  // then.
  VarId slice(VarId feed, int micro_batch, SectionId section) {
    if (options_.micro_batches == 1) return feed;
    const auto [known, is_new] =
        slices_.try_emplace({feed, micro_batch, is_training(section)}, kNoVar);
    if (!is_new) return known->second;
    const SectionId where = sliced_in_.at({feed, is_training(section)});
    section = program_.sections()[section].remote ? remote_section(where) : where;
    known->second = program_.temporary(program_.var(feed).name + "#" + std::to_string(micro_batch));
    program_.append(
        section, "slice", {feed}, {known->second},
        {{"axis", int64_t{0}}, {"start", rows_ * micro_batch}, {"end", rows_ * (micro_batch + 1)}});
    return known->second;
  }

  // ---- messages

  PipelineLink link(Kind kind, bool sends) const {
    if (kind == Kind::kBackward) return sends ? options_.to_previous : options_.from_next;
    return sends ? options_.to_next : options_.from_previous;
  }

  bool is_sent(VarId id, const Value& value, int micro_batch) const {
    return (!value.once || micro_batch == 0) && (!parts_.contains(id) || is_last(micro_batch));
  }

  // Values that this stage gets from a neighbour in this action, in the order of their writers.
  std::vector<VarId> received(const PipelineAction& action) const {
    const int own = options_.stage, micro_batch = action.micro_batch;
    const Kind kind = action.kind;
    std::vector<std::pair<int, VarId>> found;
    for (const auto& [id, value] : values_) {
      const bool passes = kind == Kind::kBackward ? value.stage > own && value.furthest <= own
                                                  : value.stage < own && value.furthest >= own;
      if (value.kind == kind && passes && is_sent(id, value, micro_batch)) {
        found.emplace_back(value.op, id);
      }
    }
    std::sort(found.begin(), found.end());
    std::vector<VarId> ids;
    for (const auto& [op, id] : found) ids.push_back(id);
    return ids;
  }

  bool goes_on(const Value& value) const {
    return value.kind == Kind::kBackward ? value.furthest < options_.stage
                                         : value.furthest > options_.stage;
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
    Op& op = program_.append(section_of(action.kind), "send", {id}, {done},
                             {{"peer", int64_t{to.peer}}, {"communicator", int64_t{to.group}}});
    op.stream = to.stream;
    sent_.push_back({action, number, done});
  }

  // Receives what an action reads. after: written by the last operation that it must not overtake,
  // so that no more memory is in use than for the current action and the next one.
  void receive(const PipelineAction& action, VarId after) {
    for (const auto& [owner, id] : imports_of(action)) {
      if (owner == options_.stage) continue;
      imported_[{id, action.kind != Kind::kEvaluate}] = receive(id, action, after);
    }
    for (const VarId id : received(action)) {
      local_[action.micro_batch][id] = receive(id, action, after);
    }
    if (action.micro_batch == 0) return;
    for (const auto& [id, value] : values_) {
      const bool passed = value.once && value.kind == action.kind && value.stage < options_.stage;
      if (passed && local_[0].contains(id)) local_[action.micro_batch][id] = local_[0].at(id);
    }
  }

  VarId receive(VarId id, const PipelineAction& action, VarId after) {
    const PipelineLink from = link(action.kind, false);
    const VarId made = fresh(id, action.micro_batch);
    const Var& var = program_.var(made);
    Op& op = program_.append(section_of(action.kind), "recv", {}, {made},
                             {{"peer", int64_t{from.peer}},
                              {"communicator", int64_t{from.group}},
                              {"shape", to_attribute(var.shape)},
                              {"dtype", std::string(name_of(var.dtype))}});
    op.stream = from.stream;
    if (after != kNoVar) op.after.push_back(after);
    return made;
  }

  // {owner, parameter} of those that this stage receives or sends with this action, in the order of
  // their messages: they go before the values of the action.
  std::vector<std::pair<int, VarId>> imports_of(const PipelineAction& action) const {
    std::vector<std::pair<int, VarId>> found;
    if (action.kind == Kind::kBackward || action.micro_batch > 0) return found;
    for (const auto& [key, furthest] : imports_) {
      const auto& [training, owner, id] = key;
      if (training == (action.kind == Kind::kEvaluate)) continue;
      if (owner <= options_.stage && furthest >= options_.stage) found.emplace_back(owner, id);
    }
    return found;
  }

  // Parameters and received values that stages behind this one need too.
  void pass_on(const PipelineAction& action, size_t number) {
    for (const auto& [owner, id] : imports_of(action)) {
      if (imports_.at({action.kind != Kind::kEvaluate, owner, id}) == options_.stage) continue;
      send(here(id, section_of(action.kind)), action, number);
    }
    for (const VarId id : received(action)) {
      if (goes_on(values_.at(id))) send(local_[action.micro_batch].at(id), action, number);
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
      if (!in_own_stage(i) || kind_of(old_[i]) != action.kind) continue;
      Op op = renamed(old_[i], action.micro_batch, old_[i].section);
      program_.ops().push_back(std::move(op));
      for (const VarId id : old_[i].outputs) {
        const auto value = values_.find(id);
        if (value == values_.end() || value->second.op != static_cast<int>(i)) continue;
        if (goes_on(value->second)) send_value(id, value->second, action, number);
      }
      const auto completed = completed_by_.find(static_cast<int>(i));
      if (completed != completed_by_.end()) {
        for (const VarId gradient : completed->second) accumulate(gradient, action.micro_batch);
      }
      add_sums(old_[i], action.micro_batch);
    }
    return wait_and_end(begin, action, number);
  }

  void send_value(VarId id, const Value& value, const PipelineAction& action, size_t number) {
    const bool part = parts_.contains(id);
    if (part) accumulate(id, action.micro_batch);
    if (!is_sent(id, value, action.micro_batch)) return;
    send(part ? id : written(id, action.micro_batch), action, number);
  }

  // Lets the first operation from `begin` on wait for earlier messages. Returns what the last one
  // wrote; kNoVar if none.
  VarId wait_and_end(size_t begin, const PipelineAction& action, size_t number) {
    VarId end = kNoVar;
    bool first = true;
    for (size_t i = begin; i < program_.ops().size(); ++i) {
      Op& op = program_.ops()[i];
      if (op.stream != 0 || op.section != section_of(action.kind)) continue;
      if (std::exchange(first, false)) op.after = ended_before(action, number);
      for (const VarId id : op.writes()) end = id;
    }
    return end;
  }

  Op renamed(const Op& op, int micro_batch, SectionId section) {
    Op copy = op;
    copy.section = section;
    if (!is_last(micro_batch) && !program_.sections()[section].remote) {
      std::erase_if(copy.inputs, [this](VarId id) { return parts_.contains(id); });
    }
    for (VarId& id : copy.inputs) id = read(id, micro_batch, section);
    for (VarId& id : copy.outputs) id = written(id, micro_batch);
    return copy;
  }

  // Adds the gradient of a micro-batch to that of the first, or to a wider sum.
  void accumulate(VarId gradient, int micro_batch) {
    const SectionId backward = options_.backward;
    VarId part = written(gradient, micro_batch);
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
      program_.append(op.section, "sum", {id, written(id, micro_batch)}, {id});
    }
  }

  bool computes(VarId id) const {
    const auto value = values_.find(id);
    return value != values_.end() && value->second.stage == options_.stage;
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
      for (int i = 0; i < options_.micro_batches; ++i) parts.push_back(local_[i].at(id));
      program_.append(old_[values_.at(id).op].section, "concat", parts, {id},
                      {{"axis", int64_t{0}}});
    }
  }

  // Sums that another stage computes, so that sums over all ranks are right.
  void append_absent_sums() {
    for (const auto& [id, value] : values_) {
      if (!is_sum(id) || value.stage == options_.stage) continue;
      local_[0][id] = fresh(id, 0);  // for the operations of that stage
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

  SectionId remote_section(SectionId section) {
    const Section known = program_.sections()[section];
    const SectionId there = program_.find_section(known.name + "_remote");
    return there >= 0 ? there : program_.add_section(known.name + "_remote", known.when, true);
  }

  bool touches_others(const Op& op) const {
    const auto others = [&](const std::vector<VarId>& ids) {
      return std::any_of(ids.begin(), ids.end(), [&](VarId id) {
        const auto found = stages_.of_var.find(id);
        return found != stages_.of_var.end() && found->second != options_.stage;
      });
    };
    return others(op.inputs) || others(op.outputs);
  }

  // Values that this stage received keep the name under which the other stage writes them.
  void append_others() {
    for (const auto& [id, value] : values_) {
      const bool fresh_name = is_sum(id) || has_id(options_.batch.rows, id);
      if (value.stage != options_.stage && !fresh_name) local_[0][id] = id;
    }
    for (size_t i = 0; i < old_.size(); ++i) {
      if (in_own_stage(i)) continue;
      const bool about_samples = stages_.of_op[i] >= 0;
      if (!about_samples && !touches_others(old_[i])) {
        program_.ops().push_back(old_[i]);
        continue;
      }
      const SectionId section = remote_section(old_[i].section);
      Op op = about_samples ? renamed(old_[i], 0, section) : old_[i];
      op.section = section;
      program_.ops().push_back(op);
    }
  }

  Program& program_;
  const PipelineOptions& options_;
  StageMap stages_;
  SectionId evaluate_ = -1;
  int64_t rows_ = 1;  // per micro-batch
  std::map<VarId, Value> values_;
  // {in training, owner, parameter} -> the furthest stage that reads it
  std::map<std::tuple<bool, int, VarId>, int> imports_;
  std::map<std::pair<VarId, bool>, VarId> imported_;       // {parameter, in training} -> here
  std::set<VarId> parts_;                                  // of gradients, sent once a step
  std::map<int, std::set<VarId>> completed_by_;            // operation -> gradients
  std::map<VarId, std::vector<VarId>> parameters_;         // by gradient
  std::vector<std::map<VarId, VarId>> local_;              // by micro-batch: original -> here
  std::map<std::pair<VarId, bool>, SectionId> sliced_in_;  // {feed, in training}
  std::map<std::tuple<VarId, int, bool>, VarId> slices_;
  std::vector<Sent> sent_;
  std::vector<Op> old_;
};

}  // namespace

StageMap split_pipeline(Program& program, const PipelineOptions& options) {
  return Splitter(program, options).run();
}

}  // namespace fleet
