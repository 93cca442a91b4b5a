// A trained network of images as a folder of timm's, or as a file of torchvision's.
#pragma once

#include <string>

#include "base/json.h"
#include "graph/program.h"
#include "models/weight_layout.h"
#include "train/job.h"
#include "train/safetensors.h"
#include "train/trained_weights.h"

namespace fleet {

// Writes config.json and model.safetensors, which timm.create_model("local-dir:FOLDER",
// pretrained=True) loads. Files are written aside and renamed. trained_weights() selects the
// weights. Returns a one-line summary. kUnsupported if timm does not have the network; kUsage if
// the weights do not fit, or if the folder has other files but no config.json; kIo.
std::string export_timm(const Job& job, const std::string& folder);

// Writes a state dict, which load_state_dict() of torchvision's network takes: as torch.save()
// does, or, if the name ends so, as safetensors. kUnsupported if torchvision does not have the
// network.
std::string export_torchvision(const Job& job, const std::string& path);

// The parts of these that need no weights.
// The config.json of a network. image: channels, height, width.
Json timm_config(const Job& job, const Program& program, const WeightLayout& layout,
                 const Shape& image, const std::vector<std::string>& classes);
// Our tensors under timm's names and in its shapes.
TensorFile timm_file(const WeightLayout& layout, const TensorShapes& ours, const TensorFile& file);

}  // namespace fleet
