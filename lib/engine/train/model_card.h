// A description of the training data, stored in the metadata of a safetensors file of weights.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fleet {

struct ModelCard {
  std::vector<std::string> classes;  // names, by label; empty: unknown
  std::vector<int64_t> image;        // channels, height, width of the input; empty: unknown
  std::string pretrained = {};       // JSON of train/pretrained_record.h; "": none

  bool operator==(const ModelCard&) const = default;
};

// Sets the keys "classes" and "image" of the metadata, each a JSON array as text, and
// "pretrained_cfg". Leaves out unknown values.
void write_card(const ModelCard& card, std::map<std::string, std::string>* metadata);
// Values of other programs under these names that do not have this form count as unknown.
ModelCard read_card(const std::map<std::string, std::string>& metadata);

// Throws kUsage, at `where`, if both lists have names and they are not the same in the same order.
// The message names the first difference; `next` is the advice in it.
void check_same_classes(const std::vector<std::string>& saved, const std::vector<std::string>& own,
                        const std::string& where, const std::string& next);

// "5 classes: 0 daisy, 1 rose, ...", for the log; "" without names.
std::string class_order_text(const std::vector<std::string>& classes);

}  // namespace fleet
