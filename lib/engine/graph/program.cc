#include "graph/program.h"

#include <algorithm>

namespace fleet {

// Name prefix of states that count events of this process; they are not saved.
constexpr char kUnsaved[] = "unsaved.";

bool is_saved(const Var& var) {
  const bool lasts = var.kind == VarKind::kParameter || var.kind == VarKind::kState;
  return lasts && var.copy_of == kNoVar && !var.name.starts_with(kUnsaved);
}

SectionId Program::add_section(const std::string& name, Predicate when, bool remote) {
  FLEET_CHECK(find_section(name) < 0, "section '" + name + "' exists twice");
  FLEET_CHECK(when.every >= 1, "section '" + name + "' has a step interval below 1");
  FLEET_CHECK(when.flag >= kNoFlag && when.flag < static_cast<FlagId>(flags_.size()),
              "section '" + name + "' names an unknown flag");
  sections_.push_back({name, when, remote});
  return static_cast<SectionId>(sections_.size()) - 1;
}

SectionId Program::find_section(const std::string& name) const {
  for (size_t i = 0; i < sections_.size(); ++i) {
    if (sections_[i].name == name) return static_cast<SectionId>(i);
  }
  return -1;
}

std::string RankGroup::text() const {
  std::string text = name + ": ranks";
  for (const int rank : ranks) text += " " + std::to_string(rank);
  return inner_group_size > 1 ? text + ", in groups of " + std::to_string(inner_group_size) : text;
}

FlagId Program::add_flag(const std::string& name) {
  const auto found = std::find(flags_.begin(), flags_.end(), name);
  if (found != flags_.end()) return static_cast<FlagId>(found - flags_.begin());
  FLEET_CHECK(flags_.size() < 64, "more than 64 flags");
  flags_.push_back(name);
  return static_cast<FlagId>(flags_.size()) - 1;
}

GroupId Program::add_group(RankGroup group) {
  FLEET_CHECK(!group.ranks.empty(), "group '" + group.name + "' has no ranks");
  groups_.push_back(std::move(group));
  return static_cast<GroupId>(groups_.size()) - 1;
}

// Sizes that are none, or more elements than any memory has.
static void check_size(const Shape& shape, const std::string& name) {
  constexpr int64_t kMost = int64_t{1} << 50;
  int64_t elements = 1;
  bool fits = true;
  for (const int64_t size : shape) {
    fits = fits && size >= 0 && (size == 0 || elements <= kMost / size);
    elements *= fits ? std::max<int64_t>(size, 1) : 0;
  }
  if (fits) return;
  throw Error(ErrorCode::kUsage, "the size " + shape.text() + " is impossible", "'" + name + "'",
              "change the model or the input size");
}

VarId Program::add_var(Var var) {
  const VarId id = var_count();
  check_size(var.shape, var.name);
  if (!by_name_.emplace(var.name, id).second) {
    throw Error(ErrorCode::kUsage, "there are two variables '" + var.name + "'", {},
                "rename a layer: its parameters and states have its name at their start");
  }
  vars_.push_back(std::move(var));
  return id;
}

VarId Program::feed(const std::string& name, DType dtype, const Shape& shape) {
  return add_var(
      {.name = name, .kind = VarKind::kFeed, .dtype = dtype, .shape = shape, .shape_known = true});
}

VarId Program::parameter(const std::string& name, const Shape& shape, Init init) {
  return add_var({.name = name,
                  .kind = VarKind::kParameter,
                  .shape = shape,
                  .init = init,
                  .shape_known = true});
}

VarId Program::state(const std::string& name, const Shape& shape, Init init, DType dtype) {
  return add_var({.name = name,
                  .kind = VarKind::kState,
                  .dtype = dtype,
                  .shape = shape,
                  .init = init,
                  .shape_known = true});
}

VarId Program::temporary(const std::string& hint) {
  std::string name = hint;
  for (int number = 1; by_name_.contains(name); ++number) {
    name = hint + "_" + std::to_string(number);
  }
  return add_var({.name = name});
}

VarId Program::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoVar : found->second;
}

