// The job files of config/, all there are, with parameter servers: each trains in a small size
// through the real fleetrun, and servers divide its full size.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "data/encode_image.h"
#include "data/random.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Overrides = std::vector<std::string>;

struct ServedConfig {
  Overrides data;   // data that are there
  Overrides sizes;  // small ones
};

Overrides images(int channels, int size) {
  const std::string side = std::to_string(size);
  return {"data.source=synthetic",
          R"(data.image={"channels": )" + std::to_string(channels) + R"(, "height": )" + side +
              R"(, "width": )" + side + "}",
          "data.train.samples=64", "data.test.samples=8"};
}

Overrides clicks() {
  return {"data.source=synthetic_clicks",
          "data.slot_count=26",
          "data.slot_ids=20",
          "data.dense=13",
          "data.train.samples=64",
          "data.test.samples=16",
          "data.ids=1000",
          "data.validation_split=null"};
}

const Overrides kSmallEncoder = {"model.hidden_size=16", "model.num_hidden_layers=1",
                                 "model.num_attention_heads=2", "model.intermediate_size=32",
                                 "data.batch_size=2"};

Overrides joined(Overrides some, const Overrides& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

const std::map<std::string, ServedConfig>& configs() {
  static const Overrides kFolder = {"data.root=."};
  static const Overrides kWords = {"data.tokenizer=vocab.txt"};
  static const Overrides kMasked = joined(kWords, {"data.token_cache=cache"});
  static const Overrides kSmallBert =
      joined(kSmallEncoder, {"model.vocab_size=64", "data.sequence_length=32"});
  static const Overrides kTwo = {"data.batch_size=2"};
  static const Overrides kPairs = {"data.token_cache=cache", "data.min_count=1"};
  static const Overrides kFewIds = {"model.ids=1000", "data.batch_size=8"};
  static const std::map<std::string, ServedConfig> all = {
      {"bert_base", {kMasked, kSmallBert}},
      {"bert_large", {kMasked, kSmallBert}},
      {"cifar10_resnet20", {images(3, 32), kTwo}},
      {"deepfm",
       {{"data.slot_ids=20", "data.train.samples=64", "data.test.samples=16"},
        {"model.ids=1000", "data.ids=1000", "data.global_batch_size=16"}}},
      {"deepfm_criteo", {clicks(), kFewIds}},
      {"deepfm_servers",
       {{"data.slot_ids=20", "data.train.samples=64", "data.test.samples=16"},
        {"data.global_batch_size=16"}}},
      {"fashion_mnist", {images(1, 28), kTwo}},
      {"foldoc_classifier", {joined(kFolder, kWords), kTwo}},
      {"foldoc_llama", {kFolder, {"data.batch_size=2", "data.sequence_length=32"}}},
      {"gpt2_124m",
       {{},
        {"data.batch_size=2", "data.sequence_length=32", "model.n_embd=16", "model.n_layer=1",
         "model.n_head=2"}}},
      {"llama_135m",
       {{}, joined(kSmallEncoder, {"model.num_key_value_heads=1", "data.sequence_length=32"})}},
      {"resnet50_imagenet", {images(3, 32), joined(kTwo, {"checkpoint.at_end=false"})}},
      {"segmentation",
       {{"data.root=pixels", "model.num_classes=3"},
        {"data.batch_size=2", "data.image.height=64", "data.image.width=64",
         "data.augment.random_resize=[48, 96]"}}},
      {"wide_deep", {clicks(), kFewIds}},
      {"word2vec", {kPairs, {"model.ids=128", "data.global_batch_size=16"}}},
      {"word2vec_servers", {kPairs, {"data.global_batch_size=16"}}},
  };
  return all;
}

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const auto& [name, config] : configs()) names.push_back(name);
  return names;
}

std::string config_file(const std::string& name) {
  return fs::path(source_folder()) / "config" / (name + ".json");
}

