// Estimates the effect of one more option.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "exec/backend.h"
#include "train/explain.h"

namespace fleet {
namespace {

constexpr int64_t kMicroBatches = 4;

// The options that are tried, each unless the job has it.
std::vector<WhatIf> variants(const Job& job, const ExplainOptions& options) {
  std::vector<WhatIf> all;
  const auto add = [&](const std::string& option, const std::string& strategy,
                       std::vector<std::string> overrides, std::string obstacle = {}) {
    all.push_back({option, strategy, std::move(overrides), std::move(obstacle), {}});
  };
  const Settings& strategy = job.strategy;
  if (!strategy.boolean("recompute")) {
    add("recompute", "recompute",
        {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=[\"every block\"]"});
  }
  if (!strategy.boolean("amp")) {
    std::string why;
    const bool can = !low_precision_types(options.backend, &why).empty();
    add("amp", "amp", {"strategy.amp=true"}, can ? "" : why);
  }
  if (!strategy.boolean("sharding")) {
    for (int stage = 1; stage <= 3; ++stage) {
      const std::string number = std::to_string(stage);
      add("sharding, stage " + number, "sharding",
          {"strategy.sharding=true", "strategy.sharding_configs.stage=" + number,
           "strategy.sharding_configs.sharding_degree=" + std::to_string(options.ranks)},
          options.ranks > 1 ? "" : "it needs several ranks");
      if (options.ranks <= 1) {
        all.back().option = "sharding";
        break;
      }
    }
  }
  if (!strategy.boolean("gradient_merge")) {
    const int64_t batch = job.data.integer("batch_size");
    const bool divides = batch % kMicroBatches == 0 && batch > kMicroBatches;
    const std::string k = std::to_string(kMicroBatches);
    add(k + " micro-batches", "gradient_merge",
        {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=" + k,
         "data.batch_size=" + std::to_string(batch / kMicroBatches)},
        divides ? "" : "data.batch_size is not divisible by " + k);
  }
  return all;
}

// Why the variant is not the job with one more option; "" if it is. By Paddle's rules one strategy
// may switch off others.
std::string conflict_of(const WhatIf& variant, const JobCost& base, const JobCost& cost) {
  const std::vector<std::string> off = switched_off(base, cost);
  if (!off.empty()) return "it would switch off " + join(off, " and ");
  const std::vector<std::string>& acting = cost.strategies;
  if (std::find(acting.begin(), acting.end(), variant.strategy) != acting.end()) return "";
  return "the job's other strategies would switch it off";
}

}  // namespace

void explain_what_if(const ConfigTree& tree, const ExplainOptions& options,
                     Explanation* explained) {
  explained->what_if = variants(make_job(tree), options);
  for (WhatIf& variant : explained->what_if) {
    if (!variant.obstacle.empty()) continue;
    try {
      ConfigTree changed = tree;
      changed.remove("data.global_batch_size");  // data.batch_size has a rank's share by now
      apply_overrides(changed, variant.overrides);
      JobCost cost = cost_of_job(make_job(changed), options);
      variant.obstacle = conflict_of(variant, explained->cost, cost);
      if (!variant.obstacle.empty()) continue;
      variant.cost = std::move(cost);
      // Micro-batches: k steps of a part of the batch take the place of one.
      const int64_t times = explained->batch / std::max<int64_t>(variant.cost.batch, 1);
      if (variant.cost.time && times > 1) {
        StepTime all;
        all.band = variant.cost.time->band;
        add(*variant.cost.time, static_cast<double>(times), &all);
        variant.cost.time = all;
      }
    } catch (const Error& error) {
      variant.obstacle = error.failure();
    }
  }
}

}  // namespace fleet
