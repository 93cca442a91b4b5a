// Predictions of a trained job against PyTorch's probabilities with the same weights.
#include "train/predict.h"

#include <png.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <map>
#include <numeric>

#include "base/file.h"
#include "models/model.h"
#include "tests/engine/train/trainer_job.h"
#include "tests/errors.h"
#include "tests/test_paths.h"
#include "train/model_card.h"
#include "train/predicted_values.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
// Of the weights in tests/golden/lenet.safetensors, computed by PyTorch in float64.
struct Expected {
  std::vector<int> classes;
  std::vector<double> probabilities;
};
const std::vector<Expected> kExpected = {
    {{1, 0, 9}, {0.769547867, 0.109091712, 0.0808145157}},
    {{1, 8, 9}, {0.943780792, 0.0213768011, 0.0113048357}},
    {{1, 9, 7}, {0.992692935, 0.00302961704, 0.00291109079}},
    {{1, 9, 0}, {0.957239712, 0.037240526, 0.00381416378}},
    {{1, 9, 0}, {0.688030215, 0.291382489, 0.00605097784}},
};

void write_image(const std::string& path, int number) {
  std::vector<uint8_t> pixels(28 * 28);
  for (int y = 0; y < 28; ++y) {
    for (int x = 0; x < 28; ++x) {
      const int value = x * (3 + number) + y * (5 + 2 * number) + (x * y) / (number + 1);
      pixels[y * 28 + x] = static_cast<uint8_t>(value + 40 * number);
    }
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = 28;
  image.format = PNG_FORMAT_GRAY;
  ASSERT_TRUE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 28, nullptr));
}

// The means of the channels are the logits.
FLEET_MODEL(test_without_head) {
  def.help = "a test";
  def.schema = model_schema(3);
  def.build = image_classifier([](Network& network, VarId image, const Settings&) {
    return network.flatten(network.global_pool(image));
  });
}

class Predict : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    fs::create_directories(output_ + "/photos/more");
    for (int i = 0; i < 5; ++i) write_image(photo(i), i);
  }
  // In the order of the folder.
  std::string photo(int i) const {
    return output_ + (i < 3 ? "/photos/p" : "/photos/more/p") + std::to_string(i) + ".png";
  }
  std::string lines_path() const { return output_ + "/lines.jsonl"; }

  Job lenet(const std::vector<std::string>& input,
            const std::vector<std::string>& more = {}) const {
    return lenet_job(input, with({"predict.top_k=3"}, more));
  }
  Job embedding_lenet(const std::vector<std::string>& more) const {
    return lenet_job({output_ + "/photos"}, more);
  }
  Job lenet_job(const std::vector<std::string>& input, const std::vector<std::string>& more) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "model": {"name": "lenet"}, "data": {"batch_size": 2, "image": {"channels": 1, "height": 28,
      "width": 28}, "mean": [0.5], "std": [0.25]}})",
                                            "test");
    apply_overrides(
        tree, with({"predict.input=" + nlohmann::json(input).dump(),
                    "predict.checkpoint=" + source_folder() + "/tests/golden/lenet.safetensors",
                    "predict.output=" + lines_path()},
                   more));
    return make_job(tree);
  }

  PredictResult predict_on(int world, const Job& job) {
    std::vector<PredictResult> results(world);
    run_ranks_well(world, [&](RankThread& rank) {
      HostDevice device;
      results[rank.rank] = predict(
          job, device,
          {.rank = rank.rank, .world = world, .control = rank.communicator, .store = rank.store});
    });
    return results[0];
  }

  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::ifstream file(lines_path());
    for (std::string line; std::getline(file, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  Error refusal(const Job& job) {
    HostDevice device;
    return thrown_by([&] { predict(job, device, {}); });
  }
};

TEST_F(Predict, Folder_GivesPyTorchsProbabilitiesOnAnyNumberOfRanks) {
  std::string first;
  for (const int world : {1, 2, 3}) {
    const PredictResult result = predict_on(world, lenet({output_ + "/photos"}));
    EXPECT_EQ(result.samples, 5);
    EXPECT_EQ(result.failed, 0);
    const auto all = lines();
    ASSERT_EQ(all.size(), 5u);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]["file"], photo(static_cast<int>(i)));
      EXPECT_EQ(all[i]["class"], kExpected[i].classes[0]);
      EXPECT_NEAR(all[i]["probability"], kExpected[i].probabilities[0], 2e-6);
      ASSERT_EQ(all[i]["top"].size(), 3u);
      for (size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(all[i]["top"][k]["class"], kExpected[i].classes[k]);
        EXPECT_NEAR(all[i]["top"][k]["probability"], kExpected[i].probabilities[k], 2e-6);
      }
      EXPECT_FALSE(all[i].contains("class_name"));
    }
    const std::string text = read_file(lines_path());
    if (world == 1) first = text;
    EXPECT_EQ(text, first) << world << " ranks";
  }
}

