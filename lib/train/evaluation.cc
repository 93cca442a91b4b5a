#include "train/evaluation.h"

namespace fleet {

std::optional<Evaluation> evaluate(data::InputPipeline& test, StepRunner& runner,
                                   const EvaluationOptions& options) {
  runner.bring_together(options.step);
  test.start_epoch(0);
  Evaluation result;
  const VarId logits = runner.session().training().evaluate_logits;
  if (options.by_class) {
    result.classes.emplace(runner.executor().program().var(logits).shape[1]);
  }
  for (;;) {
    const data::Batch* batch = options.next_batch();
    if (!options.next_turn(batch != nullptr)) return std::nullopt;
    if (!batch) break;
    result.sums.add(runner.evaluate(*batch, options.step));
    if (result.classes) {
      const auto count = static_cast<size_t>(batch->size);
      result.classes->add(runner.executor().values<float>(logits), {batch->labels, count},
                          {batch->weights, count});
    }
    options.batch_done();
  }
  MetricSums& sums = result.sums;
  double all[] = {sums.loss, sums.loss_weight, sums.top1, sums.topk, sums.weight};
  runner.control().sum(all);
  sums = {all[0], all[1], all[2], all[3], all[4]};
  if (result.classes) result.classes->sum(runner.control());
  return result;
}

}  // namespace fleet