void write_masks(const TrainingJob& job) {
  for (const std::string split : {"train", "val"}) {
    for (const char* folder : {"images", "masks"}) {
      fs::create_directories(job.path("pixels/" + split + "/" + folder));
    }
    for (int i = 0; i < 8; ++i) {
      std::vector<uint8_t> image, mask;
      for (int at = 0; at < 64 * 64; ++at) {
        mask.push_back(at / 64 < 4 * i ? 2 : 1);
        image.insert(image.end(), 3, static_cast<uint8_t>(100 * mask.back()));
      }
      const std::string name = std::to_string(i) + ".png";
      write_file_atomically(job.path("pixels/" + split + "/images/" + name),
                            data::encode_png(image, 64, 64, 3));
      write_file_atomically(job.path("pixels/" + split + "/masks/" + name),
                            data::encode_index_png(mask, 64, 64));
    }
  }
}

// What the jobs read: words, tokens, rows with a class, masks.
void write_data(const TrainingJob& job) {
  uint64_t draws = 0;
  const auto word = [&] { return "w" + std::to_string(data::mix(++draws) % 40); };
  const auto sentence = [&] {
    std::string text;
    for (int i = 0; i < 12; ++i) text += word() + (i == 11 ? ".\n" : " ");
    return text;
  };
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 0; i < 40; ++i) vocabulary += "w" + std::to_string(i) + "\n";
  write_file_atomically(job.path("vocab.txt"), vocabulary);
  std::string documents, table = "text\tlabel\n";
  for (int i = 0; i < 32; ++i) {
    documents +=
        R"({"text": ")" + word() + " " + word() + ". " + word() + " " + word() + "." + "\"}\n";
    table += word() + " " + word() + "\t" + std::to_string(i % 8) + "\n";
  }
  write_file_atomically(job.path("documents.jsonl"), documents);
  for (const char* name : {"classes_train.tsv", "classes_test.tsv"}) {
    write_file_atomically(job.path(name), table);
  }
  std::string text, tokens;
  for (int i = 0; i < 40; ++i) text += sentence();
  write_file_atomically(job.path("text8"), text);
  for (int i = 0; i < 4096; ++i) {
    tokens += static_cast<char>(data::mix(++draws) % 100);
    tokens += '\0';
  }
  for (const char* name : {"train.bin", "val.bin"}) write_file_atomically(job.path(name), tokens);
  write_masks(job);
}

class ConfigJob : public ::testing::TestWithParam<std::string> {
 protected:
  ConfigJob() { write_data(job_); }
  Overrides overrides(bool small) const {
    const ServedConfig& config = configs().at(GetParam());
    Overrides all = config.data;
    if (GetParam().starts_with("bert_")) {
      all.insert(all.end(), {"data.train.file=documents.jsonl", "data.test.file=documents.jsonl"});
    }
    return small ? joined(all, config.sizes) : all;
  }
  TrainingJob job_;
};

TEST_P(ConfigJob, ParameterServers_TrainIt) {
  Overrides all = joined(overrides(true), {"train.max_steps=2", "train.output=out"});
  const auto fleetrun =
      job_.start("served", {"--server_num=2", "--worker_num=2"}, all, config_file(GetParam()));
  EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  EXPECT_THAT(fleetrun->output(), HasSubstr("mode sync"));
  EXPECT_THAT(job_.folder().read("log.served/serverlog.1"), HasSubstr("2 trainers ended"));
  EXPECT_THAT(job_.folder().survivors(30), IsEmpty());
}

TEST_P(ConfigJob, FullSize_IsDividedAmongServers) {
  Overrides arguments = {config_file(GetParam()), "--explain", "--ranks=4", "--servers=2"};
  for (const std::string& text : overrides(false)) {
    arguments.insert(arguments.end(), {"--set", text});
  }
  std::string error;
  // The data are too small for the sizes, but the model does not depend on them.
  EXPECT_EQ(job_.run_worker(arguments, &error), 0) << error;
  EXPECT_THAT(job_.folder().read("worker.out"),
              AllOf(HasSubstr("server 0 holds"), HasSubstr("server 1 holds")));
}

INSTANTIATE_TEST_SUITE_P(Config, ConfigJob, ::testing::ValuesIn(config_names()),
                         [](const auto& info) { return info.param; });

TEST(ConfigJobs, EachFile_IsTestedHere) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / "config")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, config_names());
}

}  // namespace
}  // namespace fleet
