// What weights were trained for, as the metadata of their safetensors file tells.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fleet {

struct ModelCard {
  std::vector<std::string> classes;  // names, by label; none: not known
  std::vector<int64_t> image;        // channels, height, width of what it reads; none: not known

  bool operator==(const ModelCard&) const = default;
};

// The keys "classes" and "image" of the metadata, each a JSON array as text. What is not known is
// left out.
void write_card(const ModelCard& card, std::map<std::string, std::string>* metadata);
// What other programs have put there under these names, and is none of this, counts as not known.
ModelCard read_card(const std::map<std::string, std::string>& metadata);

// kUsage, at `where`, where both name classes and they are not the same in the same order. The
// message names the first that differs; `next` is what to do.
void check_same_classes(const std::vector<std::string>& saved, const std::vector<std::string>& own,
                        const std::string& where, const std::string& next);

}  // namespace fleet
