// Rows of tokens: which tokens are predicted from which, compared with naive loops over documents,
// with lm-eval's rolling windows and with the loop of transformers' page on perplexity.
#include "data/token_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <utility>

#include "data/random.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

constexpr uint32_t kMark = 7;

class Listed : public TokenSequence {
 public:
  explicit Listed(std::vector<uint32_t> tokens) : tokens_(std::move(tokens)) {}
  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  void copy(int64_t begin, std::span<uint32_t> to) const override {
    ASSERT_LE(begin + static_cast<int64_t>(to.size()), size());
    std::copy_n(tokens_.begin() + begin, to.size(), to.begin());
  }

 private:
  std::vector<uint32_t> tokens_;
};

struct Row {
  explicit Row(size_t length)
      : inputs(length), positions(length), documents(length), labels(length), weights(length) {}
  std::vector<int64_t> inputs, positions, documents, labels;
  std::vector<float> weights;
};

Row filled(const TokenSequence& tokens, const RowLayout& layout, int64_t index, size_t length,
           int64_t vocabulary = 0) {
  Row row(length);
  fill_row(tokens, layout.row(index), {.padding = 3, .prefix = 99, .mark = kMark}, vocabulary,
           {row.inputs, row.positions, row.documents, row.labels, row.weights});
  return row;
}

std::vector<int64_t> lengths_of_documents(int count, uint64_t seed) {
  std::vector<int64_t> lengths;
  RandomStream random(seed, "lengths");
  for (int i = 0; i < count; ++i)
    lengths.push_back(1 + static_cast<int64_t>(random.uniform(0, 40)));
  return lengths;
}

// Documents of unique tokens from 1000 on, each with its mark after or before it.
std::vector<uint32_t> marked(const std::vector<int64_t>& lengths, bool begins) {
  std::vector<uint32_t> tokens;
  uint32_t next = 1000;
  for (const int64_t length : lengths) {
    if (begins) tokens.push_back(kMark);
    for (int64_t i = 0; i < length; ++i) tokens.push_back(next++);
    if (!begins) tokens.push_back(kMark);
  }
  return tokens;
}

// How often each pair of tokens is an input and its label, with the sum of weights.
std::map<std::pair<int64_t, int64_t>, int> predictions(const TokenSequence& tokens,
                                                       const RowLayout& layout, size_t length) {
  std::map<std::pair<int64_t, int64_t>, int> pairs;
  for (int64_t index = 0; index < layout.size(); ++index) {
    const Row row = filled(tokens, layout, index, length);
    double sum = 0;
    for (size_t i = 0; i < length; ++i) {
      EXPECT_EQ(row.labels[i] == -100, row.weights[i] == 0);
      if (row.weights[i] > 0) ++pairs[{row.inputs[i], row.labels[i]}];
      sum += row.weights[i];
      const bool starts = i == 0 || row.documents[i] != row.documents[i - 1];
      EXPECT_EQ(row.positions[i], row.documents[i] < 0 || starts ? 0 : row.positions[i - 1] + 1);
    }
    EXPECT_EQ(sum, layout.weight(index)) << index;
  }
  return pairs;
}

// Every token of a document is predicted from the one before it, and nothing else is: neither from
// another document's token nor twice.
std::map<std::pair<int64_t, int64_t>, int> wanted(const std::vector<int64_t>& lengths,
                                                  bool begins) {
  std::map<std::pair<int64_t, int64_t>, int> pairs;
  int64_t next = 1000;
  for (const int64_t length : lengths) {
    int64_t before = begins ? int64_t{kMark} : -1;
    for (int64_t i = 0; i < length; ++i, ++next) {
      if (before >= 0) ++pairs[{before, next}];
      before = next;
    }
    ++pairs[{before, kMark}];
  }
  return pairs;
}

TEST(DocumentRows, AllPackings_PredictEachTokenOnceFromItsOwnDocument) {
  for (const bool begins : {false, true}) {
    const std::vector<int64_t> lengths = lengths_of_documents(60, 5);
    const Listed tokens(marked(lengths, begins));
    const DocumentMark mark{kMark, begins};
    const auto documents = documents_of(tokens, mark);
    ASSERT_EQ(documents.size(), lengths.size());
    for (const int length : {1, 7, 16, 64}) {
      for (const bool packs : {false, true}) {
        SCOPED_TRACE(::testing::Message() << length << " " << packs << " " << begins);
        const auto rows = document_rows(documents, mark, length, packs);
        EXPECT_EQ(predictions(tokens, *rows, length), wanted(lengths, begins));
      }
    }
  }
}

