#include "train/evaluation.h"

namespace fleet {

MetricSums sum_over_ranks(const MetricSums& sums, RankCoordinator& control) {
  double all[] = {sums.loss, sums.loss_weight, sums.top1, sums.topk, sums.weight};
  control.sum(all);
  return {all[0], all[1], all[2], all[3], all[4]};
}

std::optional<Evaluation> evaluate(data::InputPipeline& test, StepRunner& runner,
                                   const EvaluationOptions& options) {
  runner.sync_ranks(options.step);
  test.start_epoch(0);
  Evaluation result;
  const VarId logits = runner.session().training().evaluate_logits;
  if (options.by_class) {
    result.classes.emplace(runner.executor().program().var(logits).shape[1]);
  }
  for (;;) {
    const data::Batch* batch = options.next_batch();
    if (!options.agree_on_step(batch != nullptr)) return std::nullopt;
    if (!batch) break;
    result.sums.add(runner.evaluate(*batch, options.step));
    if (result.classes && !runner.executor().program().var(logits).remote) {
      const auto count = static_cast<size_t>(batch->size);
      result.classes->add(runner.executor().values<float>(logits), batch->labels.first(count),
                          batch->weights.first(count));
    }
    options.batch_done();
  }
  result.sums = sum_over_ranks(result.sums, runner.control());
  if (result.classes) result.classes->sum(runner.control());
  return result;
}

}  // namespace fleet