// One image must not be computed as a whole batch; a batch of a million would not fit in memory.
TEST_F(Predict, FewImages_MakeASmallBatch) {
  for (const int world : {1, 2}) {
    const PredictResult result =
        predict_on(world, lenet({photo(0), photo(1)}, {"data.batch_size=1000000"}));
    EXPECT_EQ(result.samples, 2);
    ASSERT_EQ(lines().size(), 2u);
    EXPECT_NEAR(lines()[1]["probability"], kExpected[1].probabilities[0], 2e-6);
  }
}

TEST_F(Predict, ListsAndFiles_KeepTheirOrder) {
  const std::string list = output_ + "/photos/some.txt";
  write_file_atomically(list, "more/p4.png 7\n\np1.png\n" + photo(0) + " 0\n");
  predict_on(1, lenet({photo(2), list, photo(3)}));
  std::vector<std::string> files;
  for (const nlohmann::json& line : lines()) files.push_back(line["file"]);
  EXPECT_THAT(files, ElementsAre(photo(2), photo(4), photo(1), photo(0), photo(3)));
}

TEST_F(Predict, BadImage_IsALineOfItsOwn) {
  write_file_atomically(output_ + "/photos/p1b.png", "no image");
  const std::string gone = output_ + "/gone.jpg", cut = output_ + "/photos/more/p3b.png";
  write_file_atomically(cut, read_file(photo(3)).substr(0, 60));
  for (const int world : {1, 2}) {
    const PredictResult result = predict_on(world, lenet({output_ + "/photos", gone}));
    EXPECT_EQ(result.samples, 8);
    EXPECT_EQ(result.failed, 3);
    const auto all = lines();
    ASSERT_EQ(all.size(), 8u);
    EXPECT_EQ(all[2]["file"], output_ + "/photos/p1b.png");
    EXPECT_THAT(all[2]["error"].get<std::string>(), HasSubstr("not a JPEG, PNG, WebP"));
    EXPECT_EQ(all[5]["file"], cut);
    EXPECT_TRUE(all[5].contains("error"));
    EXPECT_FALSE(all[5].contains("class"));
    EXPECT_TRUE(all[7].contains("error"));
    EXPECT_NEAR(all[6]["probability"], kExpected[4].probabilities[0], 2e-6);
  }
}

