#include "cost/rates.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace fleet {

double LinkRates::seconds(double bytes) const { return between(bytes, &TransferSample::seconds); }
double LinkRates::busy(double bytes) const { return between(bytes, &TransferSample::busy); }

double LinkRates::between(double bytes, double TransferSample::*value) const {
  if (all_reduce.empty()) return 0;
  const auto above = std::find_if(all_reduce.begin(), all_reduce.end(),
                                  [&](const TransferSample& one) { return one.bytes >= bytes; });
  if (above == all_reduce.begin()) return (*above).*value;
  if (above == all_reduce.end()) {
    const TransferSample& last = all_reduce.back();
    return last.*value * bytes / last.bytes;
  }
  const TransferSample &low = *(above - 1), &high = *above;
  const double part = (bytes - low.bytes) / (high.bytes - low.bytes);
  return low.*value + part * (high.*value - low.*value);
}

double MachineRates::bound(const OpCost& cost) const {
  const bool depthwise = cost.key.find(std::string(" ") + kDepthwise) != std::string::npos;
  const auto special = depthwise ? peak.find(kDepthwise) : peak.end();
  const auto own = special != peak.end() ? special : peak.find(name_of(cost.dtype));
  const auto any = peak.find(name_of(DType::kFloat32));
  const double rate = own != peak.end() ? own->second : any != peak.end() ? any->second : 0;
  double seconds = bytes_per_second > 0 ? cost.bytes / bytes_per_second : 0;
  if (rate > 0) seconds = std::max(seconds, cost.operations / rate);
  return seconds + op_seconds;
}

double MachineRates::seconds(const OpCost& cost) const {
  // Weighted by distance in powers of two: a sample of half the size counts as much as one of
  // twice.
  constexpr size_t kNearest = 4;
  struct Neighbour {
    double distance, ratio;
  };
  std::vector<Neighbour> near;
  const auto log = [](double value) { return std::log2(std::max(value, 1.0)); };
  const auto like_this = [&](const OpSample& sample) {
    return sample.key == cost.key && sample.layout == cost.layout;
  };
  const bool same_layout = std::any_of(samples.begin(), samples.end(), like_this);
  for (const OpSample& sample : samples) {
    if (same_layout ? !like_this(sample) : sample.key != cost.key) continue;
    const OpCost like{.key = {},
                      .layout = {},
                      .dtype = cost.dtype,
                      .operations = sample.operations,
                      .bytes = sample.bytes};
    const double distance = std::abs(log(sample.operations) - log(cost.operations)) +
                            std::abs(log(sample.bytes) - log(cost.bytes));
    near.push_back({distance, std::log(std::max(sample.seconds, 1e-9) / bound(like))});
  }
  if (near.empty()) return bound(cost);
  const size_t count = std::min(kNearest, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end(),
                    [](const Neighbour& a, const Neighbour& b) { return a.distance < b.distance; });
  double weights = 0, sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const double weight = 1 / (0.05 + near[i].distance * near[i].distance);
    weights += weight;
    sum += weight * near[i].ratio;
  }
  return bound(cost) * std::exp(sum / weights);
}

const LinkRates* MachineRates::find_link(const std::string& transport, int ranks, int nodes) const {
  for (const LinkRates& link : links) {
    if (link.transport == transport && link.ranks == ranks && link.nodes == nodes) {
      return &link;
    }
  }
  return nullptr;
}

}  // namespace fleet
