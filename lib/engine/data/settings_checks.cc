#include "data/settings_checks.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/augment.h"

namespace fleet::data {

void check_validation_split(const Settings& data) {
  if (data.number("validation_split") == 0) return;
  const Schema test = sources().get(data.text("source")).schema(false);
  for (const ConfigKey& key : test.keys()) {
    if (!data.given("test." + key.path)) continue;
    throw Error(ErrorCode::kUsage, "there are test data already (data.test." + key.path + ")",
                "data.validation_split", "set only one of them");
  }
}

void check_sampling(const Settings& data) {
  if (data.text("sampling") != "balanced" || data.boolean("shuffle")) return;
  throw Error(ErrorCode::kUsage, "balanced sampling always shuffles", "data.shuffle",
              "leave it true, or set data.sampling to \"all\"");
}

void check_repeats(const Settings& data, const PipelineContext& context) {
  const int64_t repeats = data.integer("repeats");
  if (repeats == 1) return;
  if (!data.boolean("shuffle")) {
    throw Error(ErrorCode::kUsage,
                "without data.shuffle, each epoch would have the same first part of the images",
                "data.repeats", "set it to 1");
  }
  if (context.rank == 0 && mixes_labels(data.section("augment"))) {
    spdlog::warn(
        "data.repeats {}: mixup and cutmix mix {} of {} images with another copy of themselves",
        repeats, repeats - 1, repeats);
  }
}

// They mix an image with another one of its global batch.
void check_mixing(const Settings& data, int64_t samples, const PipelineContext& context) {
  if (context.rank != 0 || !mixes_labels(data.section("augment"))) return;
  const bool one_image = data.integer("batch_size") * context.ranks == 1;
  if (!one_image && samples > 1) return;
  spdlog::warn(
      "data.augment: mixup and cutmix mix each image with itself, because {} has one image; {}",
      one_image ? "the global batch" : "the training set",
      one_image ? "raise data.batch_size to 2 or more" : "set their alpha to 0");
}

void check_channels(int channels) {
  if (channels == 1 || channels == 3) return;
  throw Error(ErrorCode::kUsage, "images cannot have " + std::to_string(channels) + " channels",
              "data.image.channels", "1 is grey, 3 is RGB");
}

void warn_of_empty_classes(const Source& source, const PipelineContext& context) {
  constexpr size_t kShown = 10;
  constexpr int64_t kMostSamples = 100'000'000;  // synthetic data may claim more
  if (source.size() > kMostSamples) return;
  std::vector<bool> has_images(static_cast<size_t>(context.classes));
  int64_t highest = -1;
  for (int64_t i = 0; i < source.size(); ++i) {
    const int64_t label = source.label(i);
    if (label < 0 || label >= context.classes || label == context.ignored_label) continue;
    has_images[static_cast<size_t>(label)] = true;
    highest = std::max(highest, label);
  }
  std::vector<std::string> empty;
  for (int64_t label = 0; label < highest; ++label) {
    if (label == context.ignored_label || has_images[static_cast<size_t>(label)]) continue;
    empty.push_back(std::to_string(label));
  }
  if (empty.empty()) return;
  const size_t shown = std::min(empty.size(), kShown);
  spdlog::warn("data.train: {} of the classes 0 to {} without a sample: {}{}", empty.size(),
               highest, join(std::span(empty).first(shown), ", "),
               shown < empty.size() ? ", ..." : "");
}

}  // namespace fleet::data
