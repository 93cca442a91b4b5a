// The part of a training Program that depends on the model: forward, loss, metrics and evaluation.
// Backward, strategy and optimizer are appended after it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "graph/program.h"

namespace fleet {

// Converts bytes to the network's input: see normalize_image. One value per channel each.
struct Normalization {
  std::vector<double> mean, deviation;
};

struct TrainingOptions {
  std::string model;                        // a name in model_registry()
  Settings model_settings;                  // checked against the model's schema
  int64_t batch = 1;                        // samples per step on this rank
  Shape image = {3, 224, 224};              // channels, height, width
  double label_smoothing = 0;               // for the training loss and the evaluation loss
  int64_t ignore_index = -100;              // samples with this label have loss 0
  bool class_weights = false;               // the loss weighs classes; the weights are fed
  bool mixed_labels = false;                // a training sample has two labels
  std::optional<Normalization> bytes = {};  // images are fed as bytes; else as normalised floats
};

// Sums over the samples of a batch by their weights; they can be added over ranks and batches.
// Padded samples have weight 0. Means are quotients: loss = losses[0] / losses[1], acc1 = counts[0]
// / counts[2].
struct Metrics {
  VarId losses = kNoVar;  // float32 [2]: sum of weight * loss, sum of weight
  // float32 [2], with class weights: sum of weight * the label's weight, which is then the divisor
  // of the loss.
  VarId loss_weights = kNoVar;
  VarId counts =
      kNoVar;  // float32 [3]: hits among the first, hits among the first k, sum of weight
};

struct Training {
  SectionId forward = -1;   // runs in every training step
  SectionId fetch = -1;     // runs in training steps whose metrics are fetched
  SectionId evaluate = -1;  // the network with running statistics, and metrics
  // Feeds. N is the batch size.
  VarId image = kNoVar;       // float32 [N, C, H, W]; kNoVar if bytes are fed:
  VarId pixels = kNoVar;      // uint8 [N, H, W, 1 or 4]
  VarId flip = kNoVar;        // uint8 [N]
  VarId label = kNoVar;       // int64 [N]
  VarId weight = kNoVar;      // float32 [N]: 1, or 0 for a padded sample; metrics only
  VarId sample_key = kNoVar;  // int64 [N]: key for the dropout of a sample
  // If options request them, for training: the loss of a sample is own_share * loss(label) + (1 -
  // own_share) * loss(other_label). The metrics count hits of `label`.
  VarId other_label = kNoVar;    // int64 [N]
  VarId own_share = kNoVar;      // float32 [N]
  VarId learning_rate = kNoVar;  // float32 [1]: for the optimizer
  VarId class_weights = kNoVar;  // float32 [num_classes], if options request them
  // loss: float32 [1], the mean over all N samples. Padded samples count too, so that every rank
  // divides by the same number. With class weights it is the mean of the weighted losses.
  VarId loss = kNoVar;
  std::vector<Block> blocks;   // the forward section's
  std::vector<Block> devices;  // Network::devices()
  VarId logits = kNoVar;       // the forward section's, float32 [N, num_classes]
  VarId evaluate_logits = kNoVar;
  Metrics training_metrics, evaluation_metrics;
  // The k of counts[1]: 5, or 1 for a model of 5 classes or fewer, where the label always is among
  // the first 5.
  int64_t top_k = 5;
  bool has_top_k() const { return top_k > 1; }
};

// Appends sections forward, fetch and evaluate. kUsage for an unknown model or an unsuitable image.
Training build_training(Program& program, const TrainingOptions& options);

// The model's default image size, overridden by the given dimensions: 0 keeps the default.
Shape image_shape(const std::string& model, int64_t channels, int64_t height, int64_t width);

}  // namespace fleet
