// Cases that scripts/make_golden_language_models.py and make_golden_encoders.py computed with
// transformers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/text/language_model.h"
#include "tests/golden/golden.h"
#include "tests/test_paths.h"

namespace fleet::golden {

struct TextCase {
  Json config;
  int64_t batch = 0, length = 0;
  std::vector<double> losses;  // before each of 20 steps of AdamW
  // "logits", and "gradient." + transformers' name of a parameter.
  std::map<std::string, std::vector<float>> tensors;
  std::map<std::string, Shape> shapes;
  // Of an encoder: the head, and the inputs under our names, row by row.
  std::string head;
  std::map<std::string, std::vector<int64_t>> inputs;
};

// Appends all numbers of a nested array.
inline void append_numbers(const nlohmann::json& values, std::vector<int64_t>* all) {
  if (values.is_number()) return all->push_back(values.get<int64_t>());
  for (const auto& value : values) append_numbers(value, all);
}

inline std::string text_folder() { return source_folder() + "/tests/golden/text/"; }

inline TextCase load_text(const std::string& name) {
  std::ifstream file(text_folder() + name + ".safetensors", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  const auto& metadata = header.at("__metadata__");
  const auto text = [&](const char* key) { return metadata.at(key).get<std::string>(); };
  TextCase result{.config = Json::parse(text("config")),
                  .batch = std::stoll(text("batch")),
                  .length = std::stoll(text("length")),
                  .losses = nlohmann::json::parse(text("losses")).get<std::vector<double>>()};
  if (metadata.contains("head")) {
    result.head = text("head");
    const auto inputs = nlohmann::json::parse(text("inputs"));
    for (const auto& [key, values] : inputs.items()) append_numbers(values, &result.inputs[key]);
  }
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    const std::vector<uint64_t> at = entry.at("data_offsets");
    std::vector<float> values((at[1] - at[0]) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + 8 + length + at[0], at[1] - at[0]);
    result.tensors[key] = std::move(values);
    const std::vector<int64_t> dims = entry.at("shape");
    result.shapes[key] = Shape(dims);
  }
  return result;
}

// The tokens of a case, [batch, length].
inline std::vector<int64_t> text_tokens(const TextCase& text, int64_t vocabulary) {
  std::vector<int64_t> ids(static_cast<size_t>(text.batch * text.length));
  const uint64_t key = fnv1a("tokens");
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int64_t>(splitmix64(key + i) % static_cast<uint64_t>(vocabulary));
  }
  return ids;
}

inline std::vector<float> transposed(const std::vector<float>& values, int64_t columns) {
  const auto wide = static_cast<size_t>(columns), high = values.size() / wide;
  std::vector<float> turned(values.size());
  for (size_t r = 0; r < high; ++r) {
    for (size_t c = 0; c < wide; ++c) turned[c * high + r] = values[r * wide + c];
  }
  return turned;
}

// The largest error, of the largest value; itself where all values are 0, as gradients that cancel.
inline double relative_error(const std::vector<float>& ours, const std::vector<float>& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  double error = 0, largest = 0;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    error = std::max(error, std::abs(static_cast<double>(ours[i]) - theirs[i]));
    largest = std::max(largest, std::abs(static_cast<double>(theirs[i])));
  }
  return largest < 1e-12 ? error : error / largest;
}

// Our parameters from transformers' tensors, which `tensor` gives by name.
template <typename Tensor>
std::map<std::string, std::vector<float>> joined_parts(const std::vector<WeightPart>& parts,
                                                       const Tensor& tensor) {
  std::map<std::string, std::vector<float>> all;
  for (const WeightPart& part : parts) {
    std::vector<float> values = tensor(part.name);
    if (part.transposed) values = transposed(values, part.rows);
    std::vector<float>& whole = all[part.parameter];
    whole.insert(whole.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace fleet::golden