std::vector<VarId> Program::parameters() const {
  std::vector<VarId> all;
  for (VarId id = 0; id < var_count(); ++id) {
    if (vars_[id].kind == VarKind::kParameter) all.push_back(id);
  }
  return all;
}

// "conv2d 'layer1.0.conv1.out'"
static std::string text_of_op(const Program& program, const std::string& type,
                              const std::vector<VarId>& outputs) {
  const VarId first = outputs.empty() ? kNoVar : outputs[0];
  return first == kNoVar ? type : type + " '" + program.var(first).name + "'";
}

// The attributes with the defaults of those that are missing.
static Attributes complete(const OpDef& def, const Attributes& given, const std::string& where) {
  Attributes all = given;
  for (const auto& [name, value] : given.all()) {
    if (name.starts_with('@')) continue;  // an annotation of passes: no operation declares it
    const auto declared = def.attributes.find(name);
    if (declared == def.attributes.end()) {
      throw Error(ErrorCode::kUsage, def.type + " has no attribute '" + name + "'", where,
                  attribute_suggestion(name, def.attributes));
    }
    if (declared->second.index() == value.index()) continue;
    const auto* integer = std::get_if<int64_t>(&value);
    if (!integer || !std::holds_alternative<double>(declared->second)) {
      throw Error(ErrorCode::kUsage, "attribute '" + name + "' cannot be " + text_of(value), where,
                  std::string("its type is ") + type_name_of(declared->second));
    }
    all.set(name, static_cast<double>(*integer));
  }
  for (const auto& [name, value] : def.attributes) {
    if (!all.has(name)) all.set(name, value);
  }
  return all;
}

// An error without a place happened in this operation.
static void infer(const OpDef& def, ShapeContext& context, const std::string& where) {
  if (!def.infer) return;
  try {
    def.infer(context);
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.code(), error.failure(), where, error.next());
  }
}

Op Program::make_op(SectionId section, const std::string& type, std::vector<VarId> inputs,
                    std::vector<VarId> outputs, Attributes attributes) {
  const OpDef& def = op_registry().get(type);
  const std::string where = text_of_op(*this, type, outputs);
  attributes = complete(def, attributes, where);
  if (!def.has_variadic_inputs()) inputs.resize(def.inputs.size(), kNoVar);
  if (!def.has_variadic_outputs()) outputs.resize(def.outputs.size(), kNoVar);
  Op op{.def = &def,
        .inputs = std::move(inputs),
        .outputs = std::move(outputs),
        .attributes = std::move(attributes),
        .section = section};
  ShapeContext context(*this, op);
  infer(def, context, where);
  return op;
}

Op& Program::append(SectionId section, const std::string& type, std::vector<VarId> inputs,
                    std::vector<VarId> outputs, Attributes attributes) {
  ops_.push_back(
      make_op(section, type, std::move(inputs), std::move(outputs), std::move(attributes)));
  return ops_.back();
}

std::vector<VarId> Program::emit(SectionId section, const std::string& type,
                                 std::vector<VarId> inputs, Attributes attributes,
                                 const std::string& hint) {
  const OpDef& def = op_registry().get(type);
  std::vector<VarId> outputs;
  for (size_t i = 0; i < def.outputs.size(); ++i) {
    const std::string base = hint.empty() ? type : hint;
    outputs.push_back(temporary(i == 0 ? base + ".out" : base + "." + def.outputs[i].name));
  }
  append(section, type, std::move(inputs), outputs, std::move(attributes));
  return outputs;
}

VarId Program::copy_of(VarId parameter) const {
  const auto found = copies_.find(parameter);
  return found == copies_.end() ? kNoVar : found->second;
}

