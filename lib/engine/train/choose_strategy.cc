#include "train/choose_strategy.h"

#include "base/log.h"
#include "base/number_text.h"
#include "base/text.h"
#include "train/job_task.h"
#include "train/micro_batches.h"

namespace fleet {
namespace {

constexpr double kMemoryFraction = 0.95;  // share of the available memory

using Overrides = std::vector<std::string>;

Overrides joined(Overrides all, const Overrides& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string milliseconds(double seconds) { return format_printf("%.2f ms", seconds * 1e3); }
std::string gigabytes(size_t bytes) {
  return format_printf("%.2f GB", static_cast<double>(bytes) / 1e9);
}

class Chooser {
 public:
  Chooser(const ConfigTree& tree, const ExplainOptions& options, const BatchFacts& batches)
      : tree_(tree), options_(options), job_(make_job(tree)), batches_(batches) {}

  std::vector<StrategyChoice> run() {
    start_ = cost_of_job(job_, options_);
    keep_batches();
    fit_memory();
    return choices_;
  }

 private:
  bool given(const std::string& key) const { return job_.settings.given("strategy." + key); }
  void note(const std::string& reason) { choices_.push_back({"", reason}); }

  ConfigTree with_overrides(const Overrides& more) const {
    ConfigTree tree = tree_;
    const Overrides all = joined(chosen_, more);
    if (!all.empty()) tree.remove("data.global_batch_size");  // batch_size has a rank's share
    apply_overrides(tree, all);
    return tree;
  }

  // nullopt if these settings are refused, or if they switch off any that act now.
  std::optional<JobCost> cost_of(const Overrides& more) const {
    try {
      const JobCost cost = cost_of_job(make_job(with_overrides(more)), options_);
      if (!switched_off(start_, cost).empty()) return std::nullopt;
      return cost;
    } catch (const Error& error) {
      spdlog::debug("auto: {}: {}", join(more, ", "), error.what());
      return std::nullopt;
    }
  }

  // Time of a step of the whole batch, for any number of micro-batches.
  double seconds(const JobCost& cost) const {
    const double times = static_cast<double>(start_.batch) / static_cast<double>(cost.batch);
    return cost.time ? cost.time->total * times : 0;
  }

  bool fits(const JobCost& cost) const {
    return options_.available_bytes == 0 ||
           static_cast<double>(cost.memory.total()) <=
               kMemoryFraction * static_cast<double>(options_.available_bytes);
  }

  // Without those of keys that the user gave: they stay, even if their switch is off.
  Overrides without_given(Overrides all) const {
    std::erase_if(all, [&](const std::string& override) {
      return job_.settings.given(override.substr(0, override.find('=')));
    });
    return all;
  }

  bool merging_is_given() const {
    return given("gradient_merge") || given("gradient_merge_configs.k_steps");
  }

  // Samples of a step over all ranks, now.
  int64_t global_batch() const { return start_.batch * parts_; }

  Overrides micro_batches(int64_t k) const {
    return {"strategy.gradient_merge=true",
            "strategy.gradient_merge_configs.k_steps=" + std::to_string(k),
            "data.batch_size=" + std::to_string(start_.batch / k)};
  }

  // A run counts its steps, and names its checkpoints by them, so each of its starts has the
  // micro-batches of the first, whatever memory it finds.
  void keep_batches() {
    parts_ = data_part(job_, {.columns = {},
                              .rank = options_.rank,
                              .world = options_.ranks,
                              .nodes = options_.nodes,
                              .backend = options_.backend})
                 .parts;
    if (!batches_.saved || batches_.own || merging_is_given()) return;
    const auto& [step, samples, k] = *batches_.saved;
    keeps_batches_ = samples == global_batch();
    if (keeps_batches_ || k <= 1 || start_.batch % k != 0 || samples * k != global_batch()) return;
    keeps_batches_ = true;
    const Overrides kept = micro_batches(k);
    const std::optional<JobCost> cost = cost_of(kept);
    if (!cost) return;
    for (const std::string& override : kept) {
      choices_.push_back({override, "as in the checkpoint of step " + std::to_string(step) +
                                        ", from which the job continues"});
    }
    chosen_ = kept;
    start_ = *cost;
  }

  // Why micro-batches would change what the job computes; "" if they do not.
  std::string obstacle_of_micro_batches() const {
    if (merging_is_given()) return "it is given";
    if (batches_.own) return "the program makes the batches";
    if (keeps_batches_) return "the checkpoint's batches are kept";
    if (start_.statistics) return "batch normalisation would see smaller batches";
    if (mixes_samples(job_)) {
      return "images are mixed with others of their batch (mixup, cutmix)";
    }
    if (job_.settings.boolean("learning_rate.scale_with_global_batch")) {
      return "the learning rate follows the batch";
    }
    for (const char* key :
         {"train.max_steps", "train.evaluate_every_steps", "train.swa.every_steps",
          "checkpoint.every_steps", "learning_rate.warmup_steps"}) {
      if (job_.settings.given(key)) return std::string(key) + " counts steps";
    }
    for (const std::string& text : job_.train.texts("unfreeze_at")) {
      if (text.find("step") != text.npos) return "train.unfreeze_at counts steps";
    }
    if (tree_.peek("learning_rate.unit").value_or("") == "step") {
      return "the learning rate counts steps";
    }
    return "";
  }

  // Like obstacle_of_micro_batches(), for k micro-batches of this number of samples.
  std::string obstacle_of_parts(std::optional<int64_t> samples, int64_t k) const {
    if (!samples) return "the number of training samples is unknown";
    const EpochBatches whole{.samples = *samples,
                             .global_batch = global_batch(),
                             .tail = data::parse_tail(job_.data.text("tail"))};
    return micro_batch_obstacle(whole, k, job_.schedule, job_.train.integer("epochs"));
  }

  // Ways to use less memory, without micro-batches: sharding, recompute, both.
  std::vector<Overrides> memory_options() const {
    std::vector<Overrides> sharding = {{}};
    if (options_.ranks > 1 && !given("sharding")) {
      for (const char* stage : {"1", "2", "3"}) {
        sharding.push_back(without_given(
            {"strategy.sharding=true", "strategy.sharding_configs.stage=" + std::string(stage),
             "strategy.sharding_configs.sharding_degree=" + std::to_string(options_.ranks)}));
      }
    }
    std::vector<Overrides> all = sharding;
    if (given("recompute")) return all;
    const Overrides recompute = without_given(
        {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=[\"every block\"]"});
    for (const Overrides& one : sharding) all.push_back(joined(one, recompute));
    return all;
  }

  struct Found {
    Overrides overrides;
    JobCost cost;
  };

  // Of these options with `more`: the fastest that fits; else, in `smallest`, what takes least.
  std::optional<Found> fastest_of(const std::vector<Overrides>& all, const Overrides& more,
                                  std::optional<Found>* smallest) const {
    std::optional<Found> fastest;
    for (const Overrides& one : all) {
      const Overrides option = joined(one, more);
      if (option.empty()) continue;
      const std::optional<JobCost> cost = cost_of(option);
      if (!cost) continue;
      if (fits(*cost) && (!fastest || seconds(*cost) < seconds(fastest->cost))) {
        fastest = {option, *cost};
      }
      if (!*smallest || cost->memory.total() < (*smallest)->cost.memory.total()) {
        *smallest = {option, *cost};
      }
    }
    return fastest;
  }

  void fit_memory() {
    if (options_.available_bytes == 0) return note("the available memory is unknown");
    const size_t before = start_.memory.total();
    const std::string have = gigabytes(options_.available_bytes);
    if (fits(start_)) {
      return note(
          "memory suffices: a rank needs " + gigabytes(before) + " of " + have + "; no " +
          (chosen_.empty() ? "sharding, recompute or gradient_merge" : "sharding or recompute"));
    }
    const std::vector<Overrides> all = memory_options();
    std::optional<Found> smallest, fastest = fastest_of(all, {}, &smallest);
    if (!fastest) fastest = with_micro_batches(all, &smallest);
    const std::optional<Found>& found = fastest ? fastest : smallest;
    if (!found || found->cost.memory.total() >= before) {
      return note("memory does not suffice: a rank needs " + gigabytes(before) + " of " + have +
                  ", and nothing saves any");
    }
    const std::string time =
        found->cost.time ? ", in " + milliseconds(seconds(found->cost)) + " a batch" : "";
    for (const std::string& override : found->overrides) {
      choices_.push_back({override, "a rank would need " + gigabytes(before) + " of " + have +
                                        "; so it needs " + gigabytes(found->cost.memory.total()) +
                                        time + (fastest ? "" : ". Even that may not suffice")});
    }
    if (!found->cost.time) {
      note("the rates of this machine are unknown, so this is the first that " +
           std::string(fastest ? "fits" : "helps most") +
           "; fleet-worker --explain measures them, and then the fastest is chosen");
    }
    chosen_ = joined(chosen_, found->overrides);
    start_ = found->cost;
  }

  // Micro-batches round otherwise, so they come last; few before many.
  std::optional<Found> with_micro_batches(const std::vector<Overrides>& all,
                                          std::optional<Found>* smallest) {
    std::string obstacle = obstacle_of_micro_batches();
    std::optional<Found> fastest;
    std::optional<int64_t> samples;
    if (obstacle.empty() && batches_.samples) samples = batches_.samples();
    for (int64_t k = 2; !fastest && obstacle.empty() && k < start_.batch; k *= 2) {
      if (start_.batch % k != 0) break;
      obstacle = obstacle_of_parts(samples, k);
      if (obstacle.empty()) fastest = fastest_of(all, micro_batches(k), smallest);
    }
    if (!obstacle.empty()) note("no gradient_merge: " + obstacle);
    return fastest;
  }

  const ConfigTree& tree_;
  const ExplainOptions& options_;
  const Job job_;
  const BatchFacts& batches_;
  int64_t parts_ = 1;           // ranks that train different samples
  bool keeps_batches_ = false;  // those of the checkpoint
  JobCost start_;               // the job's, with `chosen_`
  Overrides chosen_;
  std::vector<StrategyChoice> choices_;
};

}  // namespace

std::vector<StrategyChoice> choose_strategy(const ConfigTree& tree, const ExplainOptions& options,
                                            const BatchFacts& batches) {
  return Chooser(tree, options, batches).run();
}

ConfigTree with_choices(const ConfigTree& tree, const std::vector<StrategyChoice>& choices) {
  ConfigTree chosen = tree;
  for (const StrategyChoice& choice : choices) {
    if (choice.override.empty()) continue;
    chosen.remove("data.global_batch_size");  // data.batch_size has a rank's share
    const size_t equals = choice.override.find('=');
    chosen.set(choice.override.substr(0, equals), choice.override.substr(equals + 1),
               "strategy.auto");
  }
  return chosen;
}

}  // namespace fleet