TEST(DocumentRows, BestFit_LeavesLittlePadding) {
  const std::vector<int64_t> lengths = lengths_of_documents(400, 6);
  const Listed tokens(marked(lengths, false));
  const DocumentMark mark{kMark, false};
  const int64_t inputs = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const auto rows = document_rows(documents_of(tokens, mark), mark, 64, true);
  EXPECT_LE(rows->size() * 64, inputs + inputs / 20);
  const auto single = document_rows(documents_of(tokens, mark), mark, 64, false);
  EXPECT_EQ(single->size(), 400);
}

TEST(DocumentRows, Row_HasItsDocumentsNumberedAndThePaddingApart) {
  const Listed tokens({1, 2, kMark, 4, 5, 6, kMark});
  const DocumentMark mark{kMark, false};
  const auto rows = document_rows(documents_of(tokens, mark), mark, 6, true);
  ASSERT_EQ(rows->size(), 1);
  const Row row = filled(tokens, *rows, 0, 6);
  EXPECT_EQ(row.inputs, (std::vector<int64_t>{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(row.labels, (std::vector<int64_t>{5, 6, kMark, 2, kMark, -100}));
  EXPECT_EQ(row.positions, (std::vector<int64_t>{0, 1, 2, 0, 1, 0}));
  EXPECT_EQ(row.documents, (std::vector<int64_t>{0, 0, 0, 1, 1, -1}));
  EXPECT_EQ(row.weights, (std::vector<float>{1, 1, 1, 1, 1, 0}));
}

TEST(StreamRows, WithoutAMark_AreWindowsOfOneDocument) {
  std::vector<uint32_t> numbers(22);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Listed tokens(numbers);
  const auto rows = stream_rows(tokens, {}, {{0, 22}}, 7);
  ASSERT_EQ(rows->size(), 3);  // 3 x 7 inputs and the last label
  for (int64_t index = 0; index < 3; ++index) {
    const Row row = filled(tokens, *rows, index, 7);
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(row.inputs[i], index * 7 + i);
      EXPECT_EQ(row.labels[i], index * 7 + i + 1);
      EXPECT_EQ(row.documents[i], 0);
    }
    EXPECT_EQ(rows->weight(index), 7);
  }
}

TEST(StreamRows, WithAMark_NoTokenIsPredictedFromAnotherDocument) {
  for (const bool begins : {false, true}) {
    const std::vector<int64_t> lengths = lengths_of_documents(60, 8);
    const Listed tokens(marked(lengths, begins));
    const DocumentMark mark{kMark, begins};
    const auto all = wanted(lengths, begins);
    for (const int length : {5, 16, 64}) {
      const auto rows = stream_rows(tokens, mark, {{0, tokens.size()}}, length);
      const auto pairs = predictions(tokens, *rows, length);
      for (const auto& [pair, count] : pairs) {
        ASSERT_TRUE(all.contains(pair)) << pair.first << " " << pair.second;
        EXPECT_LE(count, all.at(pair));
      }
      // Only the tokens behind the last window are missing.
      EXPECT_GE(pairs.size() + length, all.size());
    }
  }
}

TEST(StreamRows, PartsOfADivision_AreDisjointAndComplete) {
  const std::vector<int64_t> lengths = lengths_of_documents(50, 9);
  const Listed tokens(marked(lengths, false));
  const DocumentMark mark{kMark, false};
  const auto documents = documents_of(tokens, mark);
  const auto train = divided(documents, 0.2, 3, false), held = divided(documents, 0.2, 3, true);
  EXPECT_EQ(held.size(), 10u);
  std::vector<TokenRange> both = train;
  both.insert(both.end(), held.begin(), held.end());
  std::sort(both.begin(), both.end(),
            [](const TokenRange& a, const TokenRange& b) { return a.begin < b.begin; });
  EXPECT_EQ(both, documents);
  EXPECT_NE(divided(documents, 0.2, 4, true), held);
  const auto seen = predictions(tokens, *stream_rows(tokens, mark, train, 8), 8);
  for (const auto& range : held) {
    uint32_t first = 0;
    tokens.copy(range.begin, {&first, 1});
    for (const auto& [pair, count] : seen) EXPECT_NE(pair.first, first);
  }
}

TEST(Divided, OneDocument_IsCut) {
  const std::vector<TokenRange> one = {{0, 100}};
  EXPECT_EQ(divided(one, 0.1, 1, false), (std::vector<TokenRange>{{0, 90}}));
  EXPECT_EQ(divided(one, 0.1, 1, true), (std::vector<TokenRange>{{90, 10}}));
  EXPECT_THAT(thrown_by([] { divided({{0, 1}}, 0.1, 1, true); }), IsError(ErrorCode::kUsage));
}

struct Window {
  std::vector<int64_t> inputs, predicted;
  bool operator==(const Window&) const = default;
};

// get_rolling_token_windows() of lm_eval/utils.py with context_len 1.
std::vector<Window> lm_eval_windows(const std::vector<int64_t>& tokens, int64_t prefix,
                                    int64_t most) {
  std::vector<Window> windows;
  const auto size = static_cast<int64_t>(tokens.size());
  const auto part = [&](int64_t from, int64_t to) {
    return std::vector<int64_t>(tokens.begin() + from, tokens.begin() + to);
  };
  const int64_t first = std::min(most, size);
  Window window{{prefix}, part(0, first)};
  const auto rest = part(0, first - 1);
  window.inputs.insert(window.inputs.end(), rest.begin(), rest.end());
  windows.push_back(window);
  for (int64_t predicted = first; predicted < size;) {
    const int64_t count = std::min(size - predicted, most), end = predicted + count;
    windows.push_back({part(end - most - 1, end - 1), part(end - count, end)});
    predicted += count;
  }
  return windows;
}

TEST(RollingRows, EqualLmEvalsWindows) {
  for (const int64_t size : {1, 5, 8, 9, 16, 23, 40}) {
    std::vector<uint32_t> numbers(size);
    std::iota(numbers.begin(), numbers.end(), 200);
    const Listed tokens(numbers);
    const auto rows = rolling_rows({{0, size}}, 8);
    std::vector<Window> windows;
    for (int64_t index = 0; index < rows->size(); ++index) {
      const Row row = filled(tokens, *rows, index, 8);
      Window& window = windows.emplace_back();
      for (size_t i = 0; i < 8; ++i) {
        if (row.documents[i] >= 0) window.inputs.push_back(row.inputs[i]);
        if (row.weights[i] > 0) window.predicted.push_back(row.labels[i]);
      }
    }
    EXPECT_EQ(windows, lm_eval_windows({numbers.begin(), numbers.end()}, 99, 8)) << size;
  }
}

// The loop of transformers' docs/source/en/perplexity.md: for each window the tokens predicted and
// the number by which it multiplies their mean loss.
struct HuggingFaceWindow {
  std::vector<int64_t> predicted;
  double tokens;
};
std::vector<HuggingFaceWindow> transformers_windows(int64_t size, int64_t most, int64_t stride) {
  std::vector<HuggingFaceWindow> windows;
  int64_t before = 0;
  for (int64_t begin = 0; begin < size; begin += stride) {
    const int64_t end = std::min(begin + most, size), length = end - before;
    HuggingFaceWindow window{{}, double(length - 1)};
    for (int64_t i = std::max(end - length, begin + 1); i < end; ++i) window.predicted.push_back(i);
    windows.push_back(window);
    before = end;
    if (end == size) break;
  }
  return windows;
}

TEST(StridedRows, EqualTheLoopOfTransformers) {
  const int64_t size = 2000;
  std::vector<uint32_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Listed tokens(numbers);
  for (const auto& [stride, counted] : {std::pair(256, 1992.0), std::pair(128, 1985.0)}) {
    const auto rows = strided_rows({{0, size}}, 256, stride);
    const auto windows = transformers_windows(size, 256, stride);
    ASSERT_EQ(rows->size(), static_cast<int64_t>(windows.size()));
    double all = 0;
    for (int64_t index = 0; index < rows->size(); ++index) {
      const Row row = filled(tokens, *rows, index, 256);
      std::vector<int64_t> predicted;
      for (size_t i = 0; i < 256; ++i) {
        if (row.weights[i] > 0) predicted.push_back(row.labels[i]);
      }
      EXPECT_EQ(predicted, windows[index].predicted);
      EXPECT_NEAR(rows->weight(index), windows[index].tokens, 1e-4);
      all += rows->weight(index);
    }
    EXPECT_NEAR(all, counted, 1e-3);  // what the page divides by
  }
}

TEST(WithoutMarks, DropsTheMarkOfEachDocument) {
  const Listed after({1, 2, kMark, kMark, 4});
  const DocumentMark ends{kMark, false}, begins{kMark, true};
  EXPECT_EQ(without_marks(documents_of(after, ends), after, ends),
            (std::vector<TokenRange>{{0, 2}, {4, 1}}));
  const Listed before({kMark, 1, 2, kMark, 4});
  EXPECT_EQ(without_marks(documents_of(before, begins), before, begins),
            (std::vector<TokenRange>{{1, 2}, {4, 1}}));
}

TEST(FillRow, TokenOutsideTheVocabulary_IsNamed) {
  const Listed tokens({1, 2, 50, 3});
  const auto rows = stream_rows(tokens, {}, {{0, 4}}, 3);
  EXPECT_THAT(thrown_by([&] { filled(tokens, *rows, 0, 3, 50); }), IsError(ErrorCode::kUsage));
  filled(tokens, *rows, 0, 3, 51);
}

}  // namespace
}  // namespace fleet::data