VarId Program::make_copy(VarId parameter, DType dtype) {
  const Var& var = vars_[parameter];
  FLEET_CHECK(var.kind == VarKind::kParameter && copy_of(parameter) == kNoVar,
              "a copy of '" + var.name + "'");
  const VarId copy = state(var.name + "@" + name_of(dtype), var.shape, Init(), dtype);
  vars_[copy].copy_of = parameter;
  return copies_[parameter] = copy;
}

void Program::append_copy(SectionId section, VarId parameter) {
  const VarId copy = copy_of(parameter);
  if (copy == kNoVar) return;
  append(section, "cast", {parameter}, {copy}, {{"to", std::string(name_of(vars_[copy].dtype))}});
}

VarId Program::gradient(VarId id) const {
  const auto found = gradients_.find(id);
  return found == gradients_.end() ? kNoVar : found->second;
}

void Program::set_gradient(VarId id, VarId gradient) {
  gradients_[id] = gradient;
  vars_[gradient].gradient_of = id;
}

const Var& ShapeContext::input(int i) const {
  if (has_input(i)) return program_.var(op_.inputs[i]);
  const std::vector<SlotDef>& slots = op_.def->inputs;
  const std::string name = i < static_cast<int>(slots.size()) ? slots[i].name : std::to_string(i);
  throw Error(ErrorCode::kUsage, "the input '" + name + "' is missing",
              text_of_op(program_, op_.type(), op_.outputs), "give it one");
}

const Shape& ShapeContext::shape(int i) const { return input(i).shape; }
DType ShapeContext::dtype(int i) const { return input(i).dtype; }

void ShapeContext::set(int output, const Shape& shape, DType dtype) {
  if (!has_output(output)) return;
  Var& var = program_.var(op_.outputs[output]);
  if (!var.shape_known) {
    check_size(shape, var.name);
    var.shape = shape;
    var.dtype = dtype;
    var.shape_known = true;
    return;
  }
  require(var.shape == shape && var.dtype == dtype,
          std::string("makes ") + name_of(dtype) + shape.text() + " of '" + var.name +
              "', which is " + name_of(var.dtype) + var.shape.text());
}

void ShapeContext::require(bool condition, const std::string& what) const {
  if (condition) return;
  throw Error(ErrorCode::kUsage, what, text_of_op(program_, op_.type(), op_.outputs),
              "change the model or the input size");
}

VarId GradientContext::input(int i) const {
  return i < input_count() ? forward_.inputs[i] : kNoVar;
}
const Var& GradientContext::input_var(int i) const {
  require(input(i) != kNoVar,
          "its gradient reads the input " + std::to_string(i) + ", which is missing");
  return program_.var(input(i));
}
void GradientContext::require(bool condition, const std::string& what) const {
  if (condition) return;
  throw Error(ErrorCode::kUsage, what, text_of_op(program_, forward_.type(), forward_.outputs),
              "change the model, or the gradient of its FLEET_OP");
}
VarId GradientContext::output(int i) const {
  return i < static_cast<int>(forward_.outputs.size()) ? forward_.outputs[i] : kNoVar;
}
VarId GradientContext::output_gradient(int i) const {
  return i < static_cast<int>(output_gradients_.size()) ? output_gradients_[i] : kNoVar;
}
bool GradientContext::needs(int i) const {
  return input(i) != kNoVar && needs_gradient(forward_.inputs[i]);
}
VarId GradientContext::input_gradient(int i) {
  return needs(i) ? new_gradient(forward_.inputs[i]) : kNoVar;
}
void GradientContext::pass_gradient(int i, VarId gradient) {
  if (needs(i)) append("sum", {gradient}, {input_gradient(i)});
}
void GradientContext::append(const std::string& type, std::vector<VarId> inputs,
                             std::vector<VarId> outputs, Attributes attributes) {
  program_.append(section_, type, std::move(inputs), std::move(outputs), std::move(attributes));
}

}  // namespace fleet
