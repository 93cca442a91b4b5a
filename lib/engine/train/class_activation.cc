#include "train/class_activation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/evaluated_network.h"
#include "passes/backward.h"
#include "train/predicted_values.h"

namespace fleet {
namespace {

constexpr char kLogits[] = "logits";

[[noreturn]] void refuse(const Job& job, const std::string& what) {
  throw Error(ErrorCode::kUsage, "the model " + job.model_name + " " + what, "predict.cam",
              "use another model or larger images, or remove it");
}

// The last map of a network: an image [N, C, H, W], or tokens [N, L, C].
class LastMap {
 public:
  LastMap(const Job& job, const Program& program, VarId image)
      : job_(job), program_(program), image_(image) {
    for (const Op& op : program.ops()) {
      for (const VarId output : op.outputs) {
        if (output != kNoVar) producers_[output] = &op;
      }
    }
  }

  // Follows the first inputs back from the logits.
  VarId find(VarId logits) const {
    for (VarId at = logits; at != image_;) {
      const Shape& shape = program_.var(at).shape;
      const Op* op = producer(at);
      if (!op) break;
      const bool pools = op->type() == "pool2d";
      if (pools && op->attributes.boolean("global")) return checked(op->inputs[0]);
      if (shape.rank() == 4 && (pools || places(at) > 1)) return checked(at);
      if (shape.rank() == 3) return last_norm();
      at = op->inputs.at(0);
    }
    refuse(job_, "has no map of features: predict.cam needs one");
  }

  // Rows and columns of the patches: of the convolution that cuts them.
  std::pair<int64_t, int64_t> patches() const {
    for (const Op& op : program_.ops()) {
      if (op.type() != "conv2d") continue;
      const Shape& shape = program_.var(op.outputs[0]).shape;
      return {shape[2], shape[3]};
    }
    refuse(job_, "has no patches");
  }

 private:
  const Op* producer(VarId id) const {
    const auto found = producers_.find(id);
    return found == producers_.end() || found->second->inputs.empty() ? nullptr : found->second;
  }
  int64_t places(VarId id) const {
    const Shape& shape = program_.var(id).shape;
    return shape[2] * shape[3];
  }
  VarId checked(VarId map) const {
    if (places(map) < 2) {
      refuse(job_, "ends with a map of one place for images of this size");
    }
    return map;
  }
  VarId last_norm() const {
    VarId last = kNoVar;
    for (const Op& op : program_.ops()) {
      if (op.type() != "layer_norm" || op.inputs.size() < 2) continue;
      const std::string& weight = program_.var(op.inputs[1]).name;
      if (weight.ends_with(".norm1.weight") || weight.ends_with(".ln_1.weight")) {
        last = op.outputs[0];
      }
    }
    if (last == kNoVar) refuse(job_, "has tokens without a norm in front of the last attention");
    return last;
  }

