#include <algorithm>
#include <map>

#include "passes/gradients.h"

namespace fleet {
namespace {

using Buckets = std::vector<std::vector<int>>;

std::string layer_of(const std::string& parameter) {
  return parameter.substr(0, parameter.find_last_of('.'));
}

Buckets by_layer(std::span<const GradientSize> gradients) {
  Buckets layers;
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto [layer, is_new] = known.emplace(layer_of(gradients[i].parameter), layers.size());
    if (is_new) layers.emplace_back();
    layers[layer->second].push_back(static_cast<int>(i));
  }
  return layers;
}

Buckets merge(const Buckets& layers, std::span<const GradientSize> gradients,
              const BucketLimits& limits) {
  if (limits.megabytes <= 0) return layers;
  Buckets merged;
  size_t bytes = 0;
  bool open = false;
  for (const std::vector<int>& layer : layers) {
    if (!open) {
      merged.emplace_back();
      bytes = 0;
    }
    std::vector<int>& bucket = merged.back();
    for (int i : layer) bytes += gradients[i].bytes;
    bucket.insert(bucket.end(), layer.begin(), layer.end());
    const bool full = limits.count > 1 && static_cast<int64_t>(bucket.size()) > limits.count;
    open = !full && static_cast<double>(bytes) < limits.megabytes * 1024 * 1024;
  }
  return merged;
}

// Removes the layers that form the last bucket from the end of `layers`; returns {} if that would
// be all of them.
std::vector<int> take_last(Buckets& layers, std::span<const GradientSize> gradients,
                           double megabytes) {
  size_t first = layers.size(), bytes = 0;
  while (first > 0 && static_cast<double>(bytes) < megabytes * 1024 * 1024) {
    --first;
    for (int i : layers[first]) bytes += gradients[i].bytes;
  }
  std::vector<int> last;
  if (first == 0) return last;
  for (size_t layer = first; layer < layers.size(); ++layer) {
    last.insert(last.end(), layers[layer].begin(), layers[layer].end());
  }
  layers.resize(first);
  return last;
}

Buckets by_size(std::span<const GradientSize> gradients, const BucketLimits& limits) {
  Buckets layers = by_layer(gradients);
  const std::vector<int> last = take_last(layers, gradients, limits.last_megabytes);
  Buckets buckets = merge(layers, gradients, limits);
  if (!last.empty()) buckets.push_back(last);
  return buckets;
}

Buckets by_count(size_t gradients, int64_t count) {
  Buckets buckets;
  for (size_t i = 0; i < gradients; ++i) {
    if (i % static_cast<size_t>(count) == 0) buckets.emplace_back();
    buckets.back().push_back(static_cast<int>(i));
  }
  return buckets;
}

Buckets split_by_type(const Buckets& buckets, std::span<const GradientSize> gradients) {
  Buckets split;
  for (const std::vector<int>& bucket : buckets) {
    std::map<DType, size_t> parts;
    for (int i : bucket) {
      const auto [part, is_new] = parts.emplace(gradients[i].dtype, split.size());
      if (is_new) split.emplace_back();
      split[part->second].push_back(i);
    }
  }
  return split;
}

}  // namespace

std::vector<std::vector<int>> group_gradients(std::span<const GradientSize> gradients,
                                              const BucketLimits& limits) {
  Buckets buckets = limits.exact_count > 0 ? by_count(gradients.size(), limits.exact_count)
                                           : by_size(gradients, limits);
  buckets = split_by_type(buckets, gradients);
  // A layer's later gradients may come after another layer's. Sorted in order of computation, a
  // bucket is ready with its last gradient.
  for (std::vector<int>& bucket : buckets) std::sort(bucket.begin(), bucket.end());
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const auto& a, const auto& b) { return a.back() < b.back(); });
  return buckets;
}

}  // namespace fleet
