// Fits the tensors of an image network's file, under our names, to the network's sizes: other
// patches, images, windows and channels.
#pragma once

#include <string>
#include <vector>

#include "graph/program.h"
#include "models/weight_layout.h"
#include "train/pretrained_record.h"
#include "train/safetensors.h"

namespace fleet {

struct ImageShapeOptions {
  std::string path;  // the file, for errors
  // The library whose rules for other sizes apply; not kUnknown. kOwn: a checkpoint of fleetrun
  // with torchvision's names.
  WeightsLibrary origin = WeightsLibrary::kTimm;
  // The images of the weights' training: channels, height, width; empty: unknown.
  std::vector<int64_t> image = {};
  bool registers = false;  // the network has DINOv2's
};

// ours: tensors_of_network(program). Returns lines about what changed. Tensors without a rule stay.
// kUsage naming the file if its library has no rule for other windows.
std::vector<std::string> fit_image_shapes(const Program& program, const TensorShapes& ours,
                                          const ImageShapeOptions& options, TensorFile* file);

}  // namespace fleet