  const Job& job_;
  const Program& program_;
  const VarId image_;
  std::map<VarId, const Op*> producers_;
};

// The gradient of a norm reads the statistics that an evaluation has no use for.
void keep_statistics(Program& program) {
  for (Op& op : program.ops()) {
    if (op.type() != "layer_norm" && op.type() != "add_layer_norm") continue;
    const size_t first = op.type() == "layer_norm" ? 1 : 2;
    std::vector<VarId> outputs = op.outputs;
    outputs.resize(first + 2);
    outputs[first] = program.temporary("saved_mean");
    outputs[first + 1] = program.temporary("saved_variance");
    op = program.make_op(op.section, op.type(), op.inputs, outputs, op.attributes);
  }
}

// PyTorch's bilinear interpolation without align_corners: pixel i lies at (i + 0.5) / scale - 0.5.
struct Tap {
  int64_t low = 0, high = 0;
  float share = 0;  // of `high`
};

std::vector<Tap> taps(int64_t from, int64_t to) {
  std::vector<Tap> all;
  for (int64_t i = 0; i < to; ++i) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double at = std::max((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0);
    const auto low = std::min(static_cast<int64_t>(at), from - 1);
    all.push_back(
        {low, std::min(low + 1, from - 1), static_cast<float>(at - static_cast<double>(low))});
  }
  return all;
}

}  // namespace

ClassActivation::ClassActivation(const Job& job, Device& device, int64_t batch, const Shape& image)
    : image_shape_(image) {
  EvaluatedNetwork network = evaluated_network(job.model_name, job.model,
                                               {batch, image[0], image[1], image[2]}, {kLogits});
  Program& program = network.program;
  image_ = network.image;
  const VarId logits = find_var(network.outputs, kLogits);
  const LastMap last(job, program, image_);
  map_ = last.find(logits);
  const Shape map = program.var(map_).shape;
  if (map.rank() == 3) {
    std::tie(height_, width_) = last.patches();
    channels_ = map[2];
    prefix_ = map[1] - height_ * width_;
  } else {
    channels_ = map[1];
    height_ = map[2];
    width_ = map[3];
  }
  keep_statistics(program);
  // Nothing else needs a gradient.
  for (const VarId parameter : program.parameters()) program.var(parameter).trainable = false;
  classes_ = program.var(logits).shape[1];
  seed_ = program.feed("class_of_map", DType::kFloat32, program.var(logits).shape);
  append_backward_from(program, network.section, {{logits, seed_}}, {map_});
  gradient_ = program.gradient(map_);
  executor_ = plan_prediction(job, device, std::move(program), {map_, gradient_});
}

void ClassActivation::run(std::span<const std::byte> images, std::span<const int64_t> classes) {
  std::vector<float> seed(executor_->program().var(seed_).shape.elements());
  for (size_t i = 0; i < classes.size(); ++i) {
    FLEET_CHECK(classes[i] >= 0 && classes[i] < classes_, "a class that the model lacks");
    seed[i * static_cast<size_t>(classes_) + static_cast<size_t>(classes[i])] = 1;
  }
  executor_->feed(image_, images);
  executor_->feed(seed_, seed);
  executor_->run({.evaluate = true, .fetch = true});
  values_ = executor_->values<float>(map_);
  gradients_ = executor_->values<float>(gradient_);
}

std::vector<float> ClassActivation::small_map(int64_t i) const {
  const int64_t places = height_ * width_;
  const bool tokens = prefix_ >= 0;
  const int64_t size = channels_ * (places + (tokens ? prefix_ : 0));
  const float* values = values_.data() + i * size + (tokens ? prefix_ * channels_ : 0);
  const float* gradients = gradients_.data() + i * size + (tokens ? prefix_ * channels_ : 0);
  const int64_t place_step = tokens ? channels_ : 1, channel_step = tokens ? 1 : places;
  std::vector<double> sums(static_cast<size_t>(places));
  for (int64_t c = 0; c < channels_; ++c) {
    double weight = 0;
    for (int64_t p = 0; p < places; ++p) weight += gradients[c * channel_step + p * place_step];
    weight /= static_cast<double>(places);
    for (int64_t p = 0; p < places; ++p) {
      sums[p] += weight * values[c * channel_step + p * place_step];
    }
  }
  std::vector<float> map;
  for (const double sum : sums) map.push_back(static_cast<float>(std::max(sum, 0.0)));
  return map;
}

std::vector<float> ClassActivation::map(int64_t i) const {
  const std::vector<float> small = small_map(i);
  const std::vector<Tap> rows = taps(height_, image_shape_[1]);
  const std::vector<Tap> columns = taps(width_, image_shape_[2]);
  std::vector<float> map;
  float largest = 0;
  for (const Tap& y : rows) {
    const float *above = small.data() + y.low * width_, *below = small.data() + y.high * width_;
    for (const Tap& x : columns) {
      const float top = above[x.low] + x.share * (above[x.high] - above[x.low]);
      const float bottom = below[x.low] + x.share * (below[x.high] - below[x.low]);
      largest = std::max(largest, map.emplace_back(top + y.share * (bottom - top)));
    }
  }
  if (largest > 0) {
    for (float& value : map) value /= largest;
  }
  return map;
}

}  // namespace fleet
