// The Program: variables and operations in order, divided into sections.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "graph/op.h"
#include "graph/predicate.h"

namespace fleet {

enum class VarKind {
  kFeed,       // the host sets it before a step
  kParameter,  // trained; saved
  kState,      // lives across steps, not trained by gradient (running statistics, momentum); saved
  kTemporary,  // lives within a step
};

// Initial value of a parameter or state. Draws depend on the job's seed and the variable's name
// only.
struct Init {
  enum Kind { kConstant, kUniform, kNormal } kind = kConstant;
  double a = 0;  // constant: value; uniform: lower bound; normal: mean
  double b = 0;  // uniform: upper bound; normal: standard deviation
};

struct Var {
  std::string name;
  VarKind kind = VarKind::kTemporary;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  Init init = {};
  bool trainable = true;  // parameters only
  double rate = 1;        // factor for a parameter's learning rate (optim/layer_decay.h)
  // A parameter that optimizer.weight_decay_exclude_1d leaves out whatever its rank, such as a
  // table of positions.
  bool no_weight_decay = false;
  VarId gradient_of = kNoVar;  // the variable whose gradient this is
  // A state that holds this parameter in a low type. Never saved; written by the parameter's
  // update, and by section "refresh" after the host wrote the parameter.
  VarId copy_of = kNoVar;
  // A state with a separate value on each rank: never broadcast; each rank's is saved.
  bool per_rank = false;
  // Sharding: the rank of the job that saves this parameter or state; -1: every rank holds it, and
  // rank 0 saves it.
  int owner = -1;
  bool remote = false;  // held by other ranks only; it has no memory on this one
  // A temporary that holds the value of this parameter (or copy) for a part of a step, in the same
  // layout.
  VarId fetched_from = kNoVar;
  bool shape_known = false;
};

// Whether a checkpoint holds it: parameters and states, except copies.
bool is_saved(const Var& var);

struct Section {
  std::string name;
  Predicate when;
  // Only other ranks run it. Here its operations take part in the choice of layouts, so that these
  // are equal on all ranks, and in nothing else.
  bool remote = false;
};
using SectionId = int;

// Ranks that take part in the same collectives, over their own communicator.
struct RankGroup {
  std::string name;             // for logs: "data parallel"
  std::vector<int> ranks = {};  // ranks of the job, in the order of the group
  // > 1: all_reduce first sums in groups of this many consecutive ranks.
  int inner_group_size = 1;
  // Messages are in the rank's own memory, which may be arranged differently on each rank. False:
  // the ranks allocate it together (Communicator::allocate()).
  bool own_memory = false;
  std::string text() const;  // "data parallel: ranks 0 2 4 6"
};
using GroupId = int;

class Program {
 public:
  SectionId add_section(const std::string& name, Predicate when, bool remote = false);
  SectionId find_section(const std::string& name) const;  // -1: none
  const std::vector<Section>& sections() const { return sections_; }

  // Returns the flag of this name, which the host sets or clears before each step; adds it if
  // needed.
  FlagId add_flag(const std::string& name);
  const std::vector<std::string>& flags() const { return flags_; }  // by FlagId

  // Adds a group that collectives name in their attribute "communicator". All ranks of a group must
  // add it at the same position among the groups they share.
  GroupId add_group(RankGroup group);
  const std::vector<RankGroup>& groups() const { return groups_; }

  // Names are unique, and sizes are numbers: kUsage otherwise, because layers have names of users.
  VarId add_var(Var var);
  VarId feed(const std::string& name, DType dtype, const Shape& shape);
  VarId parameter(const std::string& name, const Shape& shape, Init init);
  VarId state(const std::string& name, const Shape& shape, Init init,
              DType dtype = DType::kFloat32);
  // A temporary of this name, with a number appended if the name is taken.
  VarId temporary(const std::string& hint);
  VarId find(const std::string& name) const;  // kNoVar: none
  const Var& var(VarId id) const { return vars_[id]; }
  Var& var(VarId id) { return vars_[id]; }
  int var_count() const { return static_cast<int>(vars_.size()); }
  std::vector<VarId> parameters() const;  // in order of creation

  // Appends an operation. Missing attributes get the definition's defaults, and the outputs' shapes
  // are inferred. kUsage naming the operation if it or an attribute is unknown or of another type,
  // or if its shape rule refuses the inputs. An integer counts as a number.
  Op& append(SectionId section, const std::string& type, std::vector<VarId> inputs,
             std::vector<VarId> outputs, Attributes attributes = {});
  // Like the above, with a new temporary for each output, including optional ones; `hint` names
  // them.
  std::vector<VarId> emit(SectionId section, const std::string& type, std::vector<VarId> inputs,
                          Attributes attributes = {}, const std::string& hint = {});
  // Makes an operation without appending it, for passes that insert operations.
  Op make_op(SectionId section, const std::string& type, std::vector<VarId> inputs,
             std::vector<VarId> outputs, Attributes attributes = {});

