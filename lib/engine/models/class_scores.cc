#include "models/class_scores.h"

#include "base/error.h"

namespace fleet {

void check_class_scores(const TaskBuilder& task) {
  const TaskContext& context = task.context();
  const Shape wanted = {context.batch(), context.classes()};
  const Var& var = task.var(task.output("logits"));
  if (var.shape == wanted && var.dtype == DType::kFloat32) return;
  throw Error(ErrorCode::kUsage, std::string("returns ") + name_of(var.dtype) + var.shape.text(),
              "model '" + context.options.model + "'",
              "return the logits, float32 [batch, num_classes] = " + wanted.text());
}

}  // namespace fleet
