// Distillation: a network, the student, learns from the labels and from the logits of another one,
// the teacher (Hinton et al. 2015; DeiT, Touvron et al. 2021).
#pragma once

#include <string>
#include <vector>

#include "models/task.h"

namespace fleet {

// The keys distillation.* of a task.
void distillation_keys(Schema* schema);
bool distills(const Settings& task_settings);
// kUsage if keys of distillation are given that have no effect.
void check_distillation(const TaskContext& context);

// An output of models that have a head for the teacher's labels. While it is wanted, their "logits"
// are the other head's in training, and the mean of both in evaluation.
inline constexpr char kDistillationLogits[] = "distillation_logits";
// That output, if the job distils and the model has it: for TaskDef::more_outputs.
std::vector<std::string> distillation_outputs(const TaskContext& context);

// Adds the teacher's part to the loss: (1 - alpha) * loss + alpha * the part. Soft: T^2 times the
// Kullback-Leibler divergence of the student's softmax(logits / T) from the teacher's; hard: the
// cross entropy of the teacher's class. Mean over the batch. teacher: its logits, in the section
// forward.
void append_distillation_loss(Program& program, const Settings& task_settings, VarId teacher,
                              Training* training);

}  // namespace fleet
