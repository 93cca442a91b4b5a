// ResNet50's convolutions of 1 x 1, each with the batch normalizations around it, two ways: in one
// kernel of our own (backend/cuda/pointwise.cu), or as a step computes them, a convolution of cuDNN
// and passes for the normalizations. For GPUs with such a kernel.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "tensor/float16.h"

namespace fleet::bench {

struct PointwiseLayer {
  const char* name;
  int calls;                                // in a step
  int64_t channels, filters, size, stride;  // of a square image
  bool normalized;  // a batch normalization with relu before it that no sum follows
  int64_t out_size() const { return (size - 1) / stride + 1; }
};

inline const std::vector<PointwiseLayer>& pointwise_layers() {
  static const std::vector<PointwiseLayer> all = {
      {"layer1.0.conv1", 1, 64, 64, 56, 1, false},
      {"layer1.conv1", 2, 256, 64, 56, 1, false},
      {"layer1.conv3", 3, 64, 256, 56, 1, true},
      {"layer1.downsample", 1, 64, 256, 56, 1, false},
      {"layer2.0.conv1", 1, 256, 128, 56, 1, false},
      {"layer2.conv1", 3, 512, 128, 28, 1, false},
      {"layer2.conv3", 4, 128, 512, 28, 1, true},
      {"layer2.downsample", 1, 256, 512, 56, 2, false},
      {"layer3.0.conv1", 1, 512, 256, 28, 1, false},
      {"layer3.conv1", 5, 1024, 256, 14, 1, false},
      {"layer3.conv3", 6, 256, 1024, 14, 1, true},
      {"layer3.downsample", 1, 512, 1024, 28, 2, false},
      {"layer4.0.conv1", 1, 1024, 512, 14, 1, false},
      {"layer4.conv1", 2, 2048, 512, 7, 1, false},
      {"layer4.conv3", 3, 512, 2048, 7, 1, true},
      {"layer4.downsample", 1, 1024, 2048, 14, 2, false},
  };
  return all;
}

// Read the pixels that are needed once, write y once, and the weights.
inline double pointwise_bytes(const PointwiseLayer& layer, int64_t batch) {
  const auto pixels = static_cast<double>(batch * layer.out_size() * layer.out_size());
  return 2 * (pixels * static_cast<double>(layer.channels + layer.filters) +
              static_cast<double>(layer.channels * layer.filters));
}
inline double pointwise_operations(const PointwiseLayer& layer, int64_t batch) {
  const auto pixels = static_cast<double>(batch * layer.out_size() * layer.out_size());
  return 2 * pixels * static_cast<double>(layer.channels * layer.filters);
}

// A layer in one of the two ways, on images drawn by its seed.
class PointwiseRun {
 public:
  PointwiseRun(Device& device, const PointwiseLayer& layer, int64_t batch, DType dtype, bool own) {
    Program program;
    const SectionId section = program.add_section("forward", {});
    const auto state = [&](const char* name, const Shape& shape, double low, double high,
                           DType type = DType::kFloat32) {
      return program.state(name, shape, {Init::kUniform, low, high}, type);
    };
    const int64_t in = layer.channels, out = layer.filters;
    VarId x = state("x", {batch, in, layer.size, layer.size}, -1, 1, dtype);
    const double bound = 2 / std::sqrt(static_cast<double>(in));
    const VarId weight = state("weight", {out, in, 1, 1}, -bound, bound, dtype);
    const VarId pivot = state("pivot", {out}, -0.1, 0.1);
    const VarId scale = state("scale", {in}, 0.5, 1.5), bias = state("bias", {in}, -0.5, 0.5);
    const Attributes strides = {{"strides", std::vector<int64_t>{layer.stride, layer.stride}}};
    if (own) {
      kept_ = program.emit(
          section, "conv2d_sums",
          {x, weight, layer.normalized ? scale : kNoVar, layer.normalized ? bias : kNoVar, pivot},
          strides);
    } else {
      if (layer.normalized) {
        const VarId mean = state("mean", {in}, 0, 0), variance = state("variance", {in}, 1, 1);
        x = program.temporary("normalized");
        program.ops().push_back(program.make_op(
            section, "batch_norm_apply", {program.find("x"), scale, bias, mean, variance, kNoVar},
            {x, kNoVar}, {{"epsilon", 0.0}, {"activation", std::string("relu")}}));
      }
      kept_ = program.emit(section, "conv2d", {x, weight, kNoVar}, strides);
      for (const VarId id : program.emit(section, "batch_norm_sums", {kept_[0], pivot})) {
        kept_.push_back(id);
      }
    }
    executor_.emplace(
        plan_program(program, kept_,
                     {.backend = device.backend(), .initial_layouts = {}, .device = &device}),
        device, nullptr);
    executor_->initialize(1);
  }

