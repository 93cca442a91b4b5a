#include "train/explain.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "data/lengths.h"
#include "exec/backend.h"
#include "exec/memory_error.h"
#include "ops/collective.h"
#include "tensor/caching_allocator.h"
#include "train/device_prefetcher.h"
#include "train/job_task.h"
#include "train/rank_state.h"

namespace fleet {
namespace {

// Periods of strategies (k steps) up to this are averaged.
constexpr int kAveragedSteps = 64;

struct Built {
  BuiltProgram built;
  Plan plan;
};

// batch: 0: the job's.
Built build(const Job& job, const ExplainOptions& options, std::vector<PassStep>* steps,
            int64_t batch = 0) {
  Built all{build_program(
                job, {.columns = options.columns.empty() ? expected_columns(job) : options.columns,
                      .rank = options.rank,
                      .world = options.ranks,
                      .nodes = options.nodes,
                      .batch = batch,
                      .backend = options.backend,
                      .steps = steps}),
            {}};
  all.plan = plan_built(all.built, options.backend, options.device);
  return all;
}

// The Plans of the other stages of this rank's pipeline; none without a pipeline.
std::map<int, Plan> other_stages(const Job& job, const ExplainOptions& options, const Built& own) {
  const int stages = own.built.strategy->context().stages;
  const int first = options.rank - options.rank % stages;
  const Silence silence;  // passes and strategies log nothing
  std::map<int, Plan> plans;
  for (int rank = first; rank < first + stages; ++rank) {
    if (rank == options.rank) continue;
    ExplainOptions there = options;
    there.rank = rank;
    plans.emplace(rank, build(job, there, nullptr).plan);
  }
  return plans;
}

// The time of a step, over all stages if there is a pipeline.
StepTime predict(const Job& job, const Built& all, const ExplainOptions& options,
                 const StepTimeOptions& how) {
  std::map<int, Plan> others = other_stages(job, options, all);
  std::vector<RankPlan> ranks;
  for (const auto& [rank, plan] : others) ranks.push_back({rank, &plan});
  const auto after = std::find_if(ranks.begin(), ranks.end(),
                                  [&](const RankPlan& one) { return one.rank > options.rank; });
  const auto own = static_cast<size_t>(after - ranks.begin());
  ranks.insert(after, {options.rank, &all.plan});
  return predict_step(ranks, own, options.topology, *options.rates, how);
}

// Initial values are drawn into a buffer of the largest variable, when all other memory is
// allocated.
size_t largest_saved(const Program& program) {
  size_t most = 0;
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (!is_saved(var) || var.remote) continue;
    most = std::max(most, static_cast<size_t>(var.shape.elements()) * sizeof(float));
  }
  return most;
}

// A device rounds each region up to pieces and has the prefetcher's slots.
size_t device_overhead(const Plan& plan) {
  constexpr size_t kPiece = CachingAllocator::kPiece;
  std::vector<size_t> regions = plan.workspace_bytes;
  regions.insert(regions.end(), {plan.persistent_bytes, plan.arena_bytes});
  regions.insert(regions.end(), plan.bucket_bytes.begin(), plan.bucket_bytes.end());
  size_t rounded = 0, exact = 0;
  for (const size_t bytes : regions) {
    exact += bytes;
    rounded += (bytes + kPiece - 1) / kPiece * kPiece;
  }
  return rounded - exact + DevicePrefetcher::kDepth * plan.memory().feeds;
}

ExplainedMemory memory_of(const Built& all, const ExplainOptions& options) {
  const Plan& plan = all.plan;
  ExplainedMemory memory{.planned = plan.memory()};
  if (is_accelerator(options.backend)) {
    memory.input = device_overhead(plan);
    return memory;
  }
  // Each rank maps the buckets of all ranks of its host.
  for (size_t group = 0; group < plan.bucket_bytes.size(); ++group) {
    const std::vector<int>& ranks = plan.program.groups()[group].ranks;
    if (ranks.size() <= 1) continue;
    const std::string transport = options.topology.transport_of(ranks);
    if (transport.find("shm") == std::string::npos) continue;
    const auto here = std::count_if(ranks.begin(), ranks.end(), [&](int rank) {
      return options.topology.node_of(rank) == options.topology.node_of(options.rank);
    });
    memory.communication += plan.bucket_bytes[group] * static_cast<size_t>(here - 1);
  }
  if (options.rates) {
    // Libraries prepare the operations of all micro-batches once: they are the same.
    const auto copies = static_cast<double>(all.built.strategy->context().micro_batches);
    const double prepared = static_cast<double>(plan.ops.size()) / std::max(copies, 1.0);
    memory.kernels =
        static_cast<size_t>(options.rates->library_bytes + options.rates->kernel_bytes * prepared);
  }
  memory.start = largest_saved(plan.program);
  memory.process = options.process_bytes;
  memory.input = options.input_bytes.value_or(0);
  return memory;
}

// The values that the host reads in place of trained ones. States of strategies begin as 0.
std::vector<float> values_at_start(const Var& var) {
  return std::vector<float>(static_cast<size_t>(var.shape.elements()));
}

std::optional<StepTime> time_of(const Job& job, Built& all, const ExplainOptions& options) {
  if (!options.rates) return std::nullopt;
  StepTimeOptions how{.threads = options.threads, .steps = kAveragedSteps};
  Strategy& strategy = *all.built.strategy;
  how.prepare = [&](int64_t number) {
    StepInfo info{.step = number};
    HostStep step{.info = info, .learning_rate = 0.1, .read = [&](VarId id) {
                    return values_at_start(all.plan.program.var(id));
                  }};
    strategy.before_step(step);
    return info;
  };
  StepTime time = predict(job, all, options, how);
  const double input = options.input_seconds.value_or(0);
  if (is_accelerator(options.backend)) {
    time.host = std::max(time.host, input - time.total);  // the rest is prepared during the step
  } else {
    time.host += input / options.threads;
    // The batch is copied into the Plan's memory.
    time.host += 2 * static_cast<double>(all.plan.memory().feeds) /
                 std::max(options.rates->bytes_per_second, 1.0);
  }
  time.total = time.compute + time.communication - time.hidden + time.waiting + time.host;
  time.band = band_of(time.total, options.topology, *options.rates);
  return time;
}

JobCost cost_of_built(const Job& job, Built& all, const ExplainOptions& options) {
  JobCost cost{.memory = memory_of(all, options),
               .time = time_of(job, all, options),
               .images_per_second = 0,
               .batch = job.data.integer("batch_size"),
               .length = job.data.has("sequence_length") ? job.data.integer("sequence_length") : 0,
               .strategies = all.built.strategy->names()};
  cost.statistics = !shared_statistics(all.plan.program, all.built.training.forward).empty();
  const int parts = data_part(job, {.rank = options.rank,
                                    .world = options.ranks,
                                    .nodes = options.nodes,
                                    .backend = options.backend})
                        .parts;
  if (cost.time && cost.time->total > 0) {
    cost.images_per_second = static_cast<double>(cost.batch * parts) / cost.time->total;
  }
  return cost;
}

std::vector<ExplainedGroup> groups_of(const Plan& plan, const JobTopology& topology) {
  std::vector<ExplainedGroup> groups;
  for (const RankGroup& group : plan.program.groups()) {
    groups.push_back({group.text(), topology.transport_of(group.ranks), {}, {}});
    if (group.inner_group_size > 1) {
      groups.back().name += ", in groups of " + std::to_string(group.inner_group_size);
    }
  }
  for (const PlannedOp& planned : plan.ops) {
    if (!is_collective(planned.op)) continue;
    const auto id = static_cast<size_t>(planned.op.attributes.integer("communicator"));
    groups[id].types.push_back(planned.op.type());
    groups[id].bytes.push_back(collective_cost(plan, planned, topology, {}).bytes);
  }
  std::erase_if(groups, [](const ExplainedGroup& group) { return group.bytes.empty(); });
  return groups;
}

// The costs of the Plans for data.lengths. The kernels of each are prepared once.
std::vector<LengthCost> costs_by_length(const Job& job, const ExplainOptions& given,
                                        JobCost* longest) {
  ExplainOptions options = given;
  if (options.columns.empty()) options.columns = expected_columns(job);
  const std::vector<int64_t> lengths = data::batch_lengths(job.data, options.columns);
  const Silence silence;
  std::vector<LengthCost> costs;
  for (size_t i = 0; i < lengths.size(); ++i) {
    JobCost cost = *longest;
    if (i + 1 < lengths.size()) {
      options.columns = at_length(options.columns, lengths[i]);
      Built all = build(job, options, nullptr);
      cost = cost_of_built(job, all, options);
      longest->memory.kernels += cost.memory.kernels;
    }
    costs.push_back({lengths[i], cost.memory.planned, cost.time});
  }
  return costs;
}

// The largest batch below the job's with which it fits; 0: none.
int64_t fitting_batch(const Job& job, const Built& own, const ExplainOptions& options) {
  const Silence silence;
  const int64_t unit = own.built.strategy->context().micro_batches;
  const auto bytes_of = [&](int64_t units) {
    Built smaller = build(job, options, nullptr, units * unit);
    return memory_of(smaller, options).total();
  };
  const int64_t batch = job.data.integer("batch_size");
  return unit * largest_batch(batch / unit, options.available_bytes, bytes_of);
}

ExplainOptions completed(const ExplainOptions& given, const Job& job) {
  ExplainOptions options = given;
  options.topology.ranks = options.ranks;
  options.topology.nodes = options.nodes;
  options.topology.transport = job.comm.text("backend");
  options.topology.accelerator = is_accelerator(options.backend);
  return options;
}

}  // namespace

