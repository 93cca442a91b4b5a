// Parts of tasks with one class for each sample.
#pragma once

#include <span>
#include <string>

#include "models/task.h"

namespace fleet {

void label_smoothing_key(Schema* schema);
void class_weights_keys(Schema* schema);

// float32 [N] each.
struct SampleLosses {
  VarId values;
  VarId weights = kNoVar;  // the weight of the label, if classes have weights
};

// The cross entropy of the model's "logits" [N, num_classes] with labels, int64 [N]. prefix: begins
// the names of the variables. ignore_index: a label whose loss is 0.
SampleLosses append_label_losses(TaskBuilder& task, VarId label, int64_t ignore_index,
                                 const std::string& prefix = "");

// Of TaskDef::probabilities: softmax; a logit that is not a number has no probability.
void softmax_row(std::span<const float> logits, std::span<double> probabilities);

}  // namespace fleet