// The last layer of the network, applied to them, gives PyTorch's probabilities.
TEST_F(Predict, Features_AreTheInputOfTheLastLayer) {
  const std::vector<std::string> features = {"predict.embedding=features"};
  TensorFile weights = read_safetensors(source_folder() + "/tests/golden/lenet.safetensors");
  const auto values_of = [&](const std::string& name) {
    const std::string bytes(weights.tensors.at(name).data.data(),
                            weights.tensors.at(name).data.size());
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  const std::vector<float> matrix = values_of("fc3.weight"), bias = values_of("fc3.bias");
  std::string first;
  for (const int world : {1, 2}) {
    predict_on(world, embedding_lenet(features));
    const auto all = lines();
    ASSERT_EQ(all.size(), 5u);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto embedding = all[i].at("embedding").get<std::vector<double>>();
      ASSERT_EQ(embedding.size(), 84u);
      std::vector<double> shares;
      double sum = 0;
      for (size_t c = 0; c < 10; ++c) {
        double logit = bias[c];
        for (size_t f = 0; f < 84; ++f) logit += embedding[f] * matrix[c * 84 + f];
        sum += shares.emplace_back(std::exp(logit));
      }
      EXPECT_NEAR(shares[kExpected[i].classes[0]] / sum, kExpected[i].probabilities[0], 2e-6);
    }
    const std::string text = read_file(lines_path());
    if (world == 1) first = text;
    EXPECT_EQ(text, first);
  }
  // Under a prefix; without the head, too, and scaled to length 1.
  TensorFile prefixed;
  for (const auto& [name, tensor] : weights.tensors) prefixed.tensors["module." + name] = tensor;
  const std::string wrapped = output_ + "/wrapped.safetensors";
  write_safetensors(wrapped, prefixed);
  predict_on(1, embedding_lenet(with(features, {"predict.checkpoint=" + wrapped})));
  EXPECT_EQ(read_file(lines_path()), first);
  weights.tensors.erase("fc3.weight");
  weights.tensors.erase("fc3.bias");
  const std::string path = output_ + "/headless.safetensors";
  write_safetensors(path, weights);
  const auto before = lines();
  predict_on(
      1, embedding_lenet(with(features, {"predict.checkpoint=" + path, "predict.normalize=true"})));
  const auto own = before[3].at("embedding").get<std::vector<double>>(),
             scaled = lines()[3].at("embedding").get<std::vector<double>>();
  const double length = std::sqrt(std::inner_product(own.begin(), own.end(), own.begin(), 0.0));
  for (size_t f = 0; f < own.size(); ++f) EXPECT_NEAR(scaled[f], own[f] / length, 1e-6);
}

// The vector in front of the head, for models of all kinds.
TEST_F(Predict, Features_HaveTheSizeOfTheModel) {
  const std::map<std::string, int64_t> sizes = {
      {"resnet18", 512},      {"vit_b_32", 768},      {"convnext_tiny", 768},
      {"vgg11", 4096},        {"densenet121", 1024},  {"efficientnet_b0", 1280},
      {"mobilenet_v1", 1024}, {"mobilenet_v2", 1280}, {"mobilenet_v3_small", 1024},
      {"googlenet", 1024}};
  for (const auto& [model, size] : sizes) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"model": {"name": ")" + model + R"("}, "predict": {"embedding": "features"}})", "test");
    const PredictionLayout layout = prediction_layout(make_job(tree));
    EXPECT_EQ(layout.kind, PredictionLayout::Kind::kEmbedding);
    EXPECT_EQ(layout.numbers, size) << model;
  }
  ConfigTree tree = ConfigTree::from_json(
      R"({"model": {"name": "test_without_head"}, "predict": {"embedding": "features"}})", "test");
  EXPECT_THAT(thrown_by([&] { prediction_layout(make_job(tree)); }),
              IsUsageError("predict.embedding"));
}

TEST_F(Predict, Csv_HasTheSameValuesAndQuotesWhatItMust) {
  write_image(output_ + "/photos/a, \"b\".png", 1);
  write_file_atomically(output_ + "/photos/c.png", "no image");
  const std::string csv = output_ + "/lines.csv";
  predict_on(2, lenet({output_ + "/photos"}, {"predict.output=" + csv, "predict.top_k=2",
                                              "data.class_names=[\"zero\", \"o,ne\", \"2\", "
                                              "\"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\"]"}));
  std::vector<std::string> lines;
  std::ifstream file(csv);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0], "file,class,class_name,probability,error,class_2,class_name_2,probability_2");
  EXPECT_THAT(lines[1], StartsWith("\"" + output_ + "/photos/a, \"\"b\"\".png\",1,"));
  EXPECT_THAT(lines[2], StartsWith(output_ + "/photos/c.png,,,,"));
  EXPECT_THAT(lines[2], ::testing::EndsWith(",,,"));
  double probability = 0;
  EXPECT_EQ(
      std::sscanf(lines[3].c_str() + photo(0).size(), ",1,\"o,ne\",%lf,,0,zero,", &probability), 1);
  EXPECT_NEAR(probability, kExpected[0].probabilities[0], 1e-6);
}

