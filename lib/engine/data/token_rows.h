// Rows of tokens for language models: which tokens of a long sequence make up a sample, and what is
// to be predicted there. Pure arithmetic over the tokens; immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fleet::data {

// All tokens of a split, one after the other.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual int64_t size() const = 0;
  // Tokens [begin, begin + to.size()), which exist.
  virtual void copy(int64_t begin, std::span<uint32_t> to) const = 0;
};

// The token between documents. nanoGPT's files have it after each document, llm.c's before it.
struct DocumentMark {
  std::optional<uint32_t> token;  // nullopt: all tokens are one document
  bool begins = false;            // the token is the first of its document; else the last
};

// Consecutive tokens [begin, begin + size).
struct TokenRange {
  int64_t begin = 0, size = 0;
  bool operator==(const TokenRange&) const = default;
};

// The documents of a sequence with their marks, in order. Reads all tokens if there is a mark.
std::vector<TokenRange> documents_of(const TokenSequence& tokens, const DocumentMark& mark);

// The documents of one part of a division: of n documents, round(n x part), at least one and not
// all, are for validation, chosen by the seed. One document alone is cut: its last tokens are for
// validation. 0 < part < 1. kUsage if a part would be empty.
std::vector<TokenRange> divided(const std::vector<TokenRange>& documents, double part,
                                uint64_t seed, bool validates);

// Consecutive inputs of a row that belong to one document. The token to predict at input i is the
// one behind it in the sequence, or behind the last one of all the mark.
struct RowPiece {
  int64_t begin = 0;      // index of the first input in the sequence
  int64_t tokens = 0;     // number of inputs, with the prefix
  bool prefixed = false;  // the first input is the prefix token, in front of `begin`
  int64_t skipped = 0;    // inputs at the start without weight: they are context
  int64_t tail = 0;       // inputs at the end without weight
  float weight = 1;       // weight of each other input in the loss
  double sum() const { return static_cast<double>(tokens - skipped - tail) * weight; }
  bool operator==(const RowPiece&) const = default;
};

class RowLayout {
 public:
  virtual ~RowLayout() = default;
  virtual int64_t size() const = 0;
  virtual std::vector<RowPiece> row(int64_t index) const = 0;
  virtual double weight(int64_t index) const;  // the sum over its pieces
  int64_t tokens(int64_t index) const;         // the inputs of its pieces
};

// Windows over all documents, one after the other, as nanoGPT and llm.c: window i starts at token i
// x length. Tokens behind the last whole window are not used. The pieces of a window end with
// its documents; the token that ends a document has no weight as an input. tokens must outlive it.
std::unique_ptr<RowLayout> stream_rows(const TokenSequence& tokens, const DocumentMark& mark,
                                       std::vector<TokenRange> ranges, int64_t length);

// Rows of whole documents: the last token of a document is only predicted. Longer documents are
// cut into rows and a rest; no token to predict is lost. packs: best fit, several documents in a
// row (text/packing.h); else each row has one document. mark: with `begins`, the mark of the next
// document is predicted after the last token.
std::unique_ptr<RowLayout> document_rows(const std::vector<TokenRange>& documents,
                                         const DocumentMark& mark, int64_t length, bool packs);

// Evaluation as lm-eval's rolling windows (lm_eval/utils.py, get_rolling_token_windows() with
// context_len 1): every token of a document is predicted once, the first from the prefix token. The
// last window of a document is as long as the others; tokens predicted before are its context.
// Documents without their marks.
std::unique_ptr<RowLayout> rolling_rows(const std::vector<TokenRange>& documents, int64_t length);

// Evaluation as in transformers' documentation of perplexity (docs/source/en/perplexity.md):
// windows of `length` tokens begin every `stride` tokens; each counts the tokens that no window
// before had. Its sums leave out one token a window (huggingface/transformers#30975), so the
// weights of a window's n predicted tokens add up to what that page divides by.
std::unique_ptr<RowLayout> strided_rows(const std::vector<TokenRange>& documents, int64_t length,
                                        int64_t stride);

// Documents without the token that marks them.
std::vector<TokenRange> without_marks(const std::vector<TokenRange>& documents,
                                      const TokenSequence& tokens, const DocumentMark& mark);

// kUsage naming `name` and the place of the first token that is not below `vocabulary` (0: not
// checked). Of long sequences the first 2^28 tokens are read, which takes less than a second;
// fill_row() checks the others.
void check_tokens(const TokenSequence& tokens, int64_t vocabulary, const std::string& name);

// One row as the columns of a sample; each has the row's length.
struct RowColumns {
  std::span<int64_t> input_ids, position_ids, document_ids, labels;
  std::span<float> loss_weight;
};
struct RowTokens {
  uint32_t padding = 0;  // input behind the last piece; its document is -1
  uint32_t prefix = 0;   // for RowPiece::prefixed
  uint32_t mark = 0;     // to predict behind the last token of the sequence
};
// Positions restart with each piece. Tokens without weight have the label -100. kUsage naming the
// token if one is not below `vocabulary` (0: not checked).
void fill_row(const TokenSequence& tokens, const std::vector<RowPiece>& row,
              const RowTokens& special, int64_t vocabulary, const RowColumns& to);

}  // namespace fleet::data
