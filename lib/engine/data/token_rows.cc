#include "data/token_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "data/random.h"
#include "text/packing.h"

namespace fleet::data {
namespace {

constexpr int64_t kIgnored = -100;

int64_t tokens_in(const std::vector<TokenRange>& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), int64_t{0},
                         [](int64_t sum, const TokenRange& one) { return sum + one.size; });
}

// Ranges that touch, joined.
std::vector<TokenRange> joined(const std::vector<TokenRange>& ranges) {
  std::vector<TokenRange> all;
  for (const TokenRange& one : ranges) {
    if (one.size == 0) continue;
    if (!all.empty() && all.back().begin + all.back().size == one.begin) {
      all.back().size += one.size;
    } else {
      all.push_back(one);
    }
  }
  return all;
}

class StreamRows : public RowLayout {
 public:
  StreamRows(const TokenSequence& tokens, const DocumentMark& mark,
             const std::vector<TokenRange>& ranges, int64_t length)
      : tokens_(tokens),
        mark_(mark),
        ranges_(joined(ranges)),
        length_(length),
        windows_(tokens_in(ranges_), length) {
    int64_t start = 0;
    for (const TokenRange& one : ranges_) {
      starts_.push_back(start);
      start += one.size;
    }
  }
  int64_t size() const override { return windows_.size(); }
  double weight(int64_t index) const override {
    if (!mark_.token && ranges_.size() == 1) return static_cast<double>(length_);
    return RowLayout::weight(index);
  }
  std::vector<RowPiece> row(int64_t index) const override {
    std::vector<RowPiece> pieces;
    int64_t at = windows_.begin(index), left = length_;
    size_t range = std::upper_bound(starts_.begin(), starts_.end(), at) - starts_.begin() - 1;
    for (; left > 0; ++range) {
      const int64_t inside = at - starts_[range];
      const int64_t count = std::min(left, ranges_[range].size - inside);
      add_documents(ranges_[range].begin + inside, count, &pieces);
      // Without a mark nothing follows the last token of a range.
      if (!mark_.token && inside + count == ranges_[range].size) pieces.back().tail = 1;
      at += count;
      left -= count;
    }
    return pieces;
  }

 private:
  void add_documents(int64_t begin, int64_t count, std::vector<RowPiece>* pieces) const {
    if (!mark_.token) return pieces->push_back({.begin = begin, .tokens = count});
    std::vector<uint32_t> read(count);
    tokens_.copy(begin, read);
    int64_t first = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (read[i] != *mark_.token) continue;
      const int64_t end = mark_.begins ? i : i + 1;
      if (end > first) {
        pieces->push_back(
            {.begin = begin + first, .tokens = end - first, .tail = mark_.begins ? 0 : 1});
      }
      first = end;
    }
    if (first < count) pieces->push_back({.begin = begin + first, .tokens = count - first});
    // The last token of all may lack its mark.
    const bool ends = begin + count == tokens_.size() && !mark_.begins;
    if (ends) pieces->back().tail = 1;
  }

  const TokenSequence& tokens_;
  const DocumentMark mark_;
  const std::vector<TokenRange> ranges_;
  const int64_t length_;
  const text::StreamWindows windows_;
  std::vector<int64_t> starts_;  // where each range begins in the stream
};

class PackedRows : public RowLayout {
 public:
  PackedRows(const std::vector<TokenRange>& documents, const std::vector<int64_t>& inputs,
             int64_t length)
      : windows_(text::pack_documents(inputs, length)) {
    for (const TokenRange& one : documents) begins_.push_back(one.begin);
  }
  int64_t size() const override { return static_cast<int64_t>(windows_.size()); }
  std::vector<RowPiece> row(int64_t index) const override {
    std::vector<RowPiece> pieces;
    for (const text::PackedPiece& one : windows_.window(static_cast<size_t>(index))) {
      pieces.push_back({.begin = begins_[one.document] + one.begin, .tokens = one.tokens});
    }
    return pieces;
  }

 private:
  const text::PackedWindows windows_;
  std::vector<int64_t> begins_;
};

// Rows of one piece each.
class SingleRows : public RowLayout {
 public:
  explicit SingleRows(std::vector<RowPiece> pieces) : pieces_(std::move(pieces)) {}
  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  std::vector<RowPiece> row(int64_t index) const override { return {pieces_[index]}; }

 private:
  const std::vector<RowPiece> pieces_;
};

}  // namespace

double RowLayout::weight(int64_t index) const {
  double sum = 0;
  for (const RowPiece& piece : row(index)) sum += piece.sum();
  return sum;
}

