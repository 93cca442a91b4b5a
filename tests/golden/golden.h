// Values that scripts/make_golden.py computed with PyTorch, and the formula from which both sides
// compute the same weights.
#pragma once

#include <fnmatch.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tensor/shape.h"
#include "tests/test_paths.h"

namespace fleet::golden {

inline uint64_t fnv1a(const std::string& text) {
  uint64_t value = 0xCBF29CE484222325;
  for (unsigned char byte : text) value = (value ^ byte) * 0x100000001B3;
  return value;
}

inline uint64_t splitmix64(uint64_t value) {
  uint64_t z = value + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The values of a tensor by its name, as make_golden.py's head describes them; bit for bit the
// same.
inline std::vector<float> tensor(const std::string& name, const Shape& shape) {
  const bool scale =
      name.ends_with("running_var") || (shape.rank() == 1 && name.ends_with("weight"));
  const double fan_in = static_cast<double>(shape.elements()) / static_cast<double>(shape[0]);
  const float bound = static_cast<float>(std::sqrt(6 / fan_in));
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  const uint64_t key = fnv1a(name);
  for (size_t i = 0; i < values.size(); ++i) {
    const float u =
        static_cast<float>(static_cast<double>(splitmix64(key + i) >> 40) * 2 / 16777216 - 1);
    if (name == "input") {
      values[i] = u;
    } else if (scale) {
      values[i] = 1 + u * 0.25f;
    } else {
      values[i] = u * (shape.rank() == 1 ? 0.1f : bound);
    }
  }
  return values;
}

struct Summary {
  double norm = 0, sum = 0;
  size_t step = 1;             // values[k] is element k * step, row-major
  std::vector<double> values;  // up to `samples`
  size_t samples = 8;
};

// The same of a tensor of ours.
inline Summary summarize(const std::vector<float>& tensor, size_t samples = 8) {
  Summary summary;
  summary.samples = samples;
  summary.step = tensor.size() < samples ? 1 : tensor.size() / samples;
  double squares = 0;
  for (size_t i = 0; i < tensor.size(); ++i) {
    squares += static_cast<double>(tensor[i]) * tensor[i];
    summary.sum += tensor[i];
    if (i % summary.step == 0 && summary.values.size() < samples)
      summary.values.push_back(tensor[i]);
  }
  summary.norm = std::sqrt(squares);
  return summary;
}

struct Evaluation {
  Shape input;
  std::vector<double> logits;
};

// Training steps on one batch.
struct GoldenSteps {
  std::string optimizer;  // the section of a job
  float rate = 0;
  std::vector<double> losses;  // before each step
};

struct Golden {
  std::string model;
  int64_t classes = 0;
  Shape input;
  std::vector<int64_t> labels;
  double loss = 0;  // mean cross entropy, training mode
  std::vector<double> logits,
      eval_logits;  // [N, classes]; evaluation from the initial running statistics
  std::map<std::string, Summary> gradients;
  std::map<std::string, Summary>
      running_after;         // running statistics after that one training forward
  size_t parameters = 0;     // of the network; `gradients` may have some of them only
  double gradient_norm = 0;  // of all parameters together
  std::vector<Evaluation> other_sizes;
  GoldenSteps steps;  // may be empty
  // Factors of tensors, and then summands, by shell patterns of names.
  std::map<std::string, float> scaled, shifted;

  // The values of a weight.
  std::vector<float> weight(const std::string& name, const Shape& shape) const {
    std::vector<float> values = tensor(name, shape);
    const auto fits = [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    };
    for (const auto& [pattern, factor] : scaled) {
      if (!fits(pattern)) continue;
      for (float& value : values) value *= factor;
    }
    for (const auto& [pattern, more] : shifted) {
      if (!fits(pattern)) continue;
      for (float& value : values) value += more;
    }
    return values;
  }
};

inline Golden load(const std::string& model) {
  const auto json =
      nlohmann::json::parse(std::ifstream(source_folder() + "/tests/golden/" + model + ".json"));
  const auto summaries = [](const nlohmann::json& from) {
    std::map<std::string, Summary> all;
    for (const auto& [name, one] : from.items()) {
      all[name] = {one.at("norm"), one.at("sum"), one.at("step"), one.at("values"),
                   one.value("samples", size_t{8})};
    }
    return all;
  };
  Golden golden;
  golden.model = json.at("model");
  golden.classes = json.at("classes");
  const std::vector<int64_t> input = json.at("input_shape");
  golden.input = Shape(input);
  golden.labels = json.at("labels").get<std::vector<int64_t>>();
  golden.loss = json.at("loss");
  golden.logits = json.at("logits").get<std::vector<double>>();
  golden.eval_logits = json.at("eval_logits").get<std::vector<double>>();
  golden.gradients = summaries(json.at("gradients"));
  golden.running_after = summaries(json.at("running_after"));
  golden.parameters = json.value("parameters", golden.gradients.size());
  golden.gradient_norm = json.value("gradient_norm", 0.0);
  golden.scaled = json.value("scaled", golden.scaled);
  golden.shifted = json.value("shifted", golden.shifted);
  if (json.contains("steps")) {
    const nlohmann::json& steps = json.at("steps");
    golden.steps = {steps.at("optimizer").dump(), steps.at("rate"), steps.at("losses")};
  }
  for (const nlohmann::json& other : json.value("other_sizes", nlohmann::json::array())) {
    const std::vector<int64_t> shape = other.at("input_shape");
    golden.other_sizes.push_back({Shape(shape), other.at("eval_logits")});
  }
  return golden;
}

}  // namespace fleet::golden
