// What the examples share: their arguments, of the form --name=value, and main().
#pragma once

#include <fleetrun/api/fleet.h>

#include <charconv>
#include <cstdio>
#include <map>
#include <set>
#include <string>

class Arguments {
 public:
  // Throws fleet::Error (kUsage) where a word is not --NAME=VALUE, or `names` lacks the name.
  Arguments(int argc, char** argv, const std::set<std::string>& names) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const size_t equals = word.find('=');
      if (word.rfind("--", 0) != 0 || equals == std::string::npos) {
        refuse("'" + word + "' is not of the form --name=value");
      }
      const std::string name = word.substr(2, equals - 2);
      if (names.count(name) == 0) refuse("there is no argument --" + name);
      values_[name] = word.substr(equals + 1);
    }
  }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  int number(const std::string& name, int otherwise, int least = 0) const {
    const std::string value = text(name, std::to_string(otherwise));
    int number = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || rest != value.data() + value.size() || number < least) {
      refuse("--" + name + "=" + value + " is not a number from " + std::to_string(least) + " on");
    }
    return number;
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) {
    throw fleet::Error(fleet::ErrorCode::kUsage, why);
  }

  std::map<std::string, std::string> values_;
};

// main() of an example, which takes the arguments `names`. Returns the exit code.
inline int run_example(const std::string& example, const std::set<std::string>& names, int argc,
                       char** argv, void (*run)(const Arguments&)) {
  try {
    run(Arguments(argc, argv, names));
    return 0;
  } catch (const fleet::Error& error) {
    std::fprintf(stderr, "%s: %s\n", example.c_str(), error.what());
    return fleet::exit_code_for(error.code());
  }
}

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