int64_t RowLayout::tokens(int64_t index) const {
  int64_t sum = 0;
  for (const RowPiece& piece : row(index)) sum += piece.tokens;
  return sum;
}

std::vector<TokenRange> documents_of(const TokenSequence& tokens, const DocumentMark& mark) {
  constexpr int64_t kBlock = 1 << 20;
  const int64_t size = tokens.size();
  if (!mark.token) return size > 0 ? std::vector<TokenRange>{{0, size}} : std::vector<TokenRange>();
  std::vector<TokenRange> documents;
  int64_t first = 0;
  const auto end_at = [&](int64_t end) {
    if (end > first) documents.push_back({first, end - first});
    first = end;
  };
  std::vector<uint32_t> block;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    block.resize(std::min(kBlock, size - begin));
    tokens.copy(begin, block);
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] != *mark.token) continue;
      end_at(begin + static_cast<int64_t>(i) + (mark.begins ? 0 : 1));
    }
  }
  end_at(size);
  return documents;
}

std::vector<TokenRange> divided(const std::vector<TokenRange>& documents, double part,
                                uint64_t seed, bool validates) {
  const auto count = static_cast<int64_t>(documents.size());
  if (count == 1 && documents[0].size > 1) {
    const auto [begin, size] = documents[0];
    const auto taken = std::clamp<int64_t>(std::llround(double(size) * part), 1, size - 1);
    if (validates) return {{begin + size - taken, taken}};
    return {{begin, size - taken}};
  }
  if (count < 2) {
    throw Error(ErrorCode::kUsage, "the data are too short to divide", "data.validation_split",
                "use more data, or set separate test data (data.test)");
  }
  const uint64_t key = mix(seed ^ 0x73706c6974u);
  std::vector<std::pair<uint64_t, int64_t>> drawn;
  for (int64_t i = 0; i < count; ++i) drawn.emplace_back(mix(key + static_cast<uint64_t>(i)), i);
  std::sort(drawn.begin(), drawn.end());
  const auto taken = std::clamp<int64_t>(std::llround(double(count) * part), 1, count - 1);
  std::vector<bool> for_validation(count);
  for (int64_t i = 0; i < taken; ++i) for_validation[drawn[i].second] = true;
  std::vector<TokenRange> chosen;
  for (int64_t i = 0; i < count; ++i) {
    if (for_validation[i] == validates) chosen.push_back(documents[i]);
  }
  return chosen;
}

std::unique_ptr<RowLayout> stream_rows(const TokenSequence& tokens, const DocumentMark& mark,
                                       std::vector<TokenRange> ranges, int64_t length) {
  return std::make_unique<StreamRows>(tokens, mark, ranges, length);
}

std::unique_ptr<RowLayout> document_rows(const std::vector<TokenRange>& documents,
                                         const DocumentMark& mark, int64_t length, bool packs) {
  // A mark that begins the next document is predicted after the last token.
  const int64_t unpredicted = mark.begins ? 0 : 1;
  std::vector<int64_t> inputs;
  for (const TokenRange& one : documents)
    inputs.push_back(std::max<int64_t>(one.size - unpredicted, 0));
  if (packs) return std::make_unique<PackedRows>(documents, inputs, length);
  std::vector<RowPiece> pieces;
  for (size_t i = 0; i < documents.size(); ++i) {
    for (int64_t at = 0; at < inputs[i]; at += length) {
      pieces.push_back(
          {.begin = documents[i].begin + at, .tokens = std::min(length, inputs[i] - at)});
    }
  }
  return std::make_unique<SingleRows>(std::move(pieces));
}

std::unique_ptr<RowLayout> rolling_rows(const std::vector<TokenRange>& documents, int64_t length) {
  std::vector<RowPiece> pieces;
  for (const auto& [begin, size] : documents) {
    if (size == 0) continue;
    const int64_t first = std::min(size, length);
    pieces.push_back({.begin = begin, .tokens = first, .prefixed = true});
    for (int64_t done = first; done < size;) {
      const int64_t count = std::min(size - done, length), end = done + count;
      pieces.push_back(
          {.begin = begin + end - length - 1, .tokens = length, .skipped = length - count});
      done = end;
    }
  }
  return std::make_unique<SingleRows>(std::move(pieces));
}

