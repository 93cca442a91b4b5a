// The source `skip_gram`: its words, its pairs, and the distributions that they are drawn from.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "base/file.h"
#include "data/random.h"
#include "data/word_pairs.h"
#include "data/word_vocabulary.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;

class Numbers : public TokenSequence {
 public:
  explicit Numbers(std::vector<uint32_t> numbers) : numbers_(std::move(numbers)) {}
  int64_t size() const override { return std::ssize(numbers_); }
  void copy(int64_t begin, std::span<uint32_t> to) const override {
    std::copy_n(numbers_.begin() + begin, to.size(), to.begin());
  }

 private:
  const std::vector<uint32_t> numbers_;
};

WordPairs pairs_of(std::vector<uint32_t> numbers, const std::vector<int64_t>& counts,
                   const WordPairOptions& options) {
  return {std::make_shared<Numbers>(std::move(numbers)), counts, options};
}

struct Pair {
  int64_t center = -1;
  std::vector<int64_t> context;
  bool operator==(const Pair&) const = default;
};

Pair pair_at(const WordPairs& pairs, int64_t index, uint64_t key, int64_t negatives = 2) {
  Pair pair;
  pair.context.resize(static_cast<size_t>(1 + negatives));
  pairs.fill(index, key, &pair.center, pair.context);
  return pair;
}

TEST(WordPairs, NeighboursAreOfTheWindowAndTheLine) {
  // Two lines: 0 1 2 3 4 5 and 6 7; the number 8 ends a line.
  const WordPairs pairs = pairs_of({0, 1, 2, 3, 4, 5, 8, 6, 7, 8}, std::vector<int64_t>(8, 1),
                                   {.window = 2, .negatives = 2, .subsample = 0});
  EXPECT_EQ(pairs.size(), 8 * 3);
  std::map<std::pair<int64_t, int64_t>, int> seen;
  std::map<int64_t, int> centers;
  for (uint64_t key = 0; key < 200; ++key) {
    for (int64_t i = 0; i < pairs.size(); ++i) {
      const Pair pair = pair_at(pairs, i, mix(key * 1000 + static_cast<uint64_t>(i)));
      const int64_t distance = std::abs(pair.center - pair.context[0]);
      EXPECT_TRUE(distance >= 1 && distance <= 2) << pair.center << " " << pair.context[0];
      EXPECT_EQ(pair.center >= 6, pair.context[0] >= 6);
      EXPECT_NE(pair.context[1], pair.context[0]);
      ++centers[pair.center];
      ++seen[{pair.center, pair.context[0]}];
    }
  }
  for (int64_t word = 0; word < 8; ++word) EXPECT_EQ(centers[word], 600);  // evenly
  // In the middle of a line: distance 1 twice as often as distance 2, before as often as behind.
  EXPECT_NEAR((seen[{2, 1}] + seen[{2, 3}]) / 600.0, 2 / 3.0, 0.1);
  EXPECT_NEAR((seen[{2, 0}] + seen[{2, 1}]) / 600.0, 0.5, 0.1);
  EXPECT_EQ((seen[{6, 7}]), 600);
}

TEST(WordPairs, FrequentWordsAreLeftOutByTheirFraction) {
  // Word 0 stands between the others: 0 1 0 2 0 1 0 2 ... Half of all words are 0.
  std::vector<uint32_t> numbers;
  for (int i = 0; i < 3000; ++i) numbers.insert(numbers.end(), {0, i % 2 == 0 ? 1u : 2u});
  numbers.push_back(3);
  const double t = 0.02;
  const WordPairs pairs = pairs_of(numbers, {3000, 1500, 1500}, {.window = 1, .subsample = t});
  const auto part = [&](double f) { return std::sqrt(t / f) + t / f; };
  EXPECT_NEAR(pairs.kept(), 3000 * part(0.5) + 3000 * part(0.25), 1e-6 * pairs.kept());
  EXPECT_EQ(pairs.size(), std::llround(2 * pairs.kept()));
  int64_t zeros = 0, beyond = 0, others = 0;
  for (int64_t i = 0; i < pairs.size(); ++i) {
    const Pair pair = pair_at(pairs, i, mix(static_cast<uint64_t>(i)));
    zeros += pair.center == 0 ? 1 : 0;
    if (pair.center == 0) continue;
    ++others;
    beyond += pair.context[0] != 0 ? 1 : 0;  // over a 0 that was left out
  }
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(pairs.size()),
              part(0.5) / (part(0.5) + part(0.25)), 0.02);
  EXPECT_GT(static_cast<double>(beyond) / static_cast<double>(others), 0.5);
}

