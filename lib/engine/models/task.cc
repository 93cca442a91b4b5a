#include "models/task.h"

#include "base/error.h"
#include "models/losses.h"
#include "models/text/language_models.h"

namespace fleet {

Registry<TaskDef>& task_registry() {
  static Registry<TaskDef> registry("task");
  return registry;
}

std::set<std::string> wanted_outputs(const TaskContext& context) {
  const TaskDef& task = task_registry().get(context.options.task);
  std::set<std::string> all(task.outputs.begin(), task.outputs.end());
  const auto add = [&](const std::vector<std::string>& names) {
    all.insert(names.begin(), names.end());
  };
  if (task.more_outputs) add(task.more_outputs(context));
  add(context.options.more_outputs);
  if (const auto collector = task.collector ? task.collector(context) : nullptr) {
    add(collector->outputs());
  }
  return all;
}

Settings TrainingOptions::default_task_settings(const std::string& task) {
  return ConfigTree().validate(task_schema(task));
}

MissingColumn::MissingColumn(const std::string& column, const std::string& task)
    : Error(ErrorCode::kUsage, "the data have no column '" + column + "'", "task '" + task + "'",
            "choose the data source (data.source) of this task, or another task"),
      column_(column) {}

int64_t TaskContext::classes() const { return classes_of_model(options.model, model()); }

Shape TaskContext::shape(const std::string& column) const {
  const Column* found = find_column(options.columns, column);
  if (!found) {
    throw MissingColumn(column, options.task);
  }
  std::vector<int64_t> sizes = {options.batch};
  for (int d = 0; d < found->shape.rank(); ++d) sizes.push_back(found->shape[d]);
  return Shape(sizes);
}

VarId TaskBuilder::output(const std::string& name) const {
  return evaluates_ ? training_->evaluate_output(name) : training_->output(name);
}

VarId TaskBuilder::feed(const std::string& name) const { return training_->feed(name); }

static std::string hint_of(bool evaluates, const std::string& name) {
  return evaluates ? "evaluate/" + name : name;
}

VarId TaskBuilder::emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes,
                        const std::string& name) {
  const SectionId section = evaluates_ ? training_->evaluate : training_->forward;
  return program_.emit(section, type, std::move(inputs), std::move(attributes),
                       hint_of(evaluates_, name))[0];
}

std::vector<VarId> TaskBuilder::emit_all(const std::string& type, std::vector<VarId> inputs,
                                         Attributes attributes,
                                         const std::vector<std::string>& names) {
  const SectionId section = evaluates_ ? training_->evaluate : training_->forward;
  std::vector<VarId> outputs;
  for (const std::string& name : names) {
    outputs.push_back(program_.temporary(hint_of(evaluates_, name)));
  }
  program_.append(section, type, std::move(inputs), outputs, std::move(attributes));
  return outputs;
}

void TaskBuilder::set_loss(VarId loss) {
  FLEET_CHECK(training(), "the loss of an evaluation");
  training_->loss = loss;
}

void TaskBuilder::add_sums(const std::string& name, std::vector<std::string> parts,
                           const std::string& type, std::vector<VarId> inputs,
                           Attributes attributes) {
  const SectionId section = evaluates_ ? training_->evaluate : training_->fetch;
  const std::string hint = (evaluates_ ? "evaluate/" : "fetch/") + name;
  const VarId var = program_.emit(section, type, std::move(inputs), std::move(attributes), hint)[0];
  const Shape wanted = {static_cast<int64_t>(parts.size())};
  FLEET_CHECK(program_.var(var).shape == wanted, "sums '" + name + "' of another number");
  for (const std::string& part : parts) {
    FLEET_CHECK(training_->metrics->sum_index(part) >= 0, "the table has no sum '" + part + "'");
  }
  auto& sums = evaluates_ ? training_->evaluation_sums : training_->training_sums;
  sums.push_back({name, var, std::move(parts)});
}

}  // namespace fleet
