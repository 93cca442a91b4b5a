#include "data/sentence_rows.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "data/random.h"

namespace fleet::data {
namespace {

// Some sentences of a document, of which tokens at both ends may be left out.
class Piece {
 public:
  // Sentences [first, end).
  Piece(const SentenceIndex& index, int64_t document, int64_t first, int64_t end)
      : index_(&index), document_(document), first_(first), end_(end) {
    for (int64_t k = first; k < end; ++k) tokens_ += sentence(k).size;
  }
  int64_t tokens() const { return tokens_; }
  void remove(bool front) {
    --tokens_;
    int64_t& gone = front ? front_ : back_;
    if (++gone < sentence(front ? first_ : end_ - 1).size) return;
    gone = 0;
    front ? ++first_ : --end_;
  }
  TokenRange range() const {
    const TokenRange last = sentence(end_ - 1);
    const int64_t begin = sentence(first_).begin + front_;
    return {begin, last.begin + last.size - back_ - begin};
  }

 private:
  TokenRange sentence(int64_t number) const { return index_->sentence(document_, number); }

  const SentenceIndex* index_;
  int64_t document_, first_, end_, tokens_ = 0;
  int64_t front_ = 0, back_ = 0;  // tokens left out of the first and of the last sentence
};

class FullSentences : public SentenceRows {
 public:
  FullSentences(const SentenceIndex& index, int64_t length) : length_(length) {
    for (int64_t d = 0; d < index.documents(); ++d) add_document(index, d);
    end_row();
  }
  int64_t size() const override { return std::ssize(starts_) - 1; }
  RowPieces row(int64_t index, uint64_t /*key*/) const override {
    RowPieces row;
    for (size_t i = starts_[index]; i < starts_[index + 1]; ++i) {
      row.pieces.push_back(pieces_[i].range);
      row.tokens += pieces_[i].tokens;
    }
    return row;
  }

 private:
  struct OwnPiece {
    TokenRange range;
    int64_t tokens = 0;  // without marks
  };

  void add_document(const SentenceIndex& index, int64_t document) {
    for (int64_t k = index.first(document); k < index.end(document); ++k) {
      TokenRange left = index.sentence(document, k);
      while (left.size > 0) {
        const int64_t room = length_ - used_ - 1;
        if (left.size <= room) {
          take(left, left.size);
        } else if (used_ > 1) {
          end_row();
        } else {
          take(left, room);
          end_row();
        }
      }
    }
    end_piece();
    if (length_ - used_ < 2) end_row();
  }
  void take(TokenRange& from, int64_t count) {
    if (piece_.range.size == 0) piece_.range.begin = from.begin;
    piece_.range.size = from.begin + count - piece_.range.begin;
    piece_.tokens += count;
    from.begin += count;
    from.size -= count;
    used_ += count;
  }
  void end_piece() {
    if (piece_.range.size == 0) return;
    pieces_.push_back(std::exchange(piece_, {}));
    ++used_;
  }
  void end_row() {
    end_piece();
    if (used_ > 1) starts_.push_back(pieces_.size());
    used_ = 1;
  }

  const int64_t length_;
  std::vector<OwnPiece> pieces_;
  std::vector<size_t> starts_ = {0};
  OwnPiece piece_;    // in the current row
  int64_t used_ = 1;  // its tokens, with [CLS] and the [SEP] of finished pieces
};

// create_instances_from_document() of BERT.
class SentencePairs : public SentenceRows {
 public:
  SentencePairs(SentenceIndex index, int64_t length, double short_sequences, uint64_t seed)
      : index_(std::move(index)), most_(length - 3) {
    for (int64_t d = 0; d < index_.documents(); ++d) add_document(d, short_sequences, seed);
  }
  int64_t size() const override { return std::ssize(chunks_); }
  RowPieces row(int64_t index, uint64_t key) const override {
    RandomStream random(key, "sentence_pairs");
    return pair_of(chunks_[index], random).row;
  }

 private:
  // The sentences of a row.
  struct Chunk {
    int64_t document = 0, first = 0;
    int32_t count = 0, target = 0;  // target: tokens that the row is to have
  };
  struct Pair {
    RowPieces row;
    int64_t unused = 0;  // sentences at the end of the chunk
  };

  void add_document(int64_t document, double short_sequences, uint64_t seed) {
    RandomStream random(sample_key(seed, 0, document), "sentence_pairs");
    int64_t target = most_;
    if (random.uniform() < short_sequences) target = 2 + random.below(most_ - 1);
    const int64_t end = index_.end(document);
    Chunk chunk{.document = document,
                .first = index_.first(document),
                .target = static_cast<int32_t>(target)};
    int64_t tokens = 0;
    for (int64_t k = chunk.first; k < end; ++k) {
      tokens += index_.sentence(document, k).size;
      ++chunk.count;
      if (k + 1 < end && tokens < target) continue;
      chunks_.push_back(chunk);
      k -= pair_of(chunk, random).unused;
      chunk.first = k + 1;
      chunk.count = 0;
      tokens = 0;
    }
  }

