// Samples a second with batches by length (data.lengths) against rows padded to 128 tokens, in
// turns, on texts as long as GLUE's sentences: log-normal, 30 tokens in the mean, at most 128. A
// GPT-2 and a BERT of MiniLM-L6's size (6 layers, 384 features, a vocabulary of 30,522) with
// initial weights, AdamW, batches of 32; training steps with the reading of their batches, and
// evaluations. BERT classifies, and predicts, too: --predict has rows of a few lengths in any case,
// so that texts of 128 tokens stand for padding. Processor seconds, so that other programs on the
// machine do not count: run it with OMP_NUM_THREADS=1.
//
//   bench_lengths [--rounds N] [--batches N]
// Links: train backend_cpu
// Libraries: OpenMP::OpenMP_CXX
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "tensor/host.h"
#include "tests/bench/times.h"
#include "text/token_file.h"
#include "train/predict.h"
#include "train/step_runner.h"
#include "train/trainer.h"

namespace fleet::bench {
namespace {

constexpr int kVocabulary = 30522, kLongest = 128, kTexts = 8192, kBatch = 32, kPredicted = 512;
constexpr double kMu = 3.28, kSigma = 0.5;  // exp(mu + sigma^2 / 2) = 30
constexpr char kLengths[] = "[16, 24, 32, 40, 48, 64, 96, 128]";

struct Options {
  int rounds = 3, batches = 12;  // batches of a measurement
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    int* value = !std::strcmp(argv[i], "--rounds")    ? &options.rounds
                 : !std::strcmp(argv[i], "--batches") ? &options.batches
                                                      : nullptr;
    if (!value || i + 1 == argc) {
      throw Error(ErrorCode::kUsage, "unknown option", argv[i],
                  "there are --rounds N and --batches N");
    }
    *value = std::max(1, std::atoi(argv[++i]));
  }
  return options;
}

// The tokens of each text.
std::vector<int> draw_lengths() {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> length(kMu, kSigma);
  std::vector<int> lengths(kTexts);
  for (int& one : lengths) {
    one = std::clamp(static_cast<int>(std::lround(length(random))), 4, kLongest);
  }
  return lengths;
}

// Random tokens for a GPT-2.
void write_tokens(const std::string& path, const std::vector<int>& lengths) {
  text::TokenWriter writer(path, text::TokenFormat::kNanoGpt, text::TokenWidth::kUint16);
  std::mt19937_64 random(2);
  std::uniform_int_distribution<uint32_t> token(1, kVocabulary - 1);
  for (const int tokens : lengths) {
    // One token more is only predicted.
    std::vector<uint32_t> text(static_cast<size_t>(tokens));
    for (uint32_t& one : text) one = token(random);
    text.push_back(0);
    writer.add(text);
  }
  writer.finish();
}

// A word for each token of the vocabulary but the special ones.
void write_vocabulary(const std::string& path) {
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 5; i < kVocabulary; ++i) words += "w" + std::to_string(i) + "\n";
  write_file_atomically(path, words);
}

// Texts of random words with a class, for a BERT: with [CLS] and [SEP] as long as these lengths.
void write_texts(const std::string& path, std::span<const int> lengths) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int> word(5, kVocabulary - 1);
  std::string rows = "text\tlabel\n";
  for (const int tokens : lengths) {
    for (int i = 2; i < tokens; ++i) rows += "w" + std::to_string(word(random)) + " ";
    rows += "\t" + std::to_string(tokens % 2) + "\n";
  }
  write_file_atomically(path, rows);
}

Job gpt2_job(const std::string& folder, const std::string& lengths) {
  const std::string file = folder + "/tokens.bin";
  return make_job(ConfigTree::from_json(
      R"({"task": "causal_lm",
      "model": {"name": "gpt2", "vocab_size": )" +
          std::to_string(kVocabulary) + R"(, "n_embd": 384, "n_layer": 6, "n_head": 12,
                "n_positions": 128},
      "data": {"source": "tokens", "packing": "none", "end_of_text": "0", "lengths": )" +
          lengths + R"(, "sequence_length": )" + std::to_string(kLongest) + R"(, "batch_size": )" +
          std::to_string(kBatch) + R"(, "train": {"file": ")" + file + R"("}, "test": {"file": ")" +
          file + R"("}},
      "optimizer": {"name": "adamw"}, "learning_rate": {"name": "constant", "base": 1e-4}})",
      "lengths"));
}

