#include "train/image_shapes.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "train/patch_kernels.h"
#include "train/position_grid.h"
#include "train/tensor_values.h"

namespace fleet {
namespace {

std::string text_of(const PositionGrid& grid) {
  return std::to_string(grid.height) + " x " + std::to_string(grid.width);
}

// The root of a square; 0 of other numbers.
int64_t side_of(int64_t places) {
  if (places < 1) return 0;
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(places))));
  return side * side == places ? side : 0;
}

class ShapeFitter {
 public:
  ShapeFitter(const Program& program, const TensorShapes& ours, const ImageShapeOptions& options,
              TensorFile* file)
      : program_(program),
        ours_(ours),
        options_(options),
        file_(*file),
        first_(first_convolution()) {}

  std::vector<std::string> fit() {
    fit_patches();
    fit_positions();
    fit_offsets();
    fit_channels();
    return std::move(lines_);
  }

 private:
  std::string first_convolution() const {
    for (VarId id = 0; id < program_.var_count(); ++id) {
      const Var& var = program_.var(id);
      if (var.kind == VarKind::kParameter && var.shape.rank() == 4) return var.name;
    }
    return "";
  }

  // The file's tensor for that convolution; null if it has none with four dimensions.
  HostTensor* first_kernel() {
    const auto found = file_.tensors.find(first_);
    if (first_.empty() || found == file_.tensors.end()) return nullptr;
    return found->second.shape.rank() == 4 && is_floating(found->second.dtype) ? &found->second
                                                                               : nullptr;
  }

  void fit_patches() {
    HostTensor* kernel = first_kernel();
    if (!kernel) return;
    const Shape to = ours_.at(first_), from = kernel->shape;
    file_patch_ = {from[2], from[3]};
    const bool patches =
        first_.ends_with("patch_embed.proj.weight") || first_.ends_with("conv_proj.weight");
    const PositionGrid patch{to[2], to[3]};
    if (!patches || from[0] != to[0] || file_patch_ == patch) return;
    *kernel = tensor_of({from[0], from[1], to[2], to[3]},
                        resampled_kernels(floats_of(*kernel), file_patch_, patch));
    lines_.push_back(first_ + " resampled from patches of " + text_of(file_patch_) + " to " +
                     text_of(patch) + " by the rule of timm (model.patch)");
  }

  // The rows and columns of patches of the program's images; 0 if they are not known.
  PositionGrid own_grid() const {
    const VarId feed = program_.find("image");
    if (feed == kNoVar || first_.empty()) return {};
    const Shape& image = program_.var(feed).shape;
    const Shape& patch = ours_.at(first_);
    if (image.rank() != 4) return {};
    return {image[2] / patch[2], image[3] / patch[3]};
  }

  // The grid of the images that the weights were trained with; 0 if it is unknown, or has another
  // number of places.
  PositionGrid recorded_grid(int64_t places) const {
    if (options_.image.size() != 3 || file_patch_.height == 0) return {};
    const PositionGrid grid{options_.image[1] / file_patch_.height,
                            options_.image[2] / file_patch_.width};
    return grid.height * grid.width == places ? grid : PositionGrid{};
  }

  void fit_positions() {
    for (auto& [name, tensor] : file_.tensors) {
      const auto own = ours_.find(name);
      if (own == ours_.end() || name.find("pos_embed") == std::string::npos) continue;
      const Shape &from = tensor.shape, &to = own->second;
      const bool resizes = from.rank() == 3 && to.rank() == 3 && from[0] == 1 && to[0] == 1 &&
                           from[2] == to[2] && is_floating(tensor.dtype);
      if (resizes) resize_positions(name, to, &tensor);
    }
  }

  void resize_positions(const std::string& name, const Shape& to, HostTensor* tensor) {
    const PositionGrid grid = own_grid();
    const int64_t prefix = to[1] - grid.height * grid.width;
    constexpr int64_t kMostPrefix = 8;
    if (grid.height == 0 || prefix < 0 || prefix > kMostPrefix) return;
    const int64_t places = tensor->shape[1] - prefix;
    PositionGrid from = recorded_grid(places);
    if (from.height == 0 && tensor->shape[1] != to[1]) from = {side_of(places), side_of(places)};
    if (from.height == 0 || from == grid) return;
    const auto [rule, text] = position_rule();
    *tensor = tensor_of(to, resized_positions(floats_of(*tensor), prefix, to[2], from, grid, rule));
    lines_.push_back(name + " resized from " + text_of(from) + " to " + text_of(grid) +
                     " by the rule of " + text);
  }

