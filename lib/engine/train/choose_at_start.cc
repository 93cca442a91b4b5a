// The choices of strategy.auto at the start of a job: rank 0 decides and tells the others.
#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "exec/backend.h"
#include "train/choose_strategy.h"
#include "train/job_facts.h"
#include "train/measure_rates.h"
#include "train/rank_coordinator.h"
#include "train/start_comparison.h"

namespace fleet {
namespace {

constexpr char kChoiceKey[] = "auto/choice";
constexpr char kFailure[] = "failure";

ExplainOptions options_of(const ChoosingRanks& ranks, const MeasureOptions& measure) {
  ExplainOptions options{.rank = 0, .ranks = ranks.ranks, .nodes = ranks.nodes};
  options.backend = measure.device;
  options.device = ranks.device;
  options.threads = measure.threads;
  options.process_bytes = static_cast<size_t>(process_memory().resident);
  const size_t left = available_host_memory() / static_cast<size_t>(std::max(ranks.ranks_here, 1));
  if (is_accelerator(options.backend)) {
    options.available_bytes = ranks.device->memory().available;
  } else if (left > 0) {
    options.available_bytes = options.process_bytes + left;
  }
  return options;
}

// Logs and returns rank 0's choices.
std::vector<StrategyChoice> decide(const ConfigTree& tree, const ChoosingRanks& ranks,
                                   const ExplainOptions& options) {
  const Job job = make_job(tree);
  const std::vector<StrategyChoice> choices = choose_strategy(
      tree, options,
      {.own = ranks.own_batches,
       .samples = [&] { return training_samples(job, *ranks.device, {.world = ranks.ranks}); },
       .saved = saved_batches(job, ranks.start)});
  for (const StrategyChoice& choice : choices) {
    spdlog::info("auto: {}{}", choice.override.empty() ? "" : choice.override + ": ",
                 choice.reason);
  }
  return choices;
}

// Rank 0's choices, or its failure, go to the others.
std::vector<StrategyChoice> choose_together(const ConfigTree& tree, const ChoosingRanks& ranks,
                                            const ExplainOptions& options,
                                            std::chrono::milliseconds timeout) {
  std::vector<StrategyChoice> choices;
  if (ranks.rank == 0) {
    try {
      choices = decide(tree, ranks, options);
    } catch (...) {
      if (ranks.ranks > 1) ranks.store->set(kChoiceKey, kFailure);
      throw;
    }
    Json overrides = Json::array();
    for (const StrategyChoice& choice : choices) overrides.push_back(choice.override);
    if (ranks.ranks > 1) ranks.store->set(kChoiceKey, overrides.dump());
    return choices;
  }
  const std::string overrides = ranks.store->get(kChoiceKey, timeout);
  if (overrides == kFailure) {
    throw Error(ErrorCode::kPeerLost, "could not choose a strategy", "rank 0",
                "see the message of that rank");
  }
  for (const auto& override : Json::parse(overrides)) {
    choices.push_back({override.get<std::string>(), {}});
  }
  return choices;
}

}  // namespace

ConfigTree choose_strategy_at_start(const ConfigTree& tree, const ChoosingRanks& ranks) {
  const Job job = make_job(tree);
  if (!job.strategy.boolean("auto") || job.train.boolean("evaluate_only")) return tree;
  const std::chrono::milliseconds timeout = timeout_of(job);
  const bool accelerator = is_accelerator(ranks.device->backend());
  const MeasureOptions measure{.ranks_here = accelerator ? 1 : ranks.ranks_here,
                               .threads = threads_of_rank(1),
                               .low = job.strategy.boolean("amp"),
                               .device = ranks.device->backend()};
  ExplainOptions options = options_of(ranks, measure);
  if (ranks.ranks > 1) {
    RankCoordinator control(ranks.control ? ranks.control : ranks.compute);
    const double own = static_cast<double>(options.available_bytes);
    for (const std::vector<double>& one : control.by_rank(std::span(&own, 1))) {
      options.available_bytes =
          std::min(options.available_bytes, static_cast<size_t>(std::max(one[0], 0.0)));
    }
  }
  options.rates = read_rates(rates_file_of(measure));
  return with_choices(tree, choose_together(tree, ranks, options, timeout));
}

}  // namespace fleet
