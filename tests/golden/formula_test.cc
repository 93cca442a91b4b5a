#include <gmock/gmock.h>

#include <cstring>

#include "base/file.h"
#include "tests/golden/golden.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

TEST(GoldenFormula, LenetsWeights_AreBitForBitWhatPythonWrote) {
  const std::string file = read_file(source_folder() + "/tests/golden/lenet.safetensors");
  uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), 8);
  const auto header = nlohmann::json::parse(file.substr(8, header_size));
  EXPECT_EQ(header.size(), 10u);
  for (const auto& [name, entry] : header.items()) {
    const std::vector<int64_t> dims = entry.at("shape");
    const std::vector<float> ours = golden::tensor(name, Shape(dims));
    const std::vector<size_t> range = entry.at("data_offsets");
    ASSERT_EQ(range[1] - range[0], ours.size() * 4) << name;
    EXPECT_EQ(std::memcmp(file.data() + 8 + header_size + range[0], ours.data(), ours.size() * 4),
              0)
        << name;
  }
}

TEST(GoldenFiles, EachModel_HasGradientsAndFiniteLosses) {
  const std::map<std::string, size_t> parameters = {{"lenet", 10},
                                                    {"resnet18", 62},
                                                    {"mobilenet_v1", 83},
                                                    {"vgg11_bn", 38},
                                                    {"mobilenet_v2", 158},
                                                    {"densenet121", 364},
                                                    {"googlenet", 173},
                                                    {"mobilenet_v3_small", 142},
                                                    {"mobilenet_v3_large", 174},
                                                    {"efficientnet_b0", 213}};
  for (const auto& [model, count] : parameters) {
    const golden::Golden golden = golden::load(model);
    EXPECT_EQ(golden.gradients.size(), count) << model;
    EXPECT_TRUE(std::isfinite(golden.loss)) << model;
    EXPECT_EQ(static_cast<int64_t>(golden.logits.size()), golden.input[0] * golden.classes);
  }
}

}  // namespace
}  // namespace fleet