TEST_F(Predict, NewestCheckpoint_TellsNamesAndSizeOfImages) {
  run(job({"data.class_names=['cat','dog','eel','fox']"}), 1);
  std::vector<uint8_t> grey(64, 77);
  Job predicting =
      job({"predict.input=" + photo(0), "predict.output=" + lines_path(), "data.image.height=0",
           "data.image.width=0", "data.image.channels=0", "data.eval.resize=8"});
  predict_on(2, predicting);
  const nlohmann::json line = lines().at(0);
  const std::vector<std::string> names = {"cat", "dog", "eel", "fox"};
  EXPECT_EQ(line["class_name"], names[line["class"].get<size_t>()]);
  ASSERT_EQ(line["top"].size(), 4u);  // there are no more classes
  double sum = 0;
  for (const nlohmann::json& one : line["top"]) sum += one["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST_F(Predict, DamagedCheckpoint_IsPassedOver) {
  run(job({"checkpoint.every_steps=4"}), 1);
  const std::string newest = *latest_checkpoint(output_ + "/checkpoints");
  fs::resize_file(newest + "/model.safetensors", 500);
  const Job predicting =
      job({"predict.input=" + photo(0), "predict.output=" + lines_path(), "data.eval.resize=8"});
  predict_on(1, predicting);
  EXPECT_EQ(lines().size(), 1u);
  fs::remove(newest + "/model.safetensors");
  fs::remove(lines_path());
  predict_on(1, predicting);
  EXPECT_EQ(lines().size(), 1u);
}

TEST_F(Predict, WhatCannotBe_IsRefused) {
  EXPECT_THAT(refusal(job({"predict.input=" + photo(0)})), IsUsageError());
  EXPECT_THAT(refusal(lenet({photo(0)}, {"model.num_classes=7"})), IsUsageError());
  EXPECT_THAT(refusal(lenet({output_ + "/gone", output_ + "/gone too"})),
              IsUsageError(output_ + "/gone"));
  fs::create_directories(output_ + "/empty");
  EXPECT_THAT(refusal(lenet({output_ + "/empty"})), IsUsageError(output_ + "/empty"));
  const std::string table = output_ + "/test.csv";
  std::ofstream(table) << "file,label\n" << photo(0) << ",cat\n";
  EXPECT_THAT(refusal(lenet({photo(0), table})), IsUsageError(table));
  EXPECT_FALSE(fs::exists(lines_path()));
  EXPECT_THAT(refusal(lenet({photo(0)}, {"predict.checkpoint=" + output_})),
              IsUsageError("predict.checkpoint"));
}

TEST_F(Predict, OutputThatIsNoFile_StaysAsItIs) {
  const std::string pipe = output_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(lenet({photo(0)}, {"predict.output=" + pipe})), IsUsageError(pipe));
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(Predict, OutputThatIsAnInput_StaysAsItIs) {
  const auto size = fs::file_size(photo(0));
  const std::string same = output_ + "/photos/../photos/p0.png";
  EXPECT_THAT(refusal(lenet({photo(1), photo(0)}, {"predict.output=" + same})),
              IsUsageError("predict.output"));
  EXPECT_EQ(fs::file_size(photo(0)), size);
}

TEST_F(Predict, RanksWithOtherImages_AreRefused) {
  const auto ends = run_ranks(2, [&](RankThread& rank) {
    HostDevice device;
    predict(lenet({photo(rank.rank)}), device,
            {.rank = rank.rank, .world = 2, .control = rank.communicator, .store = rank.store});
  });
  EXPECT_THAT(ends[0].message + ends[1].message, HasSubstr("predict.input's paths"));
}

TEST_F(Predict, AskedToStop_WritesNothing) {
  const std::atomic<int> stop = SIGTERM;
  HostDevice device;
  const Job asked = lenet({output_ + "/photos"});
  EXPECT_EQ(predict(asked, device, {.stop = &stop}).stopped_by, SIGTERM);
  EXPECT_FALSE(fs::exists(lines_path()));
}

}  // namespace
}  // namespace fleet
