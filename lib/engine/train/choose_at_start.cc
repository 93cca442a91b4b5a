// The choices of strategy.auto at the start of a job: measures, decides on rank 0, tells the
// others.
#include <algorithm>

#include "base/clock.h"
#include "base/counted.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/process_memory.h"
#include "exec/backend.h"
#include "train/choose_strategy.h"
#include "train/device_settings.h"
#include "train/job_facts.h"
#include "train/measure_links.h"
#include "train/measure_rates.h"
#include "train/start_comparison.h"

namespace fleet {
namespace {

constexpr char kRatesKey[] = "auto/rates", kChoiceKey[] = "auto/choice";
constexpr char kFailure[] = "failure";

// The rates of this machine, and whether they were measured now. Rank 0 says whether its cache has
// them; else all ranks measure, so that each has its share of the machine. Empty on other ranks.
std::pair<MachineRates, bool> rates_of(const MeasureOptions& options, const ChoosingRanks& ranks,
                                       RankCoordinator& control,
                                       std::chrono::milliseconds timeout) {
  std::optional<MachineRates> known;
  if (ranks.rank == 0) known = read_rates(rates_file_of(options));
  bool measures = !known;
  if (ranks.ranks > 1) {
    if (ranks.rank == 0) ranks.store->set(kRatesKey, measures ? "measure" : "known");
    measures = ranks.store->get(kRatesKey, timeout) == "measure";
    // Accelerators do not compete with each other, so rank 0 measures alone.
    if (ranks.rank != 0 && is_accelerator(options.device)) measures = false;
  }
  if (known) return {*known, false};
  if (!measures) return {};
  MeasureOptions now = options;
  now.again = true;
  if (is_accelerator(options.device)) return {measured_rates(now), true};
  now.agree = [&](bool more) {
    double wish = more ? 1 : 0;
    control.sum(std::span(&wish, 1));
    return wish > 0;
  };
  return {measured_rates(now), true};
}

// "4 KiB in 0.15 ms, 1024 KiB in 8.71 ms"
std::string link_text(const LinkRates& link) {
  std::string text;
  for (const TransferSample& one : link.all_reduce) {
    text += (text.empty() ? "" : ", ") +
            format_printf("%.0f KiB in %.2f ms", one.bytes / 1024, one.seconds * 1e3);
  }
  return text;
}

void log_link(const LinkRates& link) {
  const std::string where =
      link.transport + ", " + counted(link.ranks, "rank") + " on " + counted(link.nodes, "node");
  if (link.communicators > 1) {
    spdlog::info("auto: {}, {} messages at once: {}", where, link.communicators, link_text(link));
  } else {
    spdlog::info("auto: {}: an all_reduce of {}", where, link_text(link));
  }
}

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
  const double start = monotonic_seconds();
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
  spdlog::info("auto: chosen in {:.1f} s; rates: {}, {}", monotonic_seconds() - start,
               options.rates->device, options.rates->origin);
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
                               .device = ranks.device->backend(),
                               .device_index = ranks.device->index()};
  ExplainOptions options = options_of(ranks, measure);
  RankCoordinator control(ranks.control ? ranks.control : ranks.compute);
  auto [rates, fresh] = rates_of(measure, ranks, control, timeout);
  if (ranks.ranks > 1) {
    const double own = static_cast<double>(options.available_bytes);
    for (const std::vector<double>& one : control.by_rank(std::span(&own, 1))) {
      options.available_bytes =
          std::min(options.available_bytes, static_cast<size_t>(std::max(one[0], 0.0)));
    }
    const LinkPlaces places{ranks.ranks, ranks.nodes, accelerator};
    for (LinkRates& link : measure_links(*ranks.device, *ranks.compute, control, places)) {
      if (ranks.rank == 0) log_link(link);
      rates.set_link(std::move(link));
    }
  }
  if (fresh && ranks.rank == 0) {
    // Links to other nodes are not this machine's, so they are measured at every start.
    MachineRates kept = rates;
    std::erase_if(kept.links, [](const LinkRates& link) { return link.nodes > 1; });
    write_rates(kept, rates_file_of(measure));
  }
  options.rates = std::move(rates);
  options.rates_of_stream = stream_rates(measure, false);
  return with_choices(tree, choose_together(tree, ranks, options, timeout));
}

}  // namespace fleet
