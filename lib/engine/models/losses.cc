#include "models/losses.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

bool has_key(const Schema& schema, const std::string& path) {
  return std::ranges::find(schema.keys(), path, &ConfigKey::path) != schema.keys().end();
}

std::vector<std::string> losses_for(LossInput input) {
  std::vector<std::string> names;
  for (const std::string& name : loss_registry().names()) {
    if (loss_registry().get(name).takes(input)) names.push_back(name);
  }
  return names;
}

}  // namespace

Registry<LossDef>& loss_registry() {
  static Registry<LossDef> registry("loss");
  return registry;
}

Registry<TaskLosses>& task_losses() {
  static Registry<TaskLosses> registry("task");
  return registry;
}

bool LossDef::takes(LossInput input) const {
  switch (input) {
    case LossInput::kLabels:
      return of_labels != nullptr;
    case LossInput::kTargets:
      return of_targets != nullptr;
    case LossInput::kNumbers:
      return of_numbers != nullptr;
  }
  return false;
}

Schema LossDef::keys() const {
  Schema all = schema;
  for (const auto& add : shared_keys) add(&all);
  return all;
}

Schema task_schema(const std::string& task) {
  Schema schema = task_registry().get(task).schema;
  const TaskLosses* losses = task_losses().find(task);
  if (!losses) return schema;
  const std::vector<std::string> names = losses_for(losses->input);
  std::vector<std::string> helps;
  std::vector<void (*)(Schema*)> shared;
  for (const std::string& name : names) {
    const LossDef& loss = loss_registry().get(name);
    helps.push_back(name + ": " + loss.help);
    schema.section("", loss.schema);
    for (const auto& add : loss.shared_keys) {
      if (std::ranges::find(shared, add) != shared.end()) continue;
      shared.push_back(add);
      add(&schema);
    }
  }
  return schema.choice("loss", losses->initial, names, "the loss; " + join(helps, "; "));
}

const LossDef& loss_of(const TaskContext& context) {
  const std::string& name = context.settings().text("loss");
  const LossDef& own = loss_registry().get(name);
  const Schema known = own.keys();
  const LossInput input = task_losses().get(context.options.task).input;
  for (const std::string& other : losses_for(input)) {
    const Schema others = loss_registry().get(other).keys();
    for (const ConfigKey& key : others.keys()) {
      if (has_key(known, key.path) || !context.settings().given(key.path)) continue;
      throw Error(ErrorCode::kUsage, "belongs to the loss " + other + ", not to " + name,
                  "train." + key.path, "remove it, or set train.loss");
    }
  }
  return own;
}

int64_t ignored_label(const TaskBuilder& task) {
  constexpr int64_t kNoLabel = -100;  // of no sample
  return task.settings().has("ignore_index") ? task.settings().integer("ignore_index") : kNoLabel;
}

void positive_weights_key(Schema* schema) {
  schema->numbers("positive_weights", {},
                  "factors of the loss of present classes, one for each class or one for all "
                  "(PyTorch's pos_weight); empty: 1");
}

LabelTargets label_targets(TaskBuilder& task) {
  const Settings& settings = task.settings();
  const auto classes = static_cast<double>(task.context().classes());
  const double smoothing = has_key(loss_of(task.context()).keys(), "label_smoothing")
                               ? settings.number("label_smoothing")
                               : 0;
  if (const VarId shares = task.feed(kLabelShares); shares != kNoVar) {
    return {.shares = shares, .scale = 1 - smoothing, .bias = smoothing / classes};
  }
  std::vector<VarId> labels = {task.feed("label")};
  if (task.training() && task.context().options.mixed_labels) {
    labels.insert(labels.end(), {task.feed("other_label"), task.feed("own_share")});
  }
  const auto both = task.emit_all("label_distribution", labels,
                                  {{"classes", task.context().classes()},
                                   {"label_smoothing", smoothing},
                                   {"ignore_index", ignored_label(task)}},
                                  {"label_targets", "counted"});
  return {.shares = both[0], .counted = both[1]};
}

VarId counted_losses(TaskBuilder& task, VarId losses, const LabelTargets& targets) {
  if (targets.counted == kNoVar) return losses;
  return task.emit("elementwise_mul", {losses, targets.counted}, {}, "counted_losses");
}

}  // namespace fleet