  Pair pair_of(const Chunk& chunk, RandomStream& random) const {
    const int64_t own = chunk.count >= 2 ? 1 + random.below(chunk.count - 1) : 1;
    Piece a(index_, chunk.document, chunk.first, chunk.first + own);
    const bool is_random = chunk.count == 1 || random.uniform() < 0.5;
    Piece b = is_random
                  ? other_piece(chunk.document, chunk.target - a.tokens(), random)
                  : Piece(index_, chunk.document, chunk.first + own, chunk.first + chunk.count);
    const int64_t before = a.tokens() + b.tokens();
    while (a.tokens() + b.tokens() > most_) {
      (a.tokens() > b.tokens() ? a : b).remove(random.uniform() < 0.5);
    }
    const int64_t tokens = a.tokens() + b.tokens();
    return {.row = {.pieces = {a.range(), b.range()},
                    .next_sentence_label = is_random ? 1 : 0,
                    .tokens = tokens,
                    .left_out = before - tokens},
            .unused = is_random ? chunk.count - own : 0};
  }

  // Sentences of another document from a random one on, until they have `target` tokens.
  Piece other_piece(int64_t document, int64_t target, RandomStream& random) const {
    int64_t other = random.below(index_.documents() - 1);
    if (other >= document) ++other;
    const int64_t count = index_.end(other) - index_.first(other);
    const int64_t begin = index_.first(other) + random.below(count);
    int64_t end = begin, tokens = 0;
    while (end < index_.end(other) && (end == begin || tokens < target)) {
      tokens += index_.sentence(other, end++).size;
    }
    return {index_, other, begin, end};
  }

  const SentenceIndex index_;
  const int64_t most_;
  std::vector<Chunk> chunks_;
};

}  // namespace

SentenceIndex::SentenceIndex(const TokenSequence& tokens, const text::SentenceMarks& marks,
                             const std::vector<TokenRange>& documents) {
  constexpr int64_t kBlock = 1 << 15;
  std::vector<uint32_t> block;
  for (const TokenRange& document : documents) {
    int64_t begin = document.begin;
    const int64_t end = document.begin + document.size;
    for (int64_t at = begin; at < end;) {
      block.resize(std::min(kBlock, end - at));
      tokens.copy(at, block);
      for (size_t i = 0; i < block.size(); ++i) {
        if (block[i] != marks.sentence && block[i] != marks.document) continue;
        const int64_t place = at + static_cast<int64_t>(i);
        add(document.begin, begin, place);
        begin = place + 1;
      }
      at += static_cast<int64_t>(block.size());
    }
    add(document.begin, begin, end);
    if (std::ssize(sentences_) == first_.back()) continue;
    first_.push_back(std::ssize(sentences_));
    bases_.push_back(document.begin);
  }
}

void SentenceIndex::add(int64_t base, int64_t begin, int64_t end) {
  if (end <= begin) return;
  constexpr int64_t kMost = UINT32_MAX;
  if (end - base > kMost) {
    throw Error(ErrorCode::kUnsupported, "a document has more than 2^32 tokens", "data.train.file",
                "divide it");
  }
  sentences_.push_back({static_cast<uint32_t>(begin - base), static_cast<uint32_t>(end - begin)});
}

std::unique_ptr<SentenceRows> full_sentence_rows(const TokenSequence& tokens,
                                                 const text::SentenceMarks& marks,
                                                 const std::vector<TokenRange>& documents,
                                                 int64_t length) {
  FLEET_CHECK(length >= 3, "rows without room");
  return std::make_unique<FullSentences>(SentenceIndex(tokens, marks, documents), length);
}

std::unique_ptr<SentenceRows> sentence_pair_rows(const TokenSequence& tokens,
                                                 const text::SentenceMarks& marks,
                                                 const std::vector<TokenRange>& documents,
                                                 int64_t length, double short_sequences,
                                                 uint64_t seed) {
  FLEET_CHECK(length >= 5, "rows without room");
  SentenceIndex index(tokens, marks, documents);
  if (index.documents() < 2) {
    throw Error(ErrorCode::kUsage,
                "the next sentence is to be told from one of another document, and the data have " +
                    counted(index.documents(), "document") + " with a sentence",
                "data.next_sentence", "give more documents, or set it to false");
  }
  return std::make_unique<SentencePairs>(std::move(index), length, short_sequences, seed);
}

SentenceRow assemble_row(const TokenSequence& tokens, const text::SentenceMarks& marks,
                         std::span<const TokenRange> pieces, uint32_t cls, uint32_t sep) {
  SentenceRow row{.ids = {cls}, .begins = {1}, .ends = {}};
  std::vector<uint32_t> read;
  for (const TokenRange& piece : pieces) {
    read.resize(piece.size);
    tokens.copy(piece.begin, read);
    uint8_t begins = 1;
    for (const uint32_t id : read) {
      if (id == marks.sentence || id == marks.document) {
        begins = 1;
        continue;
      }
      row.ids.push_back(id);
      row.begins.push_back(std::exchange(begins, uint8_t{0}));
    }
    row.ids.push_back(sep);
    row.begins.push_back(1);
    row.ends.push_back(static_cast<int64_t>(row.ids.size()));
  }
  return row;
}

}  // namespace fleet::data
