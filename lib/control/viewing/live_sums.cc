#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "viewing/live_columns.h"

namespace fleet {

using wire::GpuUsage;
using wire::LiveRank;

namespace {

// The values of one column over several ranks; those that are unknown do not count.
class Values {
 public:
  void add(bool known, double value) {
    if (!known) return;
    least_ = count_ == 0 ? value : std::min(least_, value);
    most_ = count_ == 0 ? value : std::max(most_, value);
    sum_ += value;
    ++count_;
  }
  bool any() const { return count_ > 0; }
  double sum() const { return sum_; }
  double mean() const { return sum_ / count_; }
  double least() const { return least_; }
  double most() const { return most_; }

 private:
  double sum_ = 0, least_ = 0, most_ = 0;
  int count_ = 0;
};

}  // namespace

LiveRank sum_of(std::span<const LiveRank* const> ranks) {
  Values step, step_ms, samples, input, exposed, loss, cpu, memory, delayed;
  std::set<std::pair<int, int>> gpus;  // node and id
  LiveRank all;
  for (const LiveRank* rank : ranks) {
    step.add(rank->has_step(), static_cast<double>(rank->step()));
    step_ms.add(rank->has_step_ms(), rank->step_ms());
    samples.add(rank->has_samples_per_second(), rank->samples_per_second());
    input.add(rank->has_input_share(), rank->input_share());
    exposed.add(rank->has_exposed_share(), rank->exposed_share());
    loss.add(rank->has_loss(), rank->loss());
    cpu.add(rank->has_cpu(), rank->cpu());
    memory.add(rank->has_memory(), static_cast<double>(rank->memory()));
    delayed.add(rank->has_delayed(), rank->delayed());
    for (const GpuUsage& gpu : rank->gpus()) {
      if (gpus.emplace(rank->node_rank(), gpu.id()).second) *all.add_gpus() = gpu;
    }
    all.set_slowest(all.slowest() || rank->slowest());
  }
  if (!ranks.empty()) all.set_node_rank(ranks[0]->node_rank());
  if (step.any()) all.set_step(static_cast<int64_t>(step.least()));
  if (step_ms.any()) all.set_step_ms(step_ms.most());
  if (samples.any()) all.set_samples_per_second(samples.sum());
  if (input.any()) all.set_input_share(input.mean());
  if (exposed.any()) all.set_exposed_share(exposed.mean());
  if (loss.any()) all.set_loss(loss.mean());
  if (cpu.any()) all.set_cpu(cpu.sum());
  if (memory.any()) all.set_memory(static_cast<int64_t>(memory.sum()));
  if (delayed.any()) all.set_delayed(delayed.mean());
  return all;
}

LiveReport node_sums(const LiveReport& report) {
  std::map<int, std::vector<const LiveRank*>> nodes;
  for (const LiveRank& rank : report.ranks()) nodes[rank.node_rank()].push_back(&rank);
  LiveReport sums = report;
  sums.clear_ranks();
  sums.clear_left_out();
  for (const auto& [node, ranks] : nodes) *sums.add_ranks() = sum_of(ranks);
  return sums;
}

}  // namespace fleet
