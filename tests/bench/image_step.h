// A whole training step of a network on made-up images of its own size, 224 x 224 at most (as
// PyTorch's in peers/vision_cpu.py), as the trainer drives it: feeds, then every operation of the
// training schedule (momentum with weight decay; one rank).
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "models/model.h"
#include "train/session.h"

namespace fleet::bench {

class ImageStep {
 public:
  // strategy: in JSON.
  ImageStep(Device& device, const std::string& model, int64_t batch, const std::string& strategy)
      : image_(image_of(model)),
        session_(job_of(model, batch, strategy),
                 {.columns = image_columns(image_), .backend = device.backend()}, device, nullptr),
        images_(takes_pixels() ? 0 : batch * image_.elements()),
        // A GPU takes four values a pixel.
        pixels_(takes_pixels() ? batch * 4 * image_[1] * image_[2] : 0),
        flip_(batch),
        labels_(batch),
        weights_(batch, 1.0f),
        keys_(batch) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : images_) value = normal(random);
    for (uint8_t& value : pixels_) value = static_cast<uint8_t>(random());
    const VarId logits = session_.training().output("logits");
    const int64_t classes = executor().program().var(logits).shape[1];
    for (int64_t i = 0; i < batch; ++i) {
      keys_[i] = i * 61;
      labels_[i] = keys_[i] % classes;
    }
  }

  void run() {
    const Training& training = session_.training();
    Executor& executor = session_.executor();
    if (!takes_pixels()) executor.feed(training.feed("image"), images_);
    if (takes_pixels()) executor.feed(training.feed("pixels"), pixels_);
    if (training.feed("flip") != kNoVar) executor.feed(training.feed("flip"), flip_);
    executor.feed(training.feed("label"), labels_);
    executor.feed(training.feed("weight"), weights_);
    executor.feed(training.feed("sample_key"), keys_);
    executor.feed(training.feed("learning_rate"), std::span(&rate_, 1));
    executor.run({.step = step_++});
    executor.synchronize();
  }

  float loss() { return executor().values<float>(session_.training().loss)[0]; }
  Executor& executor() { return session_.executor(); }

 private:
  // A GPU normalizes the images itself.
  bool takes_pixels() { return session_.training().feed("image") == kNoVar; }
  static Shape image_of(const std::string& model) {
    const Shape& own = model_registry().get(model).image;
    constexpr int64_t kMost = 224;
    return {own[0], std::min(own[1], kMost), std::min(own[2], kMost)};
  }
  static Job job_of(const std::string& model, int64_t batch, const std::string& strategy) {
    const std::string text = R"({
      "model": {"name": ")" + model +
                             R"("},
      "data": {"source": "synthetic", "batch_size": )" +
                             std::to_string(batch) + R"(},
      "optimizer": {"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4},
      "learning_rate": {"name": "constant", "base": 0.1},
      "strategy": )" + strategy +
                             "}";
    ConfigTree tree = ConfigTree::from_json(text, model);
    return make_job(tree);
  }

  Shape image_;
  Session session_;
  std::vector<float> images_;
  std::vector<uint8_t> pixels_, flip_;
  std::vector<int64_t> labels_;
  std::vector<float> weights_;
  std::vector<int64_t> keys_;
  float rate_ = 0.01f;
  int64_t step_ = 0;
};

}  // namespace fleet::bench
