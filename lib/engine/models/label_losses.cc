#include "models/label_losses.h"

#include <cmath>

namespace fleet {

void label_smoothing_key(Schema* schema) {
  schema->number("label_smoothing", 0, 0, 1, "amount of label smoothing in the loss");
}

void class_weights_keys(Schema* schema) {
  schema
      ->choice("class_weights.rule", "", {"", "balanced"},
               "weights of the classes in the loss; balanced: samples / (classes x samples of the "
               "class); train.class_weights=balanced is the short form")
      .numbers("class_weights.values", {},
               "the same as a list, one for each class; short form: train.class_weights=[1, 2.5]");
}

SampleLosses append_label_losses(TaskBuilder& task, VarId label, int64_t ignore_index,
                                 const std::string& prefix) {
  const Attributes attributes = {{"label_smoothing", task.settings().number("label_smoothing")},
                                 {"ignore_index", ignore_index}};
  const VarId logits = task.output("logits");
  if (!task.context().options.class_weights) {
    return {task.emit_all("softmax_with_cross_entropy", {logits, label}, attributes,
                          {prefix + "sample_losses"})[0]};
  }
  const auto both =
      task.emit_all("weighted_cross_entropy", {logits, label, task.feed("class_weights")},
                    attributes, {prefix + "sample_losses", prefix + "sample_weights"});
  return {both[0], both[1]};
}

void softmax_row(std::span<const float> logits, std::span<double> probabilities) {
  double largest = -INFINITY, sum = 0;
  for (const float logit : logits) {
    if (!std::isnan(logit)) largest = std::max<double>(largest, logit);
  }
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  for (size_t c = 0; c < logits.size(); ++c) {
    probabilities[c] = std::exp(static_cast<double>(logits[c]) - largest) / sum;
  }
}

}  // namespace fleet