Explanation explain(const ConfigTree& tree, const ExplainOptions& given) {
  const Job job = make_job(tree);
  const ExplainOptions options = completed(given, job);
  Explanation explained{.model = job.model_name,
                        .backend = options.backend,
                        .ranks = options.ranks,
                        .nodes = options.nodes,
                        .threads = options.threads,
                        .batch = job.data.integer("batch_size")};
  Built all = build(job, options, &explained.steps);
  const Program& program = all.plan.program;
  for (const VarId id : program.parameters()) {
    explained.parameters += program.var(id).shape.elements();
    if (program.var(id).trainable) explained.trainable += program.var(id).shape.elements();
  }
  explained.operations = static_cast<int>(all.plan.ops.size());
  for (const PlannedOp& planned : all.plan.ops) {
    const Predicate& when = program.sections()[planned.op.section].when;
    if (when.training && !when.fetch_only) ++explained.training_operations;
  }
  explained.groups = groups_of(all.plan, options.topology);
  explained.cost = cost_of_built(job, all, options);
  explained.lengths = costs_by_length(job, options, &explained.cost);
  explained.input_seconds = options.input_seconds;
  explained.available_bytes = options.available_bytes;
  if (options.available_bytes > 0 && explained.cost.memory.total() > options.available_bytes) {
    explained.fitting_batch = fitting_batch(job, all, options);
  }
  explained.rates = options.rates;
  explained.topology = options.topology;
  return explained;
}

std::vector<std::string> switched_off(const JobCost& before, const JobCost& after) {
  std::vector<std::string> off = before.strategies;
  std::erase_if(off, [&](const std::string& name) {
    return std::find(after.strategies.begin(), after.strategies.end(), name) !=
           after.strategies.end();
  });
  return off;
}

JobCost cost_of_job(const Job& job, const ExplainOptions& given) {
  const Silence silence;  // passes and strategies log nothing
  const ExplainOptions options = completed(given, job);
  Built all = build(job, options, nullptr);
  return cost_of_built(job, all, options);
}

}  // namespace fleet
