#include "data/augment.h"

#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "base/text.h"
#include "data/resize.h"

namespace fleet::data {
namespace {

std::vector<double> one_a_channel(const std::vector<double>& values, const ImageShape& image,
                                  const std::string& key) {
  if (static_cast<int>(values.size()) == image.channels) return values;
  if (values.size() == 1) return std::vector<double>(image.channels, values[0]);
  throw Error(
      ErrorCode::kUsage,
      std::to_string(values.size()) + " values for " + std::to_string(image.channels) + " channels",
      key, "give one value, or one for each channel");
}

// The registered augmentations of a mode, in the order in which they are applied.
std::vector<std::pair<std::string, const AugmentType*>> types_of(bool train) {
  std::vector<std::pair<std::string, const AugmentType*>> types;
  for (const std::string& name : augments().names()) {
    const AugmentType& type = augments().get(name);
    if (train || type.evaluation) types.emplace_back(name, &type);
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.second->order < b.second->order; });
  return types;
}

// "data.mean=[0.485, 0.456, 0.406]" for values of a scale that ends at 255.
std::string on_unit_scale(const std::string& key, const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(number_text(value / 255, 4));
  return key + "=[" + join(texts, ", ") + "]";
}

}  // namespace

std::string ImageShape::text() const {
  return std::to_string(channels) + "x" + std::to_string(height) + "x" + std::to_string(width);
}

Registry<AugmentType>& augments() {
  static Registry<AugmentType> registry("augmentation");
  return registry;
}

Schema augment_schema(bool train) {
  Schema schema;
  for (const auto& [name, type] : types_of(train)) schema.section("", type->schema);
  if (train) {
    std::vector<std::string> filters = {"same", "random"};
    filters.insert(filters.end(), filter_names().begin(), filter_names().end());
    schema.choice("interpolation", "same", filters,
                  "Filter for training images; same: data.interpolation; random: bilinear or "
                  "bicubic, drawn for each image, as in timm");
  } else {
    schema.boolean("scaled_decode", false,
                   "Decode large JPEGs at a half, a quarter or an eighth of their size, as in "
                   "training: faster, but the pixels differ from torchvision's");
  }
  return schema;
}

bool mixes_labels(const Settings& augment) {
  const auto types = types_of(true);
  return std::any_of(types.begin(), types.end(), [&](const auto& type) {
    return type.second->mixes && type.second->mixes(augment);
  });
}

void check_normalization(const std::vector<double>& mean, const std::vector<double>& std) {
  const auto above = [](const std::vector<double>& values) {
    return std::find_if(values.begin(), values.end(), [](double value) { return value > 1; });
  };
  std::string key, advice;
  double first = 0;
  for (const auto& [name, values] : {std::pair("data.std", &std), std::pair("data.mean", &mean)}) {
    const auto found = above(*values);
    if (found == values->end()) continue;
    key = name;
    first = *found;
    advice = on_unit_scale(name, *values) + (advice.empty() ? "" : " and ") + advice;
  }
  if (key.empty()) return;
  throw Error(
      ErrorCode::kUsage,
      number_text(first) + " is on the scale from 0 to 255, but pixel values go from 0 to 1", key,
      "divide by 255: " + advice);
}

AugmentChain::AugmentChain(const Settings& augment, bool train, const ImageShape& image,
                           const std::vector<double>& mean, const std::vector<double>& std,
                           const Interpolation& interpolation)
    : image_(image),
      scaled_(train || augment.boolean("scaled_decode")),
      interpolation_(interpolation) {
  std::string placing;
  for (const auto& [name, type] : types_of(train)) {
    std::shared_ptr<const Augment> made = type->make(augment, image);
    if (!made) continue;
    if (made->sets_crop() && !placing.empty()) {
      throw Error(ErrorCode::kUsage,
                  placing + " and " + name + " both choose which part of an image is used",
                  train ? "data.augment" : "data.eval", "switch one of them off");
    }
    if (made->sets_crop()) placing = name;
    stages_.push_back({name, name + ".colour", name + ".mix", std::move(made)});
  }
  check_normalization(mean, std);
  mean_ = one_a_channel(mean, image, "data.mean");
  deviation_ = one_a_channel(std, image, "data.std");
  for (int c = 0; c < image.channels; ++c) {
    if (!(deviation_[c] > 0)) {
      throw Error(ErrorCode::kUsage, "a standard deviation must be positive", "data.std");
    }
    scale_.push_back(static_cast<float>(1 / (255 * deviation_[c])));
    bias_.push_back(static_cast<float>(-mean_[c] / deviation_[c]));
  }
}

