// The record of weights: their network, and how images were prepared. timm has it in the
// config.json of a folder or among the options of a training, torchvision in its code, which the
// hash in a file's name selects, the authors of DINOv2 in theirs, and fleetrun in the metadata of
// its checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "train/safetensors.h"

namespace fleet {

// kMeta: the authors of DINOv2; kMicrosoft: those of Swin.
enum class WeightsLibrary { kUnknown, kTimm, kTorchvision, kOwn, kMeta, kMicrosoft };

struct PretrainedRecord {
  WeightsLibrary library = WeightsLibrary::kUnknown;
  std::string origin;                             // where it was found, for lines
  std::string architecture;                       // "resnet50.a1_in1k", "vit_b_16"; "": unknown
  int64_t classes = -1;                           // 0: without a head; -1: unknown
  std::vector<std::string> class_names;           // by label; empty: unknown
  std::vector<int64_t> image;                     // channels, height, width; empty: unknown
  std::vector<double> mean, std;                  // empty: unknown
  std::string interpolation;                      // "": unknown
  double crop_pct = 0;                            // 0: unknown, or `resize` says it
  int64_t resize = 0;                             // torchvision's: the shorter side before the crop
  std::string crop_mode;                          // "": unknown
  std::vector<std::string> classifier;            // names of the last layers in the file
  std::map<std::string, std::string> model_keys;  // keys below "model." and their values as JSON

  bool operator==(const PretrainedRecord&) const = default;
};

// Reads a config.json of timm, with the fields in pretrained_cfg or at top level, or our metadata.
// Fields of other types count as unknown. nullopt if it is not such a record. kUsage naming
// `origin` for patches or windows that differ in rows and columns.
std::optional<PretrainedRecord> record_in(const fleet::Json& config,
                                          const std::string& origin = "config.json");
// The same fields, as timm names them.
fleet::Json json_of(const PretrainedRecord& record);

// torchvision's weights with these eight hexadecimal digits: "0676ba61".
std::optional<PretrainedRecord> torchvision_record(const std::string& hash);

// Whether torchvision has weights of a network of this name.
bool in_torchvision(const std::string& network);

// The file of weights that a path names: itself, or of a folder the first one of timm's order, with
// transformers' indices of several files. kUsage if a folder has none.
std::string weights_file(const std::string& path);

// The tensors of weights_file(path), by read_weights() or open_weights(). With `average`, the file
// ema.safetensors in a checkpoint replaces those that it has; other files: see read_weights().
TensorFile with_averages(const std::string& path, bool average,
                         TensorFile (*read)(const std::string& file, bool average));

// Whether a folder is one of transformers' models.
bool is_transformers_folder(const std::string& path);

// The record of weights: from config.json in the folder, else by the hash in the file's name or,
// of DINOv2's authors, by the name, else of the file's metadata, which are read if they are null.
// nullopt without one. Errors of weights_file() and open_outline().
std::optional<PretrainedRecord> find_record(
    const std::string& path, const std::map<std::string, std::string>* metadata = nullptr);

}  // namespace fleet
