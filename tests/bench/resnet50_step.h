// A whole ResNet50 training step on made-up images of 224², as the trainer drives it: feeds, then
// every operation of the training schedule (momentum with weight decay; one rank).
#pragma once

#include <random>
#include <string>
#include <vector>

#include "train/session.h"

namespace fleet::bench {

class ResNet50Step {
 public:
  // amp: mixed precision in the low type of the device's backend.
  ResNet50Step(Device& device, int64_t batch, bool amp)
      : ResNet50Step(device, batch, amp ? R"({"amp": true})" : "{}") {}
  // strategy: in JSON.
  ResNet50Step(Device& device, int64_t batch, const char* strategy)
      : session_(job_of(batch, strategy),
                 {.columns = image_columns({3, 224, 224}), .backend = device.backend()}, device,
                 nullptr),
        images_(takes_pixels() ? 0 : batch * 3 * 224 * 224),
        pixels_(takes_pixels() ? batch * 4 * 224 * 224 : 0),
        flip_(batch),
        labels_(batch),
        weights_(batch, 1.0f),
        keys_(batch) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : images_) value = normal(random);
    for (uint8_t& value : pixels_) value = static_cast<uint8_t>(random());
    for (int64_t i = 0; i < batch; ++i) {
      keys_[i] = i * 61;
      labels_[i] = keys_[i] % 1000;
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
  static Job job_of(int64_t batch, const std::string& strategy) {
    const std::string text = R"({
      "model": {"name": "resnet50"},
      "data": {"source": "synthetic", "batch_size": )" +
                             std::to_string(batch) + R"(},
      "optimizer": {"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4},
      "learning_rate": {"name": "constant", "base": 0.1},
      "strategy": )" + strategy +
                             "}";
    ConfigTree tree = ConfigTree::from_json(text, "resnet50");
    return make_job(tree);
  }

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
