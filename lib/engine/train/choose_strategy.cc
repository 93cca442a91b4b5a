#include "train/choose_strategy.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/text.h"
#include "data/augment.h"
#include "exec/backend.h"
#include "train/micro_batches.h"

namespace fleet {
namespace {

// Settings other than the defaults must be predicted to be faster by this part: predictions differ
// from the truth, and the defaults are well tried. A predicted gain of 0.04 was a loss of 0.11.
constexpr double kMinGain = 0.05, kMinGainOfOne = 0.005;  // all together, each of them
constexpr double kMemoryFraction = 0.95;                  // of the available memory
constexpr double kLongestSearch = 30;                     // seconds

using Overrides = std::vector<std::string>;

Overrides joined(Overrides all, const Overrides& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string milliseconds(double seconds) { return format_printf("%.2f ms", seconds * 1e3); }
std::string gigabytes(size_t bytes) {
  return format_printf("%.2f GB", static_cast<double>(bytes) / 1e9);
}

// One thing that is chosen, with its possible values; the first one, without overrides, is what
// the job has already.
struct Dimension {
  std::string name;      // "fuse_grad_size_in_MB"
  std::string standard;  // the text of the first value: "32 (default)"
  std::vector<Overrides> values = {{}};
  std::string companion = {};  // why a value has a second override
};

// The index of a value for each dimension.
using Point = std::vector<size_t>;

class Chooser {
 public:
  Chooser(const ConfigTree& tree, const ExplainOptions& options, const BatchFacts& batches)
      : tree_(tree),
        options_(options),
        job_(make_job(tree)),
        batches_(batches),
        begun_(monotonic_seconds()) {}

  std::vector<StrategyChoice> run() {
    start_ = cost_of_job(job_, options_);
    keep_batches();
    fit_memory();
    if (options_.ranks <= 1) {
      note("one rank: no gradients are exchanged");
    } else if (!start_.time) {
      note("how gradients are summed stays as it is: the rates of this machine are unknown");
    } else {
      choose_exchange();
    }
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

  // nullopt if the job is refused with these settings, or if they switch off any that act now.
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

  // Of a step of the whole batch, whatever number of micro-batches it has.
  double seconds(const JobCost& cost) const {
    const double times = static_cast<double>(start_.batch) / static_cast<double>(cost.batch);
    return cost.time ? cost.time->total * times : 0;
  }

  bool fits(const JobCost& cost) const {
    return options_.available_bytes == 0 ||
           static_cast<double>(cost.memory.total()) <=
               kMemoryFraction * static_cast<double>(options_.available_bytes);
  }

  // Without those of keys that the user gave: they stay, also where their switch is off.
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
    parts_ = data_part(job_, {.image = {},
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
    if (data::mixes_labels(job_.data.section("augment"))) {
      return "images are mixed with others of their batch (mixup, cutmix)";
    }
    if (job_.settings.boolean("learning_rate.scale_with_global_batch")) {
      return "the learning rate follows the batch";
    }
    for (const char* key : {"train.max_steps", "train.evaluate_every_steps",
                            "checkpoint.every_steps", "learning_rate.warmup_steps"}) {
      if (job_.settings.given(key)) return std::string(key) + " counts steps";
    }
    if (tree_.peek("learning_rate.unit").value_or("") == "step") {
      return "the learning rate counts steps";
    }
    return "";
  }

  // The same for k micro-batches of these samples.
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

  void add_buckets() {
    for (const char* key :
         {"fuse_grad_size_in_MB", "fuse_grad_size_in_num", "fuse_all_reduce_ops"}) {
      if (given(key)) return note(std::string("groups of gradients stay: ") + key + " is given");
    }
    // Groups of a size, whatever their number of gradients, which would close a large one early.
    const Overrides count = given("fuse_grad_size_in_TFLOPS")
                                ? Overrides{}
                                : Overrides{"strategy.fuse_grad_size_in_TFLOPS=1000"};
    Dimension size{"fuse_grad_size_in_MB", "32"};
    size.companion = "so that groups are closed by their size alone";
    for (const char* megabytes : {"1", "2", "4", "8", "16", "32", "64", "128", "1024"}) {
      if (count.empty() && std::string(megabytes) == "32") continue;
      Overrides one = {"strategy.fuse_grad_size_in_MB=" + std::string(megabytes)};
      one.insert(one.end(), count.begin(), count.end());
      size.values.push_back(one);
    }
    dimensions_.push_back(size);
    if (given("last_comm_group_size_MB")) return;
    Dimension last{"last_comm_group_size_MB", "unset"};
    for (const char* megabytes : {"0.0625", "0.25", "1", "4"}) {
      last.values.push_back({"strategy.last_comm_group_size_MB=" + std::string(megabytes)});
    }
    dimensions_.push_back(last);
  }

  void add_communicators() {
    if (given("nccl_comm_num")) return note("nccl_comm_num is given");
    if (job_.strategy.boolean("sync_batch_norm")) {
      return note("nccl_comm_num stays 1: sync_batch_norm needs that");
    }
    // One after another, they would gain nothing.
    if (given("sync_nccl_allreduce") && job_.strategy.boolean("sync_nccl_allreduce")) {
      return note("nccl_comm_num stays 1: sync_nccl_allreduce is given");
    }
    Dimension number{"nccl_comm_num", "1"};
    number.companion = "so that communicators do not wait for each other";
    for (const char* count : {"2", "4"}) {
      number.values.push_back(
          {"strategy.nccl_comm_num=" + std::string(count), "strategy.sync_nccl_allreduce=false"});
    }
    dimensions_.push_back(number);
  }

  void add_hierarchy() {
    if (options_.nodes <= 1) return note("no hierarchical allreduce: there is one node");
    if (given("use_hierarchical_allreduce")) return note("use_hierarchical_allreduce is given");
    const int here = options_.ranks / options_.nodes;
    if (here <= 1) return note("no hierarchical allreduce: a node has one rank");
    std::vector<int> all(static_cast<size_t>(options_.ranks));
    for (int rank = 0; rank < options_.ranks; ++rank) all[static_cast<size_t>(rank)] = rank;
    JobTopology topology = options_.topology;
    topology.ranks = options_.ranks, topology.nodes = options_.nodes;
    topology.transport = job_.comm.text("backend");
    topology.accelerator = is_accelerator(options_.backend);
    if (topology.transport_of(all).starts_with("hierarchical")) {
      return note("allreduces are hierarchical already: " + topology.transport_of(all));
    }
    Dimension hierarchy{"use_hierarchical_allreduce", "false"};
    hierarchy.values.push_back(
        without_given({"strategy.use_hierarchical_allreduce=true",
                       "strategy.hierarchical_allreduce_inter_nranks=" + std::to_string(here)}));
    hierarchy.companion = "the ranks of a node";
    dimensions_.push_back(hierarchy);
  }

  Overrides overrides_of(const Point& point) const {
    Overrides all;
    for (size_t i = 0; i < point.size(); ++i) {
      const Overrides& value = dimensions_[i].values[point[i]];
      all.insert(all.end(), value.begin(), value.end());
    }
    return all;
  }

  // Seconds of a step; endless if the job is refused, needs too much memory, or time is over.
  double seconds_at(const Point& point) {
    if (const auto known = known_.find(point); known != known_.end()) return known->second;
    double& result = known_[point] = INFINITY;
    if (monotonic_seconds() - begun_ > kLongestSearch) return result;
    const std::optional<JobCost> cost = cost_of(overrides_of(point));
    // What did not fit before need not fit now.
    if (cost && (fits(*cost) || !fits(start_))) result = seconds(*cost);
    return result;
  }

  // The best value of each dimension in turn, until none changes.
  Point search() {
    Point best(dimensions_.size(), 0);
    known_[best] = seconds(start_);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < best.size(); ++i) {
        for (size_t value = 0; value < dimensions_[i].values.size(); ++value) {
          Point other = best;
          other[i] = value;
          if (seconds_at(other) < seconds_at(best) * (1 - 1e-6)) {
            best = other;
            changed = true;
          }
        }
      }
    }
    // Values that gain next to nothing go back to the defaults.
    for (size_t i = 0; i < best.size(); ++i) {
      Point without = best;
      without[i] = 0;
      if (seconds_at(without) * (1 - kMinGainOfOne) < seconds_at(best)) best = without;
    }
    return best;
  }

  void report(size_t i, const Point& best) {
    const Dimension& dimension = dimensions_[i];
    if (best[i] != 0) {
      Point without = best;
      without[i] = 0;
      const Overrides& value = dimension.values[best[i]];
      choices_.push_back({value[0], "a step of " + milliseconds(seconds_at(best)) + " instead of " +
                                        milliseconds(seconds_at(without)) + " with " +
                                        dimension.name + " " + dimension.standard});
      for (size_t k = 1; k < value.size(); ++k) {
        choices_.push_back({value[k], dimension.companion});
      }
      return;
    }
    size_t next = 0;
    for (size_t value = 1; value < dimension.values.size(); ++value) {
      Point other = best, least = best;
      other[i] = value, least[i] = next;
      if (next == 0 || seconds_at(other) < seconds_at(least)) next = value;
    }
    Point other = best;
    other[i] = next;
    const double took = seconds_at(other);
    note(dimension.name + " stays " + dimension.standard + ": a step takes " +
         milliseconds(seconds_at(best)) +
         (std::isinf(took) ? std::string(", and no other value is possible")
                           : ", and " + milliseconds(took) + " with " +
                                 dimension.values[next][0].substr(sizeof "strategy." - 1)));
  }

  void choose_exchange() {
    add_buckets();
    add_communicators();
    add_hierarchy();
    if (dimensions_.empty()) return;
    const Point standard(dimensions_.size(), 0);
    Point best = search();
    if (seconds_at(best) > seconds_at(standard) * (1 - kMinGain)) best = standard;
    for (size_t i = 0; i < dimensions_.size(); ++i) report(i, best);
    note(format_printf(
        "communication takes %.2f ms of a step of %.2f ms, of which %.2f ms are "
        "hidden, with the settings of the job",
        start_.time->communication * 1e3, start_.time->total * 1e3, start_.time->hidden * 1e3));
  }

  const ConfigTree& tree_;
  const ExplainOptions& options_;
  const Job job_;
  const BatchFacts& batches_;
  const double begun_;
  int64_t parts_ = 1;           // ranks that train different samples
  bool keeps_batches_ = false;  // those of the checkpoint
  JobCost start_;               // of the job with `chosen_`
  Overrides chosen_;            // for memory
  std::vector<Dimension> dimensions_;
  std::map<Point, double> known_;
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
