#include "train/foreign_weights.h"

#include <algorithm>

#include "models/model.h"
#include "train/model_card.h"

namespace fleet {

// ImageNet's statistics, which torchvision's weights expect.
static constexpr char kMean[] = "data.mean=[0.485, 0.456, 0.406]";
static constexpr char kStd[] = "data.std=[0.229, 0.224, 0.225]";

// The models for small images (lenet, the networks for CIFAR) have no weights in torchvision.
static bool takes_photographs(const Job& job) {
  constexpr int64_t kSmall = 100;
  const ModelDef& model = model_registry().get(job.model_name);
  if (std::ranges::find(model.inputs, "image") == model.inputs.end()) return false;
  const Shape image = model.image;
  return image[0] == 3 && image[1] > kSmall && job.data.integer("image.channels") != 1 &&
         job.data.text("source") != "synthetic";
}

std::string missing_normalization(const Job& job, const std::string& path,
                                  const std::map<std::string, std::string>& metadata) {
  const bool has_mean = job.data.given("mean"), has_std = job.data.given("std");
  if ((has_mean && has_std) || !takes_photographs(job)) return "";
  if (!read_card(metadata).image.empty()) return "";
  const std::string keys = has_mean ? kStd : has_std ? kMean : std::string(kMean) + " and " + kStd;
  return path + ": weights of another program. Those of torchvision, and most of timm, expect " +
         keys + ", but the job does not set " + (has_mean || has_std ? "it" : "them") +
         "; set what these weights were trained with";
}

}  // namespace fleet