  // In execution order. Passes may rewrite it; call verify() afterwards.
  std::vector<Op>& ops() { return ops_; }
  const std::vector<Op>& ops() const { return ops_; }

  // The copy of a parameter in a low type, made by make_copy() as a state "<name>@<type>"; kNoVar
  // if it has no copy.
  VarId copy_of(VarId parameter) const;
  VarId make_copy(VarId parameter, DType dtype);
  // Appends the operation that updates the copy; nothing if the parameter has no copy.
  void append_copy(SectionId section, VarId parameter);

  // The gradient of a variable, once the backward pass has made it.
  VarId gradient(VarId id) const;
  void set_gradient(VarId id, VarId gradient);

 private:
  std::vector<Section> sections_;
  std::vector<std::string> flags_;
  std::vector<RankGroup> groups_;
  std::deque<Var> vars_;  // references stay valid when variables are added
  std::map<std::string, VarId> by_name_;
  std::map<VarId, VarId> gradients_, copies_;
  std::vector<Op> ops_;
};

// Checks slots, that every input is set before it is read whenever its reader runs (by one section,
// or by several that together cover it), and that only states are written twice in a step.
// kInternal names the operation.
void verify(const Program& program);

std::string print_text(const Program& program);  // one line per operation
std::string print_dot(const Program& program);   // for Graphviz

// The argument of a shape rule.
class ShapeContext {
 public:
  ShapeContext(Program& program, const Op& op) : program_(program), op_(op) {}
  const Op& op() const { return op_; }
  const Program& program() const { return program_; }
  const Attributes& attributes() const { return op_.attributes; }
  int input_count() const { return static_cast<int>(op_.inputs.size()); }
  bool has_input(int i) const { return i < input_count() && op_.inputs[i] != kNoVar; }
  bool has_output(int i) const {
    return i < static_cast<int>(op_.outputs.size()) && op_.outputs[i] != kNoVar;
  }
  const Shape& shape(int input) const;  // kUsage if it is absent
  DType dtype(int input) const;
  // Does nothing if the output is absent; kUsage if it already has another shape or type.
  void set(int output, const Shape& shape, DType dtype);
  void set_like(int output, int input) { set(output, shape(input), dtype(input)); }
  // kUsage "conv2d 'layer1.0.conv1': <what>" unless the condition holds: an invalid network.
  void require(bool condition, const std::string& what) const;

 private:
  const Var& input(int i) const;

  Program& program_;
  const Op& op_;
};

// The argument of a gradient rule: the forward operation and the gradients of its outputs. The
// backward pass sums the contributions of several readers of a variable.
class GradientContext {
 public:
  GradientContext(Program& program, SectionId section, const Op& forward,
                  std::vector<VarId> output_gradients)
      : program_(program),
        section_(section),
        forward_(forward),
        output_gradients_(std::move(output_gradients)) {}
  virtual ~GradientContext() = default;
  const Op& forward() const { return forward_; }
  const Attributes& attributes() const { return forward_.attributes; }
  int input_count() const { return static_cast<int>(forward_.inputs.size()); }
  VarId input(int i) const;
  VarId output(int i) const;
  const Var& input_var(int i) const;  // kUsage if it is absent
  // kUsage naming the forward operation unless the condition holds.
  void require(bool condition, const std::string& what) const;
  VarId output_gradient(int i) const;  // kNoVar: the output does not reach the loss
  bool needs(int input) const;
  // The variable to write the gradient of this input to; kNoVar if it is not needed.
  VarId input_gradient(int i);
  // Uses an existing variable of the input's shape as this input's contribution, without a copy
  // (both operands of a sum). Does nothing if the gradient is not needed. The default copies.
  virtual void pass_gradient(int input, VarId gradient);
  void append(const std::string& type, std::vector<VarId> inputs, std::vector<VarId> outputs,
              Attributes attributes = {});
  Program& program() { return program_; }

 protected:
  virtual bool needs_gradient(VarId var) const = 0;
  virtual VarId new_gradient(VarId var) = 0;

 private:
  Program& program_;
  SectionId section_;
  Op forward_;  // a copy, because appending may move the operations
  std::vector<VarId> output_gradients_;
};

// A part of a model: the operations between the previous block's output and this one's. Blocks are
// listed in the order of the forward pass.
struct Block {
  std::string name;       // "layer1.0"
  VarId output = kNoVar;  // usually the only value that later blocks read
  // For optimizer.layer_decay: a value behind `output` up to which parameters have this block's
  // rate, and whether the block has the rate of the next one.
  VarId tail = kNoVar;
  bool joins_next = false;
};

}  // namespace fleet
