// Loss and accuracy as sums, which can be added over batches and ranks.
#pragma once

namespace fleet {

// Sums over the samples of one step or one evaluation, by their weights.
struct MetricSums {
  double loss = 0, loss_weight = 0, top1 = 0, topk = 0, weight = 0;
  double mean_loss() const { return loss_weight > 0 ? loss / loss_weight : 0; }
  double acc1() const { return weight > 0 ? top1 / weight : 0; }
  double acck() const { return weight > 0 ? topk / weight : 0; }
  void add(const MetricSums& other);
};

}  // namespace fleet
