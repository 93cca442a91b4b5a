// Arguments of the examples, as NAME=VALUE.
#pragma once

#include <fleetrun/api/fleet.h>

#include <cstdlib>
#include <map>
#include <string>

// Of what is given: --data=DIR --list=train.txt --batch=32 --image=224 --steps=10 --classes=102.
class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const size_t equals = word.find('=');
      if (word.rfind("--", 0) != 0 || equals == std::string::npos) {
        throw fleet::Error(fleet::ErrorCode::kUsage, "'" + word + "' is no --name=value");
      }
      values_[word.substr(2, equals - 2)] = word.substr(equals + 1);
    }
  }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  int number(const std::string& name, int otherwise) const {
    return std::atoi(text(name, std::to_string(otherwise)).c_str());
  }

 private:
  std::map<std::string, std::string> values_;
};

// The documents' reader of ImageNet, where --data names a folder with a list of "path label" lines;
// else made-up images that are small enough for two CPUs.
inline fleet::Values images(const Arguments& arguments) {
  const bool real = !arguments.text("data").empty();
  const int side = arguments.number("image", real ? 224 : 64);
  fleet::Values data = {{"batch_size", arguments.number("batch", real ? 32 : 4)},
                        {"image.channels", 3},
                        {"image.height", side},
                        {"image.width", side},
                        {"mean", {0.485, 0.456, 0.406}},
                        {"std", {0.229, 0.224, 0.225}}};
  if (!real) {
    data.emplace_back("source", "synthetic");
    data.emplace_back("train.samples", 256);
    return data;
  }
  data.emplace_back("source", "image_list");
  data.emplace_back("root", arguments.text("data"));
  data.emplace_back("train.list", arguments.text("list", "train.txt"));
  data.emplace_back("augment.random_resized_crop", true);
  data.emplace_back("augment.flip", true);
  return data;
}
