#include "node/rank_steps.h"

namespace fleet {

wire::RankSteps rank_steps(int local_rank, const RankProgress& seen, bool reported) {
  wire::RankSteps steps;
  steps.set_reported(reported);
  steps.set_local_rank(local_rank);
  steps.set_steps(seen.steps);
  steps.set_step(seen.step);
  steps.set_step_at_ns(seen.step_at_ns);
  steps.set_waited_ns(seen.totals.waited);
  steps.set_samples(seen.totals.samples);
  steps.set_step_ns(seen.totals.time);
  steps.set_input_ns(seen.totals.input);
  if (seen.totals.exposed >= 0) steps.set_exposed_ns(seen.totals.exposed);
  steps.set_exchange_ns(seen.totals.exchange);
  steps.set_making_ns(seen.totals.making);
  steps.set_reading_ns(seen.totals.reading);
  steps.set_target(seen.target);
  steps.set_data_threads(static_cast<int>(seen.data_threads));
  if (seen.losses > 0) steps.set_loss(seen.loss);
  if (seen.accuracy >= 0) steps.set_accuracy(seen.accuracy);
  if (seen.evaluation_accuracy >= 0) steps.set_evaluation_accuracy(seen.evaluation_accuracy);
  if (seen.repeated_samples >= 0) steps.set_repeated_samples(seen.repeated_samples);
  if (seen.lost_samples >= 0) steps.set_lost_samples(seen.lost_samples);
  return steps;
}

}  // namespace fleet
