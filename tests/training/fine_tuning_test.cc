// The job and the commands of docs/how-to/fine_tuning.md, as they stand there.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "data/encode_image.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

std::string page() { return read_file(source_folder() + "/docs/how-to/fine_tuning.md"); }

// The first block of the page that begins with the line "```KIND".
std::string block(const std::string& kind) {
  const std::string text = page(), begin = "\n```" + kind + "\n";
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const size_t start = from + begin.size();
  return text.substr(start, text.find("\n```", start) + 1 - start);
}

// The arguments of fleet-worker in each command of the page; one rank needs no fleetrun.
std::vector<std::vector<std::string>> commands() {
  std::vector<std::vector<std::string>> all;
  std::istringstream lines(page().substr(page().find("\n```\nfleetrun") + 5));
  for (std::string line; std::getline(lines, line) && line != "```";) {
    std::istringstream words(line);
    std::vector<std::string> command;
    for (std::string word; words >> word;) command.push_back(word);
    command.erase(command.begin());
    std::erase(command, "--nproc_per_node=1");
    all.push_back(command);
  }
  return all;
}

class FineTuning : public ::testing::Test {
 protected:
  // As cameras make them: of different sizes, some upright.
  void write_photographs() {
    int number = 0;
    for (const std::string split : {"train", "test"}) {
      for (const std::string name : {"cat", "dog"}) {
        for (const auto& [height, width] : {std::pair(240, 320), std::pair(300, 260)}) {
          std::vector<uint8_t> pixels;
          for (int i = 0; i < height * width; ++i) {
            const bool cat = name == "cat";
            const auto grey = static_cast<uint8_t>(i / width % 64);
            pixels.insert(pixels.end(), {static_cast<uint8_t>(cat ? 200 : 40), grey,
                                         static_cast<uint8_t>(cat ? 40 : 200)});
          }
          const std::string path = "photos/" + split + "/" + name;
          fs::create_directories(job_.path(path));
          write_file_atomically(job_.path(path + "/" + std::to_string(number++) + ".jpg"),
                                data::encode_jpeg(pixels, height, width, 3, 90));
        }
      }
    }
  }
  // Weights for 1000 classes under the name of torchvision's.
  void write_weights() {
    write_file_atomically(job_.path("other.json"), R"({"model": {"name": "resnet18"},
      "data": {"source": "synthetic", "batch_size": 2, "train": {"samples": 2},
               "image": {"channels": 3, "height": 32, "width": 32}},
      "learning_rate": {"base": 0.001},
      "train": {"output": "other", "evaluate_every": 0}})");
    ASSERT_EQ(job_.run_worker({"other.json"}, &error_), 0) << error_;
    TensorFile file = job_.weights("other");
    file.metadata = {{"format", "pt"}};  // nothing says that fleetrun has trained them
    write_safetensors(job_.path("resnet18-f37072fd.pth"), file);
  }
  // Smaller than a user's: four images, one epoch.
  int run(std::vector<std::string> command, const std::vector<std::string>& overrides = {}) {
    std::vector<std::string> all{"data.batch_size=4", "train.epochs=1"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    for (const std::string& one : all) {
      command.emplace_back("--set");
      command.push_back(one);
    }
    return job_.run_worker(command, &error_);
  }

  TrainingJob job_;
  std::string error_;
};

