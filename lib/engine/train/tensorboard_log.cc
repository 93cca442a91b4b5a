#include "train/tensorboard_log.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "data/encode_image.h"
#include "tensor/float16.h"
#include "train/tensorboard_file.h"

namespace fleet {
namespace {

constexpr int64_t kImages = 8;

double of_channel(const std::vector<double>& values, int64_t channel) {
  return values.size() == 1 ? values[0] : values.at(static_cast<size_t>(channel));
}

template <typename T>
double norm_of(Executor& executor, VarId var) {
  double squares = 0;
  for (const T value : executor.values<T>(var)) {
    const double wide = static_cast<float>(value);
    squares += wide * wide;
  }
  return std::sqrt(squares);
}

double norm(Executor& executor, VarId var) {
  switch (executor.program().var(var).dtype) {
    case DType::kBFloat16:
      return norm_of<BFloat16>(executor, var);
    case DType::kFloat16:
      return norm_of<Float16>(executor, var);
    default:
      return norm_of<float>(executor, var);
  }
}

}  // namespace

std::vector<uint8_t> shown_pixels(const data::Batch& batch, int64_t sample, const Settings& data) {
  const int64_t channels = batch.image.channels, area = batch.image.height * batch.image.width;
  const int64_t shown = channels == 1 ? 1 : 3;
  std::vector<uint8_t> pixels(static_cast<size_t>(area * shown));
  if (!batch.images.empty()) {
    const std::vector<double> mean = data.numbers("mean"), std = data.numbers("std");
    const float* from = batch.images.data() + sample * channels * area;
    for (int64_t c = 0; c < std::min(channels, shown); ++c) {
      const double scale = of_channel(std, c), shift = of_channel(mean, c);
      for (int64_t i = 0; i < area; ++i) {
        const double value = (from[c * area + i] * scale + shift) * 255;
        pixels[static_cast<size_t>(i * shown + c)] =
            static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0));
      }
    }
    return pixels;
  }
  const int64_t bytes = data::bytes_a_pixel(batch.image), width = batch.image.width;
  const uint8_t* from = batch.pixels.data() + sample * area * bytes;
  const bool flips = batch.flips[static_cast<size_t>(sample)] != 0;
  for (int64_t i = 0; i < area; ++i) {
    const int64_t x = i % width, source = flips ? i - x + (width - 1 - x) : i;
    for (int64_t c = 0; c < shown; ++c) {
      pixels[static_cast<size_t>(i * shown + c)] = from[source * bytes + c];
    }
  }
  return pixels;
}

// The gradients that are summed on another rank than the first (Reduce mode, sharding): rank 0 has
// only its own part of them.
static std::set<VarId> summed_elsewhere(const Program& program) {
  std::set<VarId> gradients;
  for (const Op& op : program.ops()) {
    if (op.type() != "reduce" || op.attributes.integer("root") == 0) continue;
    gradients.insert(op.outputs.begin(), op.outputs.end());
  }
  return gradients;
}

std::vector<VarId> gradients_of(const Program& program) {
  const std::set<VarId> elsewhere = summed_elsewhere(program);
  std::vector<VarId> gradients;
  for (const VarId parameter : program.parameters()) {
    const VarId gradient = program.gradient(parameter);
    if (gradient == kNoVar || program.var(gradient).remote || program.var(parameter).remote)
      continue;
    if (elsewhere.contains(gradient)) continue;
    const DType type = program.var(gradient).dtype;
    if (is_floating(type) && type != DType::kFloat64) gradients.push_back(gradient);
  }
  return gradients;
}

TensorboardLog::TensorboardLog(const std::string& folder, int64_t step)
    : file_(std::make_shared<TensorboardFile>(folder, step)) {}

TensorboardLog::Task TensorboardLog::values(const EventLine& line, double time) const {
  return [file = file_, line, time] { file->write(tensorboard_scalars(line, time)); };
}

TensorboardLog::Task TensorboardLog::images(const data::Batch& batch, const Settings& data,
                                            int64_t step) const {
  std::vector<TensorboardImage> images;
  std::vector<std::vector<uint8_t>> pixels;
  for (int64_t k = 0; k < std::min(batch.real, kImages); ++k) {
    images.push_back({.tag = "images/" + std::to_string(k),
                      .height = static_cast<int>(batch.image.height),
                      .width = static_cast<int>(batch.image.width),
                      .channels = batch.image.channels == 1 ? 1 : 3});
    pixels.push_back(shown_pixels(batch, k, data));
  }
  return [file = file_, images = std::move(images), pixels = std::move(pixels), step,
          time = unix_seconds()]() mutable {
    for (size_t k = 0; k < images.size(); ++k) {
      images[k].png =
          data::encode_png(pixels[k], images[k].height, images[k].width, images[k].channels);
    }
    std::erase_if(images, [](const TensorboardImage& image) { return image.png.empty(); });
    file->write(tensorboard_images(images, step, time));
  };
}

TensorboardLog::Task TensorboardLog::gradients(Executor& executor, double scale,
                                               int64_t step) const {
  std::vector<double> norms;
  for (const VarId gradient : gradients_of(executor.program())) {
    const Program& selected = executor.plan(executor.selected()).program;
    if (selected.find(executor.program().var(gradient).name) == kNoVar) continue;  // frozen
    norms.push_back(norm(executor, gradient) / scale);
  }
  // gradient_merge has just used the sums and begins again.
  if (std::ranges::all_of(norms, [](double norm) { return norm == 0; })) norms.clear();
  return [file = file_, norms = std::move(norms), step, time = unix_seconds()] {
    file->write(tensorboard_histogram("gradients/norm", norms, step, time));
  };
}

}  // namespace fleet