std::unique_ptr<RowLayout> strided_rows(const std::vector<TokenRange>& documents, int64_t length,
                                        int64_t stride) {
  std::vector<RowPiece> pieces;
  for (const auto& [start, size] : documents) {
    int64_t seen = 0;  // end of the window before
    for (int64_t begin = 0; begin < size && seen < size; begin += stride) {
      const int64_t end = std::min(begin + length, size), fresh = end - seen;
      // Input i predicts token i + 1; the first token of a window has no context.
      const int64_t inputs = end - begin - 1;
      const int64_t predicted = std::min(fresh, inputs);
      seen = end;
      if (predicted < 1) continue;
      pieces.push_back({.begin = start + begin,
                        .tokens = inputs,
                        .skipped = inputs - predicted,
                        .weight = static_cast<float>(fresh - 1) / static_cast<float>(predicted)});
    }
  }
  return std::make_unique<SingleRows>(std::move(pieces));
}

std::vector<TokenRange> without_marks(const std::vector<TokenRange>& documents,
                                      const TokenSequence& tokens, const DocumentMark& mark) {
  if (!mark.token) return documents;
  std::vector<TokenRange> bare;
  for (TokenRange one : documents) {
    uint32_t token = 0;
    tokens.copy(mark.begins ? one.begin : one.begin + one.size - 1, {&token, 1});
    if (token == *mark.token) {
      --one.size;
      if (mark.begins) ++one.begin;
    }
    if (one.size > 0) bare.push_back(one);
  }
  return bare;
}

namespace {

[[noreturn]] void refuse_token(uint32_t token, int64_t place, int64_t vocabulary,
                               const std::string& name) {
  throw Error(ErrorCode::kUsage,
              "the token id " + std::to_string(token) + " at position " + std::to_string(place) +
                  " is not below model.vocab_size, " + std::to_string(vocabulary),
              name, "use the tokenizer of the model, or raise model.vocab_size");
}

}  // namespace

void check_tokens(const TokenSequence& tokens, int64_t vocabulary, const std::string& name) {
  constexpr int64_t kMost = int64_t{1} << 28, kBlock = 1 << 15;
  if (vocabulary == 0) return;
  const int64_t size = std::min(tokens.size(), kMost);
  std::vector<uint32_t> block;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    block.resize(std::min(kBlock, size - begin));
    tokens.copy(begin, block);
    if (std::ranges::max(block) < vocabulary) continue;
    const auto wrong = std::ranges::find_if(block, [&](auto id) { return id >= vocabulary; });
    refuse_token(*wrong, begin + (wrong - block.begin()), vocabulary, name);
  }
}

namespace {

struct PieceReader {
  const TokenSequence& tokens;
  const RowTokens& special;
  int64_t vocabulary;
  std::vector<uint32_t> read = {};

  // The inputs of a piece, and one token more.
  const std::vector<uint32_t>& of(const RowPiece& piece) {
    const int64_t before = piece.prefixed ? 1 : 0;
    const int64_t wanted = piece.tokens + 1 - before;
    const int64_t there = std::min(wanted, tokens.size() - piece.begin);
    read.assign(piece.tokens + 1, special.mark);
    if (piece.prefixed) read[0] = special.prefix;
    tokens.copy(piece.begin, std::span(read).subspan(before, there));
    check(piece);
    return read;
  }

  void check(const RowPiece& piece) const {
    if (vocabulary == 0) return;
    const auto wrong = std::ranges::find_if(read, [&](auto id) { return id >= vocabulary; });
    if (wrong == read.end()) return;
    const int64_t before = piece.prefixed ? 1 : 0;
    refuse_token(*wrong, piece.begin + (wrong - read.begin()) - before, vocabulary,
                 "the data's tokens");
  }
};

}  // namespace

void fill_row(const TokenSequence& tokens, const std::vector<RowPiece>& row,
              const RowTokens& special, int64_t vocabulary, const RowColumns& to) {
  PieceReader reader{tokens, special, vocabulary};
  int64_t at = 0;
  for (size_t document = 0; document < row.size(); ++document) {
    const RowPiece& piece = row[document];
    const std::vector<uint32_t>& read = reader.of(piece);
    for (int64_t i = 0; i < piece.tokens; ++i, ++at) {
      const bool counts = i >= piece.skipped && i < piece.tokens - piece.tail && piece.weight > 0;
      to.input_ids[at] = read[i];
      to.position_ids[at] = i;
      to.document_ids[at] = static_cast<int64_t>(document);
      to.labels[at] = counts ? int64_t{read[i + 1]} : kIgnored;
      to.loss_weight[at] = counts ? piece.weight : 0;
    }
  }
  for (; at < static_cast<int64_t>(to.input_ids.size()); ++at) {
    to.input_ids[at] = special.padding;
    to.position_ids[at] = 0;
    to.document_ids[at] = -1;
    to.labels[at] = kIgnored;
    to.loss_weight[at] = 0;
  }
}

}  // namespace fleet::data