TEST(WordPairs, DrawnWordsFollowThePowerOfTheirCounts) {
  const std::vector<int64_t> counts = {10'000, 1'000, 100, 10};
  const WordPairs pairs =
      pairs_of({3, 3, 4}, counts, {.window = 1, .negatives = 3, .exponent = 0.75, .subsample = 0});
  std::vector<double> drawn(4);
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const Pair pair = pair_at(pairs, i % pairs.size(), mix(static_cast<uint64_t>(i)), 3);
    for (size_t n = 1; n < 4; ++n) drawn[static_cast<size_t>(pair.context[n])] += 1;
  }
  double sum = 0;
  for (size_t word = 0; word < 3; ++word) sum += std::pow(counts[word], 0.75);
  EXPECT_EQ(drawn[3], 0);  // the neighbour
  for (size_t word = 0; word < 3; ++word) {
    EXPECT_NEAR(drawn[word] / (3.0 * kDraws), std::pow(counts[word], 0.75) / sum, 0.01) << word;
  }
}

TEST(WordPairs, Sample_FollowsFromItsIndexAndKey) {
  const WordPairs pairs =
      pairs_of({0, 1, 2, 3, 4, 5, 6, 7, 8}, std::vector<int64_t>(8, 1), {.subsample = 0});
  const Pair one = pair_at(pairs, 7, 1234);
  EXPECT_EQ(one, pair_at(pairs, 7, 1234));
  int different = 0;
  for (uint64_t key = 0; key < 10; ++key) different += pair_at(pairs, 7, key) == one ? 0 : 1;
  EXPECT_GT(different, 8);
}

class SkipGramSource : public ::testing::Test {
 protected:
  std::string json(const std::string& files, const std::string& more = "") const {
    return R"({"root": ")" + folder_.path() + R"(", "token_cache": ")" + folder_.path() +
           R"(/cache", "min_count": 2, "subsample": 0, "negatives": 2, "train": {"file": )" +
           files + "}" + more + "}";
  }
  std::unique_ptr<Source> open(const std::string& files, const std::string& more = "",
                               const PipelineContext& context = {}) const {
    return open_split(testing::settings_of("skip_gram", json(files, more)), true, false, context);
  }
  // The words of a file of words, without their counts.
  std::vector<std::string> words(const std::string& path) const {
    return read_vocabulary(folder_ / path).words;
  }
  std::vector<Pair> all(const Source& source) const {
    std::vector<Pair> pairs;
    for (int64_t i = 0; i < source.size(); ++i) {
      Pair& pair = pairs.emplace_back(Pair{.context = std::vector<int64_t>(3)});
      source.fill(i, mix(static_cast<uint64_t>(i)),
                  std::vector<void*>{&pair.center, pair.context.data()});
    }
    return pairs;
  }
  testing::TempFolder folder_;
};

TEST_F(SkipGramSource, WordsAreNumberedByTheirCounts) {
  testing::write(folder_ / "a.txt", "b a\tb c\nb rare\r\n a c  b\n");
  const auto source = open(R"("a.txt")", R"(, "vocabulary_file": "words.txt")");
  EXPECT_EQ(read_file(folder_ / "words.txt"), "b\t4\na\t2\nc\t2\n");
  // The line "b rare" has one word of the vocabulary left.
  EXPECT_EQ(source->size(), (4 + 3) * 6);
  std::map<int64_t, int> neighbours;
  for (const Pair& pair : all(*source)) ++neighbours[pair.center];
  EXPECT_THAT(neighbours, ElementsAre(std::pair(0, 18), std::pair(1, 12), std::pair(2, 12)));
}

TEST_F(SkipGramSource, CompressedFilesAndJsonLines_GiveTheSamePairs) {
  const std::string text = "x y z x y\nz y x x\n";
  testing::write(folder_ / "a.txt", text);
  testing::write(folder_ / "a.txt.gz", testing::gzip(text));
  testing::write(folder_ / "a.jsonl", "{\"text\": \"x y z x y\\nz y x x\"}\n");
  const std::vector<Pair> wanted = all(*open(R"("a.txt")"));
  EXPECT_EQ(all(*open(R"("a.txt.gz")")), wanted);
  EXPECT_EQ(all(*open(R"("a.jsonl")")), wanted);
}