  // y, sum and squares.
  std::vector<std::vector<float>> results() {
    executor_->run({});
    std::vector<std::vector<float>> all;
    for (const VarId id : kept_) all.push_back(floats(id));
    return all;
  }

  // The median of some rounds; a step is recorded before the first.
  double seconds() {
    for (int i = 0; i < 3; ++i) executor_->run({});
    std::vector<double> rounds;
    for (int round = 0; round < 7; ++round) {
      executor_->synchronize();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kRuns; ++i) executor_->run({});
      executor_->synchronize();
      rounds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kRuns);
    }
    std::nth_element(rounds.begin(), rounds.begin() + 3, rounds.end());
    return rounds[3];
  }

 private:
  static constexpr int kRuns = 50;

  std::vector<float> floats(VarId id) {
    const DType dtype = executor_->program().var(id).dtype;
    const auto widened = [](const auto& values) {
      return std::vector<float>(values.begin(), values.end());
    };
    if (dtype == DType::kFloat16) return widened(executor_->values<Float16>(id));
    if (dtype == DType::kBFloat16) return widened(executor_->values<BFloat16>(id));
    return executor_->values<float>(id);
  }

  std::vector<VarId> kept_;
  std::optional<Executor> executor_;
};

// The largest difference of the two ways, relative to the largest value, over y and both sums.
inline double pointwise_difference(Device& device, const PointwiseLayer& layer, int64_t batch,
                                   DType dtype) {
  const auto ours = PointwiseRun(device, layer, batch, dtype, true).results();
  const auto theirs = PointwiseRun(device, layer, batch, dtype, false).results();
  double worst = 0;
  for (size_t k = 0; k < ours.size(); ++k) {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < ours[k].size(); ++i) {
      largest = std::max<double>(largest, std::abs(theirs[k][i]));
      // NaN counts as the largest difference there is.
      const double by = std::abs(ours[k][i] - theirs[k][i]);
      difference = by <= 1e30 ? std::max(difference, by) : 1e30;
    }
    worst = std::max(worst, difference / std::max(largest, 1e-30));
  }
  return worst;
}

// Checks and times every layer; prints a line each. Returns whether all are right.
inline bool measure_pointwise(Device& device, DType dtype, int64_t batch, double bandwidth,
                              double rate) {
  constexpr int64_t kChecked = 3;  // images: an odd number of tiles
  bool right = true;
  double ours_all = 0, passes_all = 0, best_all = 0, bound_all = 0;
  for (const PointwiseLayer& layer : pointwise_layers()) {
    const double difference = pointwise_difference(device, layer, kChecked, dtype);
    // Rounding of y, and of the normalized image.
    const double allowed = dtype == DType::kFloat16 ? 4e-3 : 3e-2;
    if (!(difference <= allowed)) {
      std::printf("%s: WRONG: differs from cuDNN by %.2g of the largest value\n", layer.name,
                  difference);
      right = false;
      continue;
    }
    const double ours = PointwiseRun(device, layer, batch, dtype, true).seconds();
    const double passes = PointwiseRun(device, layer, batch, dtype, false).seconds();
    const double bound = std::max(pointwise_bytes(layer, batch) / bandwidth,
                                  pointwise_operations(layer, batch) / rate);
    std::printf(
        "%s: ratio %.2f (%lld to %lld channels, %lld x %lld%s: ours %.1f us, cuDNN and passes %.1f "
        "us, bound %.1f us, %d in a step)\n",
        layer.name, passes / ours, static_cast<long long>(layer.channels),
        static_cast<long long>(layer.filters), static_cast<long long>(layer.size),
        static_cast<long long>(layer.size), layer.normalized ? ", normalized" : "", 1e6 * ours,
        1e6 * passes, 1e6 * bound, layer.calls);
    ours_all += layer.calls * ours;
    passes_all += layer.calls * passes;
    best_all += layer.calls * std::min(ours, passes);
    bound_all += layer.calls * bound;
  }
  std::printf(
      "pointwise: ratio %.3f (ours %.2f ms, cuDNN and passes %.2f ms, the better for each layer "
      "%.2f ms, bound %.2f ms)\n",
      passes_all / std::max(ours_all, 1e-12), 1e3 * ours_all, 1e3 * passes_all, 1e3 * best_all,
      1e3 * bound_all);
  return right;
}

}  // namespace fleet::bench
