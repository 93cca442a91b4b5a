// Loss and accuracy of batches, as sums that add up over batches and ranks.
#pragma once

namespace fleet {

// Sums of one step's or one evaluation's samples, by their weights.
struct MetricSums {
  double loss = 0, loss_weight = 0, top1 = 0, topk = 0, weight = 0;
  double mean_loss() const { return loss_weight > 0 ? loss / loss_weight : 0; }
  double acc1() const { return weight > 0 ? top1 / weight : 0; }
  double acck() const { return weight > 0 ? topk / weight : 0; }
  void add(const MetricSums& other);
};

}  // namespace fleet