TEST_F(SkipGramSource, FileOfWords_IsReadIfItExists) {
  testing::write(folder_ / "a.txt", "x y z x y z");
  testing::write(folder_ / "words.txt", "z\t9\nx\t5\n");
  const auto source = open(R"("a.txt")", R"(, "vocabulary_file": "words.txt")");
  EXPECT_EQ(words("words.txt"), (std::vector<std::string>{"z", "x"}));
  EXPECT_EQ(source->size(), 4 * 6);
  testing::write(folder_ / "words.txt", "z\t9\nx\n");
  EXPECT_THAT(thrown_by([&] { open(R"("a.txt")", R"(, "vocabulary_file": "words.txt")"); }),
              IsUsageError(folder_ / "words.txt:2"));
}

TEST_F(SkipGramSource, TestTexts_HaveTheWordsOfTheTraining) {
  testing::write(folder_ / "a.txt", "x x x y y z z");
  testing::write(folder_ / "b.txt", "z z z new new y y");
  const Settings settings =
      testing::settings_of("skip_gram", json(R"("a.txt")", R"(, "test": {"file": "b.txt"})"));
  const auto source = open_split(settings, false, false, {});
  EXPECT_EQ(source->size(), 5 * 6);
  for (const Pair& pair : all(*source)) EXPECT_TRUE(pair.center == 1 || pair.center == 2);
}

TEST_F(SkipGramSource, OtherWords_HaveAnotherHash) {
  const auto hash = [&](const std::string& text, const std::string& more = "") {
    testing::write(folder_ / "a.txt", text);
    const TokenizerIdentity words = open(R"("a.txt")", more)->tokenizer();
    EXPECT_TRUE(words.words);
    return words.hash;
  };
  const uint64_t first = hash("x x x y y z z");
  EXPECT_EQ(hash("z y x x\nx y z"), first);
  EXPECT_NE(hash("x x x y y z z z"), first);
  EXPECT_NE(hash("x x x y y z z", R"(, "max_words": 2)"), first);
}

TEST_F(SkipGramSource, MoreWordsThanRows_AreRefused) {
  testing::write(folder_ / "a.txt", "x y z x y z");
  EXPECT_EQ(open(R"("a.txt")", "", {.vocabulary = 3})->size(), 36);
  EXPECT_THAT(thrown_by([&] { open(R"("a.txt")", "", {.vocabulary = 2}); }),
              IsUsageError("data.train.file"));
  EXPECT_EQ(open(R"("a.txt")", R"(, "max_words": 2)", {.vocabulary = 2})->size(), 24);
}

TEST_F(SkipGramSource, TextsWithoutPairs_AreRefused) {
  testing::write(folder_ / "a.txt", "every word once");
  EXPECT_THAT(thrown_by([&] { open(R"("a.txt")"); }), IsUsageError("a.txt"));
  testing::write(folder_ / "b.txt", "x\nx\ny\ny\n");
  EXPECT_THAT(thrown_by([&] { open(R"("b.txt")"); }), IsUsageError("b.txt"));
}

TEST_F(SkipGramSource, BatchesDoNotDependOnTheNumberOfRanks) {
  std::string text;
  for (uint64_t i = 0; i < 400; ++i) text += "w" + std::to_string(mix(i) % 40) + " ";
  testing::write(folder_ / "a.txt", text);
  const auto centers = [&](int ranks, int64_t epoch) {
    std::vector<int64_t> all;
    for (int64_t batch = 0; batch < 3; ++batch) {
      for (int rank = 0; rank < ranks; ++rank) {
        const auto pipeline = make_pipeline(
            testing::settings_of("skip_gram", json(R"("a.txt")", R"(, "batch_size": )" +
                                                                     std::to_string(16 / ranks))),
            true, {.rank = rank, .ranks = ranks, .seed = 3});
        pipeline->start_epoch(epoch, batch);
        const auto column = pipeline->next()->column("center");
        const auto* values = reinterpret_cast<const int64_t*>(column.data());
        all.insert(all.end(), values, values + 16 / ranks);
      }
    }
    return all;
  };
  EXPECT_EQ(centers(1, 0), centers(2, 0));
  EXPECT_NE(centers(1, 0), centers(1, 1));
}

}  // namespace
}  // namespace fleet::data