// input: texts to predict; "": none.
Job bert_job(const std::string& folder, const std::string& lengths, const std::string& input = "") {
  const std::string predict = input.empty()
                                  ? ""
                                  : R"(, "predict": {"input": [")" + folder + "/" + input +
                                        R"("], "output": ")" + folder + R"(/predictions.jsonl"})";
  return make_job(ConfigTree::from_json(
      R"({"task": "sequence_classification",
      "model": {"name": "bert", "vocab_size": )" +
          std::to_string(kVocabulary) + R"(, "hidden_size": 384, "num_hidden_layers": 6,
                "num_attention_heads": 12, "intermediate_size": 1536, "num_classes": 2,
                "max_position_embeddings": 128},
      "data": {"source": "labelled_text", "root": ")" +
          folder + R"(", "tokenizer": "vocab.txt", "lengths": )" + lengths +
          R"(, "sequence_length": )" + std::to_string(kLongest) + R"(, "batch_size": )" +
          std::to_string(kBatch) +
          R"(, "train": {"file": "texts.tsv"}, "test": {"file": "texts.tsv"}},
      "optimizer": {"name": "adamw"}, "learning_rate": {"name": "constant", "base": 1e-4},
      "train": {"max_steps": 1, "evaluate_every": 0, "output": ")" +
          folder + R"(/run"})" + predict + "}",
      "lengths"));
}

class Runner {
 public:
  explicit Runner(Job job) : job_(std::move(job)), data_(open_data(job_, device_, {}, nullptr)) {
    runner_ = std::make_unique<StepRunner>(job_, data_.get(), device_, StepRunnerOptions{});
    runner_->begin();
    data_->train().start_epoch(0);
    train(2);  // libraries initialize themselves
  }

  double train(int batches) {
    return seconds([&] {
      for (int i = 0; i < batches; ++i) runner_->train(*data_->train().next(), false, 1e-4);
    });
  }
  // Every `stride`-th batch, so that each length has its share.
  double evaluate(int batches) {
    double sum = 0;
    data::InputPipeline& test = *data_->test();
    test.start_epoch(0);
    const int64_t stride = std::max<int64_t>(1, test.batches() / batches);
    for (int64_t i = 0; const data::Batch* batch = test.next(); ++i) {
      if (i % stride == 0 && i / stride < batches) {
        sum += seconds([&] { runner_->evaluate(*batch); });
      }
    }
    return sum;
  }

 private:
  template <typename Body>
  double seconds(const Body& body) {
    const double begin = processor_seconds();
    body();
    runner_->executor().synchronize();
    return processor_seconds() - begin;
  }

  HostDevice device_;
  const Job job_;
  std::unique_ptr<JobData> data_;
  std::unique_ptr<StepRunner> runner_;
};

void report(const std::string& what, double samples, const std::vector<double>& by_length,
            const std::vector<double>& padded) {
  std::printf("%-16s by length %7.1f samples/s, padded %7.1f samples/s, ratio %.2f\n", what.c_str(),
              samples / median(by_length), samples / median(padded),
              median(padded) / median(by_length));
}

void compare(const std::string& model, const Options& options, const Job& own, const Job& fixed) {
  Runner by_length(own), padded(fixed);
  std::vector<double> training[2], evaluation[2];
  for (int round = 0; round < options.rounds; ++round) {
    training[0].push_back(by_length.train(options.batches));
    training[1].push_back(padded.train(options.batches));
    evaluation[0].push_back(by_length.evaluate(options.batches));
    evaluation[1].push_back(padded.evaluate(options.batches));
  }
  const double samples = kBatch * options.batches;
  report(model + " training", samples, training[0], training[1]);
  report(model + " evaluation", samples, evaluation[0], evaluation[1]);
}

// The whole command, with reading, tokens and lines.
double predict_seconds(const Job& job) {
  HostDevice device;
  const double begin = processor_seconds();
  predict(job, device, {});
  return processor_seconds() - begin;
}

void compare_predictions(const std::string& folder, const Options& options,
                         std::span<const int> lengths) {
  write_texts(folder + "/own.tsv", lengths.first(kPredicted));
  write_texts(folder + "/long.tsv", std::vector<int>(kPredicted, kLongest));
  HostDevice device;
  Trainer(bert_job(folder, "[]"), device, {}).run();  // its checkpoint is predicted with
  std::vector<double> own, padded;
  for (int round = 0; round < options.rounds; ++round) {
    own.push_back(predict_seconds(bert_job(folder, "[]", "own.tsv")));
    padded.push_back(predict_seconds(bert_job(folder, "[]", "long.tsv")));
  }
  report("bert prediction", kPredicted, own, padded);
}

void run(const Options& options) {
  const std::string folder = std::filesystem::temp_directory_path().string() + "/lengths_bench_" +
                             std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  spdlog::set_level(spdlog::level::err);
  const std::vector<int> lengths = draw_lengths();
  write_tokens(folder + "/tokens.bin", lengths);
  write_vocabulary(folder + "/vocab.txt");
  write_texts(folder + "/texts.tsv", lengths);
  const double mean = std::accumulate(lengths.begin(), lengths.end(), 0.0) / kTexts;
  std::printf("%d texts, %.1f tokens in the mean; lengths %s\n", kTexts, mean, kLengths);
  compare("gpt2", options, gpt2_job(folder, kLengths), gpt2_job(folder, "[]"));
  compare("bert", options, bert_job(folder, kLengths), bert_job(folder, "[]"));
  compare_predictions(folder, options, lengths);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fleet::bench

int main(int argc, char** argv) {
  try {
    fleet::bench::run(fleet::bench::parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_lengths: %s\n", error.what());
    return 1;
  }
}
