#include "models/distillation.h"

#include "base/error.h"
#include "models/model.h"

namespace fleet {

void distillation_keys(Schema* schema) {
  schema
      ->text("distillation.weights", "",
             "weights of a teacher, from whose logits the model learns, too: a file or a folder, "
             "as for checkpoint.weights; the model has the same classes")
      .as_path()
      .text("distillation.model", "",
            "the teacher's network; default: that of its weights' record, names and shapes")
      .number("distillation.alpha", 0.5, 0, 1,
              "weight of the teacher's part of the loss, and 1 - alpha of the labels'")
      .number("distillation.temperature", 1, 0.01, 1000,
              "divides the logits of teacher and model; the teacher's part is T^2 times their "
              "Kullback-Leibler divergence")
      .boolean("distillation.hard", false,
               "the teacher's part is the cross entropy of the class that the teacher predicts")
      .numbers("distillation.mean", {},
               "means of the channels with which the teacher was trained; default: those of its "
               "weights' record, else data.mean")
      .numbers("distillation.std", {},
               "standard deviations of the channels with which the teacher was trained; default: "
               "as for distillation.mean");
}

bool distills(const Settings& task_settings) {
  return task_settings.has("distillation.weights") &&
         !task_settings.text("distillation.weights").empty();
}

void check_distillation(const TaskContext& context) {
  const Settings& settings = context.settings();
  const bool distils = distills(settings);
  for (const char* key : {"model", "alpha", "temperature", "hard", "mean", "std"}) {
    const std::string path = std::string("distillation.") + key;
    if (distils || !settings.given(path)) continue;
    throw Error(ErrorCode::kUsage, "has no effect without a teacher", "train." + path,
                "name its weights in train.distillation.weights, or remove the key");
  }
  if (distils && settings.boolean("distillation.hard") &&
      settings.given("distillation.temperature")) {
    throw Error(ErrorCode::kUsage, "has no effect on the teacher's class",
                "train.distillation.temperature", "remove it, or train.distillation.hard");
  }
}

std::vector<std::string> distillation_outputs(const TaskContext& context) {
  if (!distills(context.settings())) return {};
  const ModelPorts ports = ports_of(context.options.model, context.model());
  if (!ports.gives({kDistillationLogits})) return {};
  return {kDistillationLogits};
}

void append_distillation_loss(Program& program, const Settings& task_settings, VarId teacher,
                              Training* training) {
  const SectionId section = training->forward;
  const auto emit = [&](const std::string& type, std::vector<VarId> inputs, Attributes attributes,
                        const std::string& name) {
    return program.emit(section, type, std::move(inputs), std::move(attributes), name)[0];
  };
  const VarId own_head = training->output(kDistillationLogits);
  const VarId logits = own_head != kNoVar ? own_head : training->output("logits");
  const double alpha = task_settings.number("distillation.alpha");
  const bool hard = task_settings.boolean("distillation.hard");
  const double temperature = hard ? 1 : task_settings.number("distillation.temperature");
  const auto divided = [&](VarId var, const std::string& name) {
    return temperature == 1 ? var : emit("scale", {var}, {{"scale", 1 / temperature}}, name);
  };
  const VarId target =
      hard ? emit("hardmax", {teacher}, {}, "teacher_class")
           : emit("softmax", {divided(teacher, "teacher_scaled")}, {}, "teacher_shares");
  const VarId losses = emit("soft_cross_entropy", {divided(logits, "student_scaled"), target},
                            {{"divergence", !hard}}, "distillation_losses");
  const VarId mean = emit("mean", {losses}, {}, "distillation_loss");
  const VarId part =
      emit("scale", {mean}, {{"scale", alpha * temperature * temperature}}, "distillation_part");
  const VarId labels = emit("scale", {training->loss}, {{"scale", 1 - alpha}}, "label_part");
  training->loss = emit("elementwise_add", {labels, part}, {}, "distilled_loss");
}

}  // namespace fleet
