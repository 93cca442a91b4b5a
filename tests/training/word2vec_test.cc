// word2vec on sentences of a small grammar, through the real programs: the rows of words tell their
// kinds, and analogies hold.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "data/random.h"
#include "tests/training/training_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kWord2vecJob[] = R"({
  "task": "skip_gram", "model": {"name": "word2vec", "ids": 64, "dim": 16},
  "data": {"source": "skip_gram", "train": {"file": "text"}, "window": 2, "subsample": 0,
           "token_cache": "cache", "vocabulary_file": "words", "global_batch_size": 128},
  "optimizer": {"name": "adagrad"}, "learning_rate": {"name": "constant", "base": 0.1},
  "train": {"epochs": 5, "output": "out", "fetch_every": 500}
})";

constexpr char kTables[] = R"(tables={
  "embedding": {"rule": {"name": "dense_adagrad", "learning_rate": 0.1},
                "initializer": {"low": -0.03, "high": 0.03}},
  "context": {"rule": {"name": "dense_adagrad", "learning_rate": 0.1},
              "initializer": {"name": "constant", "value": 0}}})";

constexpr int kGenders = 2, kRoles = 4, kSentences = 4000;

std::string word_of(int gender, int role) {
  return "word" + std::to_string(gender) + std::to_string(role);
}

// A word for each gender and role, between a word that goes with its gender and one that goes with
// its role.
std::string sentences() {
  std::string text;
  uint64_t draws = 0;
  const auto below = [&](int count) {
    return static_cast<int>(data::mix(++draws) % static_cast<uint64_t>(count));
  };
  for (int i = 0; i < kSentences; ++i) {
    const int gender = below(kGenders), role = below(kRoles);
    std::vector<std::string> words = {
        "gender" + std::to_string(gender) + "_" + std::to_string(below(4)), word_of(gender, role),
        "role" + std::to_string(role) + "_" + std::to_string(below(4))};
    std::swap(words[0], words[static_cast<size_t>(below(3))]);
    std::swap(words[1], words[static_cast<size_t>(1 + below(2))]);
    text += words[0] + " " + words[1] + " " + words[2] + "\n";
  }
  return text;
}

using Row = std::vector<double>;

double product(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

// "gender0", "role3", or "word".
std::string kind_of(const std::string& word) {
  const size_t mark = word.find('_');
  return mark == std::string::npos ? "word" : word.substr(0, mark);
}

class Word2vecTraining : public ::testing::Test {
 protected:
  Word2vecTraining() {
    write_file_atomically(job.path("text"), sentences());
    write_file_atomically(job.path("job.json"), kWord2vecJob);
  }

  std::string newest() const { return *latest_checkpoint(job.path("out/checkpoints")); }

  void set_row(size_t number, Row row) {
    const double length = std::sqrt(product(row, row));
    for (double& value : row) value /= length;
    rows[words().at(number)] = std::move(row);
  }

  std::vector<std::string> words() const {
    std::vector<std::string> all;
    std::istringstream lines(job.folder().read("words"));
    for (std::string line; std::getline(lines, line);)
      all.push_back(line.substr(0, line.find('\t')));
    return all;
  }

  // Of some words, the one whose row is nearest to this one.
  template <typename Wanted>
  std::string nearest(const Row& row, Wanted wanted) const {
    const std::string* best = nullptr;
    for (const auto& [word, other] : rows) {
      if (!wanted(word)) continue;
      if (!best || product(row, other) > product(row, rows.at(*best))) best = &word;
    }
    return *best;
  }

  void expect_grammar() const {
    ASSERT_EQ(std::ssize(rows), kGenders * 4 + kRoles * 4 + kGenders * kRoles);
    int neighbours = 0, analogies = 0;
    for (const auto& [word, row] : rows) {
      const std::string found = nearest(row, [&](const auto& other) { return other != word; });
      neighbours += kind_of(found) == kind_of(word) ? 1 : 0;
    }
    for (int gender = 0; gender < kGenders; ++gender) {
      for (int role = 0; role < kRoles; ++role) {
        for (int other = 0; other < kRoles; ++other) {
          if (other != role) analogies += analogy_holds(gender, role, other) ? 1 : 0;
        }
      }
    }
    EXPECT_GE(neighbours, std::ssize(rows) - 2);
    EXPECT_GE(analogies, kGenders * kRoles * (kRoles - 1) - 2);  // by chance: about a fifth of them
  }

  // (gender, role) - (gender, other) + (its opposite, other) = (its opposite, role)
  bool analogy_holds(int gender, int role, int other) const {
    const std::string given[] = {word_of(gender, role), word_of(gender, other),
                                 word_of(1 - gender, other)};
    Row sum = rows.at(given[0]);
    for (size_t d = 0; d < sum.size(); ++d) sum[d] += rows.at(given[2])[d] - rows.at(given[1])[d];
    const std::string found = nearest(sum, [&](const std::string& word) {
      return kind_of(word) == "word" && std::ranges::find(given, word) == std::end(given);
    });
    return found == word_of(1 - gender, role);
  }

  TrainingJob job;
  std::map<std::string, Row> rows;  // of length 1
};

TEST_F(Word2vecTraining, OneRank_LearnsTheGrammar) {
  std::string error;
  ASSERT_EQ(job.run_worker({"job.json"}, &error), 0) << error;
  const TensorFile weights = read_safetensors(newest() + "/model.safetensors");
  const auto* all =
      reinterpret_cast<const float*>(weights.tensors.at("embedding.weight").data.data());
  for (size_t i = 0; i < words().size(); ++i) set_row(i, Row(all + 16 * i, all + 16 * (i + 1)));
  expect_grammar();
}

TEST_F(Word2vecTraining, VocabularyThatCannotBeWritten_IsRefusedBeforeTheStart) {
  for (const char* path : {"missing/words", "text/words", "."}) {
    const auto fleetrun =
        job.start("refused", {"--nproc_per_node=2"}, {std::string("data.vocabulary_file=") + path});
    EXPECT_EQ(fleetrun->wait(), 2) << fleetrun->output();
    EXPECT_THAT(fleetrun->output(),
                AllOf(HasSubstr("data.vocabulary_file: "), Not(HasSubstr("counting"))));
    EXPECT_FALSE(std::filesystem::exists(job.path("log.refused/workerlog.0"))) << path;
  }
}

TEST_F(Word2vecTraining, TablesOnServers_LearnTheGrammar) {
  const auto fleetrun = job.start("served", {"--server_num=2", "--worker_num=2"}, {kTables});
  ASSERT_EQ(fleetrun->wait(), 0) << fleetrun->output();
  std::string error;
  ASSERT_EQ(job.run_worker(
                {"table", newest() + "/tables", "--table", "embedding", "-o", "rows.txt"}, &error),
            0)
      << error;
  std::istringstream lines(job.folder().read("rows.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    size_t id = 0;
    Row row;
    fields >> id;
    for (double value; fields >> value;) row.push_back(value);
    set_row(id, row);
  }
  expect_grammar();
  EXPECT_THAT(job.folder().survivors(30), IsEmpty());
}

}  // namespace
}  // namespace fleet