CropGeometry AugmentChain::geometry(int source_height, int source_width, uint64_t key) const {
  CropGeometry p{.source_height = source_height,
                 .source_width = source_width,
                 .out_height = image_.height,
                 .out_width = image_.width,
                 .width = static_cast<double>(source_width),
                 .height = static_cast<double>(source_height),
                 .tap_width = source_width,
                 .tap_height = source_height,
                 .scaled = scaled_,
                 .filter = filter_of(key),
                 .passes = interpolation_.passes};
  for (const Stage& link : stages_) {
    RandomStream random(key, link.placing);
    link.augment->set_geometry(p, random);
  }
  for (int c = 0; p.fill_mean && c < image_.channels; ++c) {
    // As Python's round(), halves to even.
    p.fill[c] = static_cast<uint8_t>(std::clamp(std::lrint(255 * mean_[c]), 0L, 255L));
  }
  return p;
}

Filter AugmentChain::filter_of(uint64_t key) const {
  if (!interpolation_.random) return interpolation_.filter;
  RandomStream random(key, "interpolation");
  return random.below(2) == 0 ? Filter::kBilinear : Filter::kBicubic;
}

bool AugmentChain::fits(int source_height, int source_width) const {
  if (source_height == image_.height && source_width == image_.width) return true;
  return geometry(source_height, source_width, 0).crop_set;
}

CropGeometry AugmentChain::set_geometry(int source_height, int source_width, uint64_t key,
                                        const std::function<std::string()>& name) const {
  const CropGeometry p = geometry(source_height, source_width, key);
  if (p.crop_set || (source_height == image_.height && source_width == image_.width)) return p;
  throw ImageSizeError(
      ErrorCode::kUsage,
      "the image is of another size: " + std::to_string(source_height) + "x" +
          std::to_string(source_width) + " pixels (height x width), but data.image is " +
          std::to_string(image_.height) + "x" + std::to_string(image_.width),
      name(),
      "correct data.image, or resize images: data.augment.random_resized_crop for training, "
      "data.augment.resize and data.eval.resize");
}

bool AugmentChain::colours() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& link) { return link.augment->colours(); });
}

void AugmentChain::colour(float* pixels, uint64_t key) const {
  for (const Stage& link : stages_) {
    if (!link.augment->colours()) continue;
    RandomStream random(key, link.colouring);
    link.augment->colour({pixels, image_, mean_, deviation_}, random);
  }
}

bool AugmentChain::depends_on_place() const {
  return std::any_of(stages_.begin(), stages_.end(), [](const Stage& link) {
    return link.augment->depends_on_place() || link.augment->mixes();
  });
}

void AugmentChain::move_mask(uint8_t* mask, uint64_t key) const {
  for (const Stage& link : stages_) {
    RandomStream random(key, link.colouring);
    link.augment->move_mask(mask, image_, random);
  }
}

void AugmentChain::check_masks(bool train) const {
  for (const Stage& link : stages_) {
    if (!link.augment->refuses_masks()) continue;
    throw Error(
        ErrorCode::kUsage,
        "the classes of an image's pixels cannot follow the augmentation '" + link.placing + "'",
        train ? "data.augment" : "data.eval", "switch it off");
  }
}

bool AugmentChain::mixes() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const Stage& link) { return link.augment->mixes(); });
}

BatchMix AugmentChain::mix(uint64_t key) const {
  std::vector<const Stage*> mixing;
  for (const Stage& link : stages_) {
    if (link.augment->mixes()) mixing.push_back(&link);
  }
  RandomStream choice(key, "mix");
  const Stage& drawn = *mixing.at(choice.below(static_cast<int64_t>(mixing.size())));
  RandomStream random(key, drawn.mixing);
  return drawn.augment->mix(image_, random);
}

void AugmentChain::normalise(float* pixels) const {
  const size_t plane = size_t(image_.height) * image_.width;
  for (int c = 0; c < image_.channels; ++c, pixels += plane) {
    scale_plane(pixels, plane, scale_[c] * 255, bias_[c]);
  }
}

std::vector<double> range_of(const Settings& settings, const std::string& key, double most) {
  const auto values = settings.numbers(key);
  if (values.size() != 2 || !(values[0] > 0) || values[0] > values[1] || values[1] > most) {
    throw Error(ErrorCode::kUsage, "not a range", "data.augment." + key,
                "give [minimum, maximum], above 0, in ascending order");
  }
  return values;
}

}  // namespace fleet::data