  // Meta's networks with registers resize as timm does.
  std::pair<PositionRule, std::string> position_rule() const {
    const bool ours = options_.origin == WeightsLibrary::kOwn;  // torchvision's names
    if (ours || options_.origin == WeightsLibrary::kTorchvision) {
      return {PositionRule::kTorchvision, "torchvision (bicubic between the corners)"};
    }
    if (options_.origin != WeightsLibrary::kMeta) {
      return {PositionRule::kTimm, "timm (bicubic, antialiased)"};
    }
    if (options_.registers) {
      return {PositionRule::kTimm, "Meta for DINOv2 with registers (bicubic, antialiased)"};
    }
    return {PositionRule::kMeta, "Meta for DINOv2 (bicubic, with an offset of 0.1)"};
  }

  // The table of each operation, and its window.
  std::map<std::string, PositionGrid> offset_tables() const {
    std::map<std::string, PositionGrid> tables;
    for (const Op& op : program_.ops()) {
      if (op.type() != "window_softmax") continue;
      const std::vector<int64_t>& window = op.attributes.integers("window");
      tables[program_.var(op.inputs[1]).name] = {window[0], window[1]};
    }
    return tables;
  }

  void fit_offsets() {
    std::map<std::string, int64_t> counts;
    for (const auto& [name, window] : offset_tables()) {
      const auto found = file_.tensors.find(name), none = file_.tensors.end();
      if (found == none || !ours_.contains(name)) continue;
      const Shape &to = ours_.at(name), from = found->second.shape;
      if (from.rank() != 2 || from[1] != to[1] || !is_floating(found->second.dtype)) continue;
      const int64_t side = side_of(from[0]);
      const PositionGrid before{(side + 1) / 2, (side + 1) / 2};
      if (side % 2 == 0 || before == window) continue;
      if (options_.origin == WeightsLibrary::kTorchvision) refuse_windows(name, before, window);
      const OffsetRule rule = options_.origin == WeightsLibrary::kMicrosoft ? OffsetRule::kMicrosoft
                                                                            : OffsetRule::kTimm;
      found->second =
          tensor_of(to, resized_offsets(floats_of(found->second), to[1], before, window, rule));
      ++counts["windows of " + text_of(before) + " to " + text_of(window)];
    }
    const bool microsoft = options_.origin == WeightsLibrary::kMicrosoft;
    for (const auto& [what, count] : counts) {
      lines_.push_back(std::to_string(count) + " tables of relative positions resized from " +
                       what + " by the rule of " +
                       (microsoft ? "Microsoft (bicubic)" : "timm (linear between growing steps)"));
    }
  }

  [[noreturn]] void refuse_windows(const std::string& name, const PositionGrid& from,
                                   const PositionGrid& to) const {
    throw Error(ErrorCode::kUsage,
                "'" + name + "' is " + file_.tensors.at(name).shape.text() + ", of windows of " +
                    text_of(from) + ", the model's is " + ours_.at(name).text() + ", of " +
                    text_of(to) + ", and torchvision has no rule for other windows",
                options_.path, "set model.window=" + std::to_string(from.height));
  }

  // timm's rule: one channel is the sum over RGB; n are RGB repeated, cut, times 3 / n.
  void fit_channels() {
    HostTensor* kernel = first_kernel();
    if (!kernel) return;
    const Shape &to = ours_.at(first_), from = kernel->shape;
    constexpr int64_t kRgb = 3;
    if (from[1] != kRgb || to[1] == kRgb || from[0] != to[0] || from[2] != to[2] ||
        from[3] != to[3]) {
      return;
    }
    const std::vector<float> rgb = floats_of(*kernel);
    std::vector<float> values(static_cast<size_t>(to.elements()));
    const int64_t area = to[2] * to[3], channels = to[1];
    const float scale = 3.0F / static_cast<float>(channels);
    for (int64_t out = 0; out < to[0]; ++out) {
      for (int64_t i = 0; i < channels * area; ++i) {
        const int64_t pixel = i % area, channel = i / area;
        const auto at = [&](int64_t c) {
          return rgb[static_cast<size_t>((out * kRgb + c) * area + pixel)];
        };
        values[static_cast<size_t>(out * channels * area + i)] =
            channels == 1 ? at(0) + at(1) + at(2) : scale * at(channel % kRgb);
      }
    }
    *kernel = tensor_of(to, values);
    lines_.push_back(first_ + ": 3 channels of images to " + std::to_string(channels) +
                     (channels == 1 ? " (the sum)" : " (repeated and scaled)"));
  }

  const Program& program_;
  const TensorShapes& ours_;
  const ImageShapeOptions& options_;
  TensorFile& file_;
  const std::string first_;
  PositionGrid file_patch_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> fit_image_shapes(const Program& program, const TensorShapes& ours,
                                          const ImageShapeOptions& options, TensorFile* file) {
  return ShapeFitter(program, ours, options, file).fit();
}

}  // namespace fleet
