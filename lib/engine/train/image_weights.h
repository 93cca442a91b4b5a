// Fits a file of weights of torchvision, timm or others to a network of images: names, shapes, the
// size and channels of images, and the last layer.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/program.h"
#include "models/weight_layout.h"
#include "train/pretrained_record.h"
#include "train/safetensors.h"

namespace fleet {

struct ImageWeightsOptions {
  std::optional<PretrainedRecord> record = std::nullopt;  // the file's
  // Shell patterns of names in the model or in the file: see WeightsOptions.
  std::vector<std::string> skip = {};
  // The last layer is initialised if the record names it and it has other classes.
  bool new_head = false;
  // Whether patches, positions, windows and channels are fitted to the network's sizes.
  bool resizes = true;
};

struct ImageWeightsFit {
  std::vector<std::string> lines;  // about what changed
  std::set<std::string> skipped;   // parameters that keep their initial values
  std::set<std::string> in_file;   // names that the file had
};

// Gives the file's tensors the names and shapes of the network's parameters and statistics, as far
// as a rule says how; other tensors stay. kUsage naming `path` if a tensor of several is missing.
ImageWeightsFit fit_image_weights(const WeightLayout& layout, const Program& program,
                                  const std::string& path, const ImageWeightsOptions& options,
                                  TensorFile* file);

// The parameters and running statistics of the program, which a file of weights has.
TensorShapes tensors_of_network(const Program& program);
// The layer that was made last, without ".weight": the classifier.
std::string last_layer(const Program& program);

}  // namespace fleet
