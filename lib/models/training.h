// The part of a training Program that a model decides: forward, loss, metrics and evaluation. What
// follows (backward, strategy, optimizer) is appended behind it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "graph/block.h"
#include "graph/program.h"

namespace fleet {

// How bytes become what the network reads: see normalize_image. One value a channel each.
struct Normalization {
  std::vector<double> mean, deviation;
};

struct TrainingOptions {
  std::string model;                        // a name in model_registry()
  Settings model_settings;                  // checked against the model's schema
  int64_t batch = 1;                        // samples a step on this rank
  Shape image = {3, 224, 224};              // channels, height, width
  double label_smoothing = 0;               // of the training loss and the evaluation loss
  int64_t ignore_index = -100;              // samples with this label have loss 0
  bool class_weights = false;               // the loss weighs classes: they are fed
  std::optional<Normalization> bytes = {};  // images are fed as bytes; else as normalised floats
};

// Sums over the samples of a batch by their weights; ranks and batches add up. Padded samples have
// weight 0. Means are quotients: loss = losses[0] / losses[1], acc1 = counts[0] / counts[2].
struct Metrics {
  VarId losses = kNoVar;  // float32 [2]: sum of weight * loss, sum of weight
  // float32 [2], with class weights: sum of weight * the label's, which the loss is divided by
  // then.
  VarId loss_weights = kNoVar;
  VarId counts =
      kNoVar;  // float32 [3]: hits among the first, hits among the first k, sum of weight
};

struct Training {
  SectionId forward = -1;   // every training step
  SectionId fetch = -1;     // training steps that are fetched: metrics
  SectionId evaluate = -1;  // evaluation: the network with running statistics, and metrics
  // Feeds. N is the batch.
  VarId image = kNoVar;          // float32 [N, C, H, W]; kNoVar where bytes are fed:
  VarId pixels = kNoVar;         // uint8 [N, H, W, 1 or 4]
  VarId flip = kNoVar;           // uint8 [N]
  VarId label = kNoVar;          // int64 [N]
  VarId weight = kNoVar;         // float32 [N]: 1, or 0 for a padded sample; metrics only
  VarId sample_key = kNoVar;     // int64 [N]: what dropout of a sample is keyed by
  VarId learning_rate = kNoVar;  // float32 [1]: for the optimizer
  VarId class_weights = kNoVar;  // float32 [num_classes], where options say so
  // loss: float32 [1], the mean over all N samples: padded ones count like the others, so that
  // every rank divides by the same number. With class weights it is the mean of what they weigh.
  VarId loss = kNoVar;
  std::vector<Block> blocks;  // of the forward section
  VarId logits = kNoVar;      // of the forward section, float32 [N, num_classes]
  VarId evaluate_logits = kNoVar;
  Metrics training_metrics, evaluation_metrics;
  int64_t top_k = 5;  // the k of counts[1]: 5, or the number of classes where that is smaller
};

// Appends sections forward, fetch and evaluate. kUsage for an unknown model or an image it cannot
// take.
Training build_training(Program& program, const TrainingOptions& options);

// The model's own image size with what the caller knows over it: 0 leaves a dimension as it is.
Shape image_shape(const std::string& model, int64_t channels, int64_t height, int64_t width);

}  // namespace fleet
