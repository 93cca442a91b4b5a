// Augmentations against values that scripts/make_golden_augment.py computed with torchvision.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "data/adjust_image.h"
#include "data/batch_slot.h"
#include "tests/test_paths.h"

namespace fleet::data {
namespace {

using Golden = nlohmann::json;

const Golden& golden() {
  static const Golden values = [] {
    std::ifstream file(source_folder() + "/tests/golden/augment.json");
    return Golden::parse(file);
  }();
  return values;
}

uint64_t fnv1a(const std::string& text) {
  uint64_t value = 0xCBF29CE484222325;
  for (const unsigned char byte : text) value = (value ^ byte) * 0x100000001B3;
  return value;
}

std::vector<float> image_of(const std::string& name, size_t count) {
  std::vector<float> pixels(count);
  for (size_t i = 0; i < count; ++i) {
    pixels[i] = static_cast<float>(mix(fnv1a(name) + i) % 256) / 255;
  }
  return pixels;
}

ImagePlanes planes_of(std::vector<float>& pixels, const ImageShape& image) {
  return {.pixels = pixels.data(), .image = image, .mean = {}, .deviation = {}};
}

using Change = std::function<void(const ImagePlanes&, double)>;

const std::map<std::string, Change>& operations() {
  using P = const ImagePlanes&;
  static const std::map<std::string, Change> all = {
      {"brightness", [](P p, double v) { adjust_brightness(p, static_cast<float>(v)); }},
      {"contrast", [](P p, double v) { adjust_contrast(p, static_cast<float>(v)); }},
      {"saturation", [](P p, double v) { adjust_saturation(p, static_cast<float>(v)); }},
      {"hue", [](P p, double v) { adjust_hue(p, static_cast<float>(v)); }},
      {"sharpness", [](P p, double v) { adjust_sharpness(p, static_cast<float>(v)); }},
      {"posterize", [](P p, double v) { posterize(p, static_cast<int>(v)); }},
      {"solarize", [](P p, double v) { solarize(p, static_cast<float>(v)); }},
      {"autocontrast",
       [](P p, double) {
         for (size_t i = 0; i < p.image.count(); ++i) p.pixels[i] = p.pixels[i] * 0.5f + 0.25f;
         autocontrast(p);
       }},
      {"equalize", [](P p, double) { equalize(p); }},
      {"shear_x", [](P p, double v) { shear(p, v, 0); }},
      {"shear_y", [](P p, double v) { shear(p, 0, v); }},
      {"translate_x", [](P p, double v) { translate(p, static_cast<int>(v), 0); }},
      {"translate_y", [](P p, double v) { translate(p, 0, static_cast<int>(v)); }},
      {"rotate", [](P p, double v) { rotate(p, v); }},
      {"invert", [](P p, double) { invert(p); }},
      {"grey", [](P p, double) { make_grey(p); }},
      {"blur", [](P p, double v) { gaussian_blur(p, 9, v); }},
      {"affine",
       [](P p, double v) {
         move(p, {.degrees = 20, .right = 2, .down = -1, .scale = v, .shear_x = 10});
       }},
      {"affine_bilinear",
       [](P p, double v) {
         move(p, {.degrees = -35, .right = 1, .down = 1, .scale = v, .shear_x = -8},
              {.filter = Sampling::Filter::kBilinear});
       }},
  };
  return all;
}

TEST(GoldenAugment, EachOperation_IsTorchvisions) {
  std::set<std::string> tested;
  for (const Golden& one : golden().at("cases")) {
    const std::string name = one.at("operation");
    const ImageShape image{one.at("image")[0], one.at("image")[1], one.at("image")[2]};
    std::vector<float> pixels = image_of("augment", image.count());
    operations().at(name)(planes_of(pixels, image), one.at("value"));
    const Golden& wanted = one.at("result");
    ASSERT_EQ(wanted.size(), pixels.size());
    for (size_t i = 0; i < pixels.size(); ++i) {
      ASSERT_NEAR(pixels[i], wanted[i].get<double>() / 10000, 6e-5)
          << name << " " << one.at("value") << " of " << image.text() << ", element " << i;
    }
    tested.insert(name);
  }
  EXPECT_EQ(tested.size(), operations().size());
}

std::vector<float> batch_images() {
  std::vector<float> all;
  for (int i = 0; i < 3; ++i) {
    const auto one = image_of("mix" + std::to_string(i), 3 * 5 * 6);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void expect_golden(const std::string& name, const BatchMix& mix) {
  const ImageShape image{3, 5, 6};
  std::vector<float> images = batch_images();
  const std::vector<float> last(images.end() - static_cast<long>(image.count()), images.end());
  mix_images(images.data(), 3, last.data(), image, mix);
  const Golden& wanted = golden().at(name).at("images");
  ASSERT_EQ(wanted.size(), images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    ASSERT_NEAR(images[i], wanted[i].get<double>() / 10000, 6e-5) << name << ", element " << i;
  }
  // Image i has label i: its row of the labels is `own` there, and the rest at the label before.
  const Golden& labels = golden().at(name).at("labels");
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(labels[i * 3 + i].get<double>() / 10000, mix.own, 6e-5);
    EXPECT_NEAR(labels[i * 3 + (i + 2) % 3].get<double>() / 10000, 1 - mix.own, 6e-5);
  }
}

TEST(GoldenAugment, Mixup_IsTorchvisions) {
  expect_golden("mixup", {.own = golden().at("mixup").at("own").get<float>()});
}

TEST(GoldenAugment, Cutmix_IsTorchvisions) {
  const Golden& box = golden().at("cutmix").at("box");
  expect_golden("cutmix", {.own = 1 - 9.0f / 30,
                           .left = box[0],
                           .top = box[1],
                           .right = box[2],
                           .bottom = box[3],
                           .cuts = true});
}

// What RandAugment may do with one image: its operations with torchvision's strengths.
std::map<std::string, std::vector<float>> candidates(const std::vector<float>& pixels,
                                                     const ImageShape& image, size_t column) {
  std::map<std::string, std::vector<float>> all;
  const auto add = [&](const std::string& name,
                       const std::function<void(const ImagePlanes&)>& run) {
    std::vector<float> copy = pixels;
    run(planes_of(copy, image));
    all[name] = copy;
  };
  const auto strength = [&](const std::string& name) {
    return golden().at("rand_augment_strengths").at(name)[column].get<double>();
  };
  add("Identity", [](const ImagePlanes&) {});
  add("AutoContrast", [](const ImagePlanes& p) { autocontrast(p); });
  add("Equalize", [](const ImagePlanes& p) { equalize(p); });
  add("Posterize", [&](const ImagePlanes& p) { posterize(p, int(strength("Posterize"))); });
  add("Solarize", [&](const ImagePlanes& p) { solarize(p, float(strength("Solarize"))); });
  for (const int sign : {-1, 1}) {
    const std::string end = sign < 0 ? "-" : "+";
    const auto factor = [=](const std::string& name) {
      return static_cast<float>(1 + sign * strength(name));
    };
    add("ShearX" + end, [&](const ImagePlanes& p) { shear(p, sign * strength("ShearX"), 0); });
    add("ShearY" + end, [&](const ImagePlanes& p) { shear(p, 0, sign * strength("ShearY")); });
    add("TranslateX" + end,
        [&](const ImagePlanes& p) { translate(p, int(sign * strength("TranslateX")), 0); });
    add("TranslateY" + end,
        [&](const ImagePlanes& p) { translate(p, 0, int(sign * strength("TranslateY"))); });
    add("Rotate" + end, [&](const ImagePlanes& p) { rotate(p, sign * strength("Rotate")); });
    add("Brightness" + end,
        [&](const ImagePlanes& p) { adjust_brightness(p, factor("Brightness")); });
    add("Color" + end, [&](const ImagePlanes& p) { adjust_saturation(p, factor("Color")); });
    add("Contrast" + end, [&](const ImagePlanes& p) { adjust_contrast(p, factor("Contrast")); });
    add("Sharpness" + end, [&](const ImagePlanes& p) { adjust_sharpness(p, factor("Sharpness")); });
  }
  return all;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double(a[i]) - b[i]));
  return largest;
}

TEST(GoldenAugment, RandAugment_DrawsEachOfTorchvisionsOperations) {
  const ImageShape image{3, 160, 224};
  std::vector<float> pixels = image_of("augment", image.count());
  // Not the whole range, for autocontrast, and smooth.
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = 0.2f + 0.5f * static_cast<float>(i % 997) / 996 + 0.05f * pixels[i];
  }
  for (const auto& [magnitude, column] : std::map<int, size_t>{{9, 1}, {14, 2}, {30, 5}}) {
    const std::string json =
        R"({"rand_augment": {"operations": 1, "magnitude": )" + std::to_string(magnitude) + "}}";
    const AugmentChain chain(ConfigTree::from_json(json, "job.json").validate(augment_schema(true)),
                             true, image, {0}, {1});
    EXPECT_TRUE(chain.depends_on_place());
    const auto known = candidates(pixels, image, column);
    std::set<std::string> seen;
    for (uint64_t key = 0; key < 400 && seen.size() < known.size(); ++key) {
      std::vector<float> got = pixels;
      chain.colour(got.data(), mix(key));
      const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) {
        return difference(got, one.second) < 1e-6;
      });
      ASSERT_NE(found, known.end()) << "magnitude " << magnitude << ", key " << key;
      seen.insert(found->first);
    }
    // At magnitude 30, brightness and the like by -0.9 and +0.9 differ; nothing is left out.
    EXPECT_EQ(seen.size(), known.size()) << "magnitude " << magnitude;
  }
}

}  // namespace
}  // namespace fleet::data
