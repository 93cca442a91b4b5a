// Rows of sentences, for models that predict masked tokens: which sentences of a sequence make up a
// sample. Pure arithmetic over the tokens; immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/token_rows.h"
#include "text/sentences.h"

namespace fleet::data {

// Where the sentences of documents are: 8 bytes a sentence.
class SentenceIndex {
 public:
  SentenceIndex(const TokenSequence& tokens, const text::SentenceMarks& marks,
                const std::vector<TokenRange>& documents);

  // Documents that have a sentence. Their sentences are numbered on.
  int64_t documents() const { return std::ssize(bases_); }
  int64_t first(int64_t document) const { return first_[document]; }
  int64_t end(int64_t document) const { return first_[document + 1]; }
  TokenRange sentence(int64_t document, int64_t number) const {
    const Sentence& one = sentences_[number];
    return {bases_[document] + one.offset, one.size};
  }

 private:
  struct Sentence {
    uint32_t offset, size;  // offset: behind the start of its document
  };
  void add(int64_t base, int64_t begin, int64_t end);

  std::vector<Sentence> sentences_;
  std::vector<int64_t> bases_;        // by document: its first token
  std::vector<int64_t> first_ = {0};  // by document: its first sentence; then their number
};

// The pieces of a row: consecutive tokens of a document each, whose marks between sentences do not
// count.
struct RowPieces {
  std::vector<TokenRange> pieces;
  // 0: the second piece follows the first one in its document; 1: it is from another document.
  // -100 if rows are not pairs.
  int64_t next_sentence_label = -100;
  int64_t tokens = 0;
  int64_t left_out = 0;  // tokens that a pair leaves out because it is longer than the row
};

class SentenceRows {
 public:
  virtual ~SentenceRows() = default;
  virtual int64_t size() const = 0;
  // key: for the draws of the row, as for Source::fill(); only pairs use it.
  virtual RowPieces row(int64_t index, uint64_t key) const = 0;
};

// Rows of full sentences from consecutive documents, as RoBERTa's FULL-SENTENCES (Liu et al.,
// 2019): a row takes sentences while they fit. Each piece is of another document. A sentence longer
// than a row is cut; no token is left out. length: tokens of a row with [CLS], and a [SEP] behind
// each piece. documents: consecutive tokens with their marks.
std::unique_ptr<SentenceRows> full_sentence_rows(const TokenSequence& tokens,
                                                 const text::SentenceMarks& marks,
                                                 const std::vector<TokenRange>& documents,
                                                 int64_t length);

// Pairs of pieces for next-sentence prediction, as create_pretraining_data.py of BERT (Devlin et
// al., 2019) makes them: sentences of a document until the row is full, divided at random; with
// probability one half, and always behind a single sentence, the second piece is from another
// document and the sentences that it replaces begin the next row. A pair that is too long loses
// tokens at its ends. length: tokens of a row with [CLS] and two [SEP], at least 5.
// short_sequences: the probability that a document makes rows of a random, shorter length.
// documents: at least two.
//
// The seed decides which sentences belong to each row. The key of a row decides where they are
// divided and what the second piece is: other pairs in each epoch, and as many rows.
std::unique_ptr<SentenceRows> sentence_pair_rows(const TokenSequence& tokens,
                                                 const text::SentenceMarks& marks,
                                                 const std::vector<TokenRange>& documents,
                                                 int64_t length, double short_sequences,
                                                 uint64_t seed);

// The tokens of a row, without padding.
struct SentenceRow {
  std::vector<uint32_t> ids;  // [CLS] piece [SEP] piece [SEP] ...
  // By token: whether it begins a sentence, so that it begins a word in any case.
  std::vector<uint8_t> begins;
  std::vector<int64_t> ends;  // behind the [SEP] of each piece
};
SentenceRow assemble_row(const TokenSequence& tokens, const text::SentenceMarks& marks,
                         std::span<const TokenRange> pieces, uint32_t cls, uint32_t sep);

}  // namespace fleet::data
