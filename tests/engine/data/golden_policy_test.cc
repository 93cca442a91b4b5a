// Policies against the strengths and pixels that scripts/make_golden_augment.py took from
// torchvision and timm.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "data/timm_operation.h"
#include "data/torchvision_steps.h"
#include "tests/test_paths.h"

namespace fleet::data {
namespace {

nlohmann::json golden_policies() {
  std::ifstream file(source_folder() + "/tests/golden/augment.json");
  return nlohmann::json::parse(file);
}

const std::map<std::string, Operation>& torchvision_names() {
  static const std::map<std::string, Operation> all = {
      {"ShearX", Operation::kShearX},         {"ShearY", Operation::kShearY},
      {"TranslateX", Operation::kTranslateX}, {"TranslateY", Operation::kTranslateY},
      {"Rotate", Operation::kRotate},         {"Brightness", Operation::kBrightness},
      {"Color", Operation::kColour},          {"Contrast", Operation::kContrast},
      {"Sharpness", Operation::kSharpness},   {"Posterize", Operation::kPosterize},
      {"Solarize", Operation::kSolarize}};
  return all;
}

void expect_strengths(const std::string& policy, const StrengthRanges& ranges) {
  const ImageShape image{3, 160, 224};
  const nlohmann::json strengths = golden_policies().at("strengths").at(policy);
  EXPECT_EQ(strengths.size(), torchvision_names().size());
  for (const auto& [name, values] : strengths.items()) {
    const auto bins = static_cast<int>(values.size());
    for (int bin = 0; bin < bins; ++bin) {
      for (const double sign : {-1, 1}) {
        const ImageStep step =
            torchvision_step(torchvision_names().at(name), ranges, bin, bins, sign, image);
        double wanted = values[bin].get<double>();
        const bool is_signed = name != "Posterize" && name != "Solarize";
        if (is_signed) wanted *= sign;
        // torch.linspace() rounds differently just below a whole number.
        if (name.starts_with("Translate")) wanted = std::trunc(wanted + sign * 1e-5);
        const bool factor =
            name == "Brightness" || name == "Color" || name == "Contrast" || name == "Sharpness";
        EXPECT_NEAR(step.value, wanted + (factor ? 1 : 0), 1e-6)
            << policy << " " << name << " at bin " << bin;
      }
    }
  }
}

TEST(GoldenPolicy, StrengthsOfAutoAugment_AreTorchvisions) { expect_strengths("AutoAugment", {}); }

TEST(GoldenPolicy, StrengthsOfTrivialAugment_AreTorchvisions) {
  expect_strengths("TrivialAugmentWide", {.shear = 0.99,
                                          .translate = 32,
                                          .translate_pixels = true,
                                          .degrees = 135,
                                          .factor = 0.99,
                                          .fewer_bits = 6});
}

TEST(GoldenPolicy, StrengthsOfAugMix_AreTorchvisions) {
  expect_strengths("AugMix", {.translate = 1.0 / 3, .most_bits = 4});
}

TEST(GoldenPolicy, OperationsOfTimm_DifferByAtMostOneOf255) {
  const ImageShape image{3, 9, 11};
  const std::vector<double> mean = {124.0 / 255, 116.0 / 255, 104.0 / 255};
  std::set<std::string> tested;
  uint64_t hash = 0xCBF29CE484222325;
  for (const unsigned char byte : std::string("augment")) hash = (hash ^ byte) * 0x100000001B3;
  const nlohmann::json cases = golden_policies().at("timm");
  for (const nlohmann::json& one : cases) {
    std::vector<float> pixels(image.count());
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<float>(mix(hash + i) % 256) / 255;
    }
    const std::string name = one.at("operation");
    RandomStream random(1, "unused");
    const TimmOperation& operation = timm_operation(name);
    const bool bicubic = one.at("bicubic");
    const ImageStep step{
        operation.operation,
        timm_value(operation, one.at("magnitude"), 1, image, random),
        {.filter = bicubic ? Sampling::Filter::kBicubic : Sampling::Filter::kBilinear,
         .outside = Sampling::Outside::kMean},
        Steps::kBytes};
    apply(step, {.pixels = pixels.data(), .image = image, .mean = mean, .deviation = mean});
    const nlohmann::json& wanted = one.at("result");
    ASSERT_EQ(wanted.size(), pixels.size());
    double largest = 0;
    for (size_t i = 0; i < pixels.size(); ++i) {
      largest = std::max(largest, std::abs(255.0 * pixels[i] - wanted[i].get<double>()));
    }
    // Pillow cuts or rounds every result to 8 bits, and ours stays as it is.
    EXPECT_LE(largest, 1 + 1e-4) << name << " " << one.at("magnitude");
    tested.insert(name);
  }
  EXPECT_EQ(tested.size(), 24u);
}

}  // namespace
}  // namespace fleet::data
