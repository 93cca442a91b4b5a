// Rows of tokens with a label for each word, from texts whose words have labels. Internal to data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/encoder_row.h"
#include "data/tagged_texts.h"

namespace fleet::data {

constexpr int64_t kNoTokenLabel = -100;

// A text, or a part of one, that fits into a row.
struct LabelledRow {
  int64_t text = 0, part = 0;
  std::string where;
  text::Encoding tokens;        // without special tokens; `words` counts the row's words
  std::vector<int64_t> labels;  // by word
};

struct LabelledRowCounts {
  int64_t texts = 0, cut_texts = 0;  // cut_texts: those in more than one row, or cut
  int64_t lost_words = 0;            // behind the end of a row that is cut
  int64_t empty_words = 0;           // the tokenizer makes no token of them
  int64_t cut_words = 0;             // longer than a row
  int64_t unknown_labels = 0;
  std::string unknown;  // an example, with its place
};

enum class WordPlace : uint8_t { kRow, kNoToken, kCutOff };

// Makes rows of texts, by data.sequence_length and data.truncation. Not thread-safe.
class LabelledRows {
 public:
  // names: class names by label; empty if labels are numbers. The tokenizer must outlive it.
  // kUsage if a row has no place for words.
  LabelledRows(const JobTokenizer& opened, const SourceContext& context,
               const std::vector<std::string>& names);

  // By word: whether a row has it. A text without labels gets the label 0 for each word. kUsage at
  // the word's place for a label that is not a class; in data for tests only numbers are refused,
  // and other labels count as none. kUsage for a long text, if data.truncation is "error".
  std::vector<WordPlace> add(const TaggedText& text);

  const LabelledRowCounts& counts() const { return counts_; }
  std::vector<LabelledRow> take() { return std::move(rows_); }

 private:
  [[noreturn]] void refuse_long(const TaggedText& text) const;
  int64_t label_of(const TaggedText& text, size_t word);

  const text::Tokenizer& tokenizer_;
  const SourceContext& context_;
  const std::string truncation_;
  size_t capacity_;
  std::map<std::string, int64_t> labels_;
  std::vector<LabelledRow> rows_;
  LabelledRowCounts counts_;
};

// Lines about texts that were cut, left out or not counted. They begin with `what`, such as
// "data.train".
void log_counts(const LabelledRowCounts& counts, size_t rows, const std::string& what);

}  // namespace fleet::data