TEST_F(FineTuning, PageHasAWholeJob) {
  write_photographs();
  write_weights();
  write_file_atomically(job_.path("finetune.json"), block("json"));
  const auto all = commands();
  ASSERT_EQ(all.size(), 4u);
  for (const auto& command : all) {
    ASSERT_EQ(run(command), 0) << error_;
    EXPECT_EQ(error_.find("data.mean"), std::string::npos) << error_;
    EXPECT_EQ(error_.find("damaged"), std::string::npos) << error_;
  }
  for (const char* file : {"output/finetune/latest/metrics.jsonl", "predictions.jsonl", "net.onnx",
                           "output/finetune/latest/evaluations.jsonl"}) {
    EXPECT_TRUE(fs::exists(job_.path(file))) << file;
  }
  const std::string predictions = read_file(job_.path("predictions.jsonl"));
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 4);
  EXPECT_EQ(predictions.find("error"), std::string::npos) << predictions;

  // The same job with a part of it taken away.
  EXPECT_EQ(run({"finetune.json"}, {"data.augment=null", "data.eval=null"}), 2);
  EXPECT_NE(error_.find("data.eval.resize=256"), std::string::npos) << error_;
  EXPECT_EQ(error_.find("damaged"), std::string::npos) << error_;
  EXPECT_EQ(run({"finetune.json"}, {"data.mean=[123.675,116.28,103.53]"}), 2);
  EXPECT_NE(error_.find("data.mean=[0.485, 0.456, 0.406]"), std::string::npos) << error_;
  fs::remove_all(job_.path("photos/test"));
  EXPECT_EQ(run({"finetune.json"}, {"data.mean=null", "data.std=null"}), 0) << error_;
  EXPECT_NE(error_.find("data.std = [0.229, 0.224, 0.225]"), std::string::npos) << error_;
  EXPECT_NE(error_.find("data.validation_split"), std::string::npos) << error_;
}

TEST_F(FineTuning, WrongWeightsAndDryRunsOfTheCommand_LeaveNoJobFile) {
  write_photographs();
  write_weights();
  Fleetrun wrong(job_.folder(), "wrong", {"finetune", "photos", "--weights", "other.json"});
  EXPECT_EQ(wrong.wait(), 2) << wrong.output();
  EXPECT_FALSE(fs::exists(job_.path("photos.json")));
  Fleetrun fleetrun(job_.folder(), "dry_run",
                    {"finetune", "--log_dir", "logs", "photos/", "--weights",
                     "resnet18-f37072fd.pth", "--dry_run"});
  EXPECT_EQ(fleetrun.wait(), 0) << fleetrun.output();
  EXPECT_THAT(fleetrun.output(), ::testing::HasSubstr("photos.json"));
  EXPECT_FALSE(fs::exists(job_.path("photos.json")));
}

// Network, sizes, classes and the head's name come from the folders; the run's checkpoint carries
// the record, and a job that starts from it needs nothing else either.
TEST_F(FineTuning, FolderOfWeights_NeedsNothingElse) {
  write_photographs();
  write_weights();
  fs::create_directories(job_.path("resnet18.a1_in1k"));
  fs::rename(job_.path("resnet18-f37072fd.pth"), job_.path("resnet18.a1_in1k/model.safetensors"));
  write_file_atomically(job_.path("resnet18.a1_in1k/config.json"),
                        R"({"architecture": "resnet18", "num_classes": 1000,
    "pretrained_cfg": {"input_size": [3, 64, 64], "interpolation": "bicubic", "crop_pct": 0.875,
                       "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "classifier": "fc"}})");
  write_file_atomically(job_.path("photos.json"),
                        R"({"checkpoint": {"weights": "resnet18.a1_in1k/"},
    "data": {"source": "image_folder", "root": "photos"}})");
  ASSERT_EQ(run({"photos.json"}), 0) << error_;
  for (const char* line : {"model.name = resnet18", "data.mean = ", "model.num_classes = 2",
                           "data.eval.crop_pct = 0.875", "'fc'"}) {
    EXPECT_THAT(error_, ::testing::HasSubstr(line));
  }
  const TensorFile saved = job_.weights("output/photos/latest");
  EXPECT_THAT(saved.metadata.at("pretrained_cfg"), ::testing::HasSubstr("\"resnet18\""));
  const std::string checkpoint =
      fs::canonical(job_.path("output/photos/latest/checkpoints")).string();
  std::string step;
  for (const auto& entry : fs::directory_iterator(checkpoint)) step = entry.path().string();
  write_file_atomically(job_.path("again.json"), R"({"checkpoint": {"weights": ")" + step +
                                                     R"("},
    "data": {"source": "image_folder", "root": "photos"}})");
  ASSERT_EQ(run({"again.json"}), 0) << error_;
  EXPECT_THAT(error_, ::testing::HasSubstr("data.mean = [0.5, 0.5, 0.5]"));
}

}  // namespace
}  // namespace fleet
