#include "train/dinov2_weights.h"

#include <string>
#include <utility>
#include <vector>

#include "train/tensor_values.h"

namespace fleet {
namespace {

constexpr char kMask[] = "mask_token", kPositions[] = "pos_embed", kClassToken[] = "cls_token";

// "blocks.1.7.norm1.weight" is of block 7, in the second chunk.
std::string without_chunk(const std::string& name) {
  const std::string start = "blocks.";
  if (!name.starts_with(start)) return name;
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  const size_t first = name.find('.', start.size());
  const size_t second = first == std::string::npos ? first : name.find('.', first + 1);
  if (second == std::string::npos || !is_number(name.substr(first + 1, second - first - 1))) {
    return name;
  }
  return start + name.substr(first + 1);
}

// Adds the first row of positions to the class token, and removes it.
void move_first_row(HostTensor* positions, HostTensor* token) {
  const Shape shape = positions->shape;
  const std::vector<float> rows = floats_of(*positions);
  std::vector<float> sum = floats_of(*token);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += rows[i];
  const auto width = static_cast<std::ptrdiff_t>(sum.size());
  *token = tensor_of(token->shape, sum);
  *positions = tensor_of({1, shape[1] - 1, shape[2]}, {rows.begin() + width, rows.end()});
}

}  // namespace

bool fit_dinov2_file(TensorFile* file) {
  auto& tensors = file->tensors;
  if (!tensors.contains(kMask) || !tensors.contains(kPositions) || !tensors.contains(kClassToken)) {
    return false;
  }
  // A masked autoencoder has a mask_token, too.
  const auto decoder = tensors.lower_bound("decoder");
  if (decoder != tensors.end() && decoder->first.starts_with("decoder")) return false;
  tensors.erase(kMask);
  std::map<std::string, HostTensor> renamed;
  for (auto& [name, tensor] : tensors) renamed.emplace(without_chunk(name), std::move(tensor));
  tensors = std::move(renamed);
  const auto registers = tensors.find("register_tokens");
  if (registers == tensors.end()) return true;
  HostTensor tokens = std::move(registers->second);
  tensors.erase(registers);
  tensors["reg_token"] = std::move(tokens);
  HostTensor &positions = tensors.at(kPositions), &token = tensors.at(kClassToken);
  const Shape &rows = positions.shape, &one = token.shape;
  const bool fits = rows.rank() == 3 && rows[1] > 1 && one.elements() == rows[2] &&
                    is_floating(positions.dtype) && is_floating(token.dtype);
  if (!fits) return true;  // refused with both shapes
  move_first_row(&positions, &token);
  return true;
}

}  // namespace fleet
