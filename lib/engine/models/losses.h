// Losses that a job chooses by name, "train.loss": "focal", one per file in
// lib/engine/models/losses. A task says which labels it has (FLEET_TASK_LOSSES), and the key offers
// the losses of such labels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "models/label_losses.h"
#include "models/task.h"

namespace fleet {

// The labels from which a loss is computed.
enum class LossInput {
  kLabels,   // one class of each sample
  kTargets,  // 0 or 1 of each class
  kNumbers,  // numbers of each sample
};

// The functions that are set say for which labels the loss is. Each returns float32, and appends
// the losses of training or of evaluation (TaskBuilder::training()).
struct LossDef {
  std::string help;  // one line
  Schema schema;     // its own keys, below "train."
  // Adds keys that several losses have, such as label_smoothing_key.
  std::vector<void (*)(Schema*)> shared_keys = {};
  // Of the model's "logits" [N, classes] and one class of each sample, by label_targets() or the
  // feeds "label", "other_label" and "own_share": [N].
  std::function<SampleLosses(TaskBuilder&)> of_labels;
  // Of the model's "logits" and the feed "targets", both [N, classes]: [N].
  std::function<VarId(TaskBuilder&)> of_targets;
  // Of errors, prediction - target, of any shape: the same shape.
  std::function<VarId(TaskBuilder&, VarId errors)> of_numbers;

  bool takes(LossInput input) const;
  Schema keys() const;  // all of its keys
};

Registry<LossDef>& loss_registry();

// FLEET_LOSS(focal) { def.of_targets = ...; } in models/losses/focal.cc.
#define FLEET_LOSS(name) \
  FLEET_REGISTER(loss_##name, ::fleet::LossDef& def, ::fleet::loss_registry().define, #name)

// The losses that train.loss can name in jobs of a task. A task without them has one of its own.
struct TaskLosses {
  LossInput input = LossInput::kLabels;
  std::string initial;  // that of a job that names none
};

Registry<TaskLosses>& task_losses();

// FLEET_TASK_LOSSES(multi_label) { def = {LossInput::kTargets, "bce"}; } next to the FLEET_TASK.
#define FLEET_TASK_LOSSES(name) \
  FLEET_REGISTER(task_losses_##name, ::fleet::TaskLosses& def, ::fleet::task_losses().define, #name)

// The keys of a task, with those of its losses.
Schema task_schema(const std::string& task);

// The loss that the job names. kUsage if a key of another loss is given.
const LossDef& loss_of(const TaskContext& context);

// Column of the shares of all classes, float32 [classes], of data whose labels are distributions.
inline constexpr char kLabelShares[] = "label_shares";

// The labels of a step as a distribution over the classes, with train.label_smoothing if the loss
// has that key: mixed images have two labels, and data may have shares of all classes.
struct LabelTargets {
  VarId shares = kNoVar;  // float32 [N, classes]; one counts as share * scale + bias
  double scale = 1, bias = 0;
  VarId counted = kNoVar;  // float32 [N]: the part that is not ignored; kNoVar: all is
};
LabelTargets label_targets(TaskBuilder& task);
// Losses [N], each times the part of its sample that counts.
VarId counted_losses(TaskBuilder& task, VarId losses, const LabelTargets& targets);

// train.ignore_index; -100 in tasks without that key.
int64_t ignored_label(const TaskBuilder& task);

// Keys that several losses have, for LossDef::shared_keys.
void positive_weights_key(Schema* schema);

// Name of a state with the values of train.positive_weights, which a Session sets. Checkpoints
// leave states of such names out (is_saved()).
inline constexpr char kPositiveWeights[] = "unsaved.positive_weights";

}  // namespace fleet
