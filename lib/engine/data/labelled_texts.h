// One or two texts with labels a row of a table, as rows of tokens for encoders. Internal to data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/encoder_row.h"
#include "data/source.h"

namespace fleet::data {

struct TextRow {
  std::string first, second;        // second: "" for one text
  std::vector<std::string> labels;  // a field for each label column
  std::string where;                // "reviews.tsv:12"
  std::string wrong;                // why the row cannot be used; "": it can
};

struct TextColumns {
  std::string first, second;        // second: "" for one text
  std::vector<std::string> labels;  // none for predictions
  bool header = true;
};

// data.text_column, text_pair_column, label_column (if `labelled`) and header.
TextColumns text_columns(const Settings& data, bool labelled);

// The rows of the tables that these words name: files, or patterns. Rows whose first text is empty
// are wrong, too. kUsage naming the key if a word names nothing; errors of read_table().
std::vector<TextRow> read_text_rows(const std::vector<std::string>& words, const std::string& root,
                                    const TextColumns& columns, const std::string& key);

// Tokens of texts, in little memory. Immutable once built.
class TextTokens {
 public:
  // Encodes the rows that are not wrong on all cores, with a line now and then if it takes long. A
  // row that data.truncation cannot make short enough becomes wrong; with truncation "error", a
  // longer one is kUsage at its place.
  TextTokens(std::vector<TextRow>* rows, const JobTokenizer& opened, const SourceContext& context);

  int64_t size() const { return std::ssize(rows_); }
  int64_t length(int64_t row) const { return std::ssize(rows_[row].ids); }  // 0: a wrong row
  int64_t longest() const { return longest_; }  // the rows' limit, data.sequence_length
  int64_t cut() const { return cut_; }          // rows that lost tokens
  // Fills the four columns of an encoder. length: from length(row) up.
  void fill(int64_t row, int64_t length, std::span<void* const> to) const;
  // Drops the rows that are not kept.
  void keep(const std::vector<bool>& kept);

 private:
  struct Row {
    std::vector<uint32_t> ids;
    std::vector<uint8_t> types;
  };
  std::vector<Row> rows_;
  const int64_t longest_;
  const uint32_t padding_;
  int64_t cut_ = 0;
};

// The texts of an opened split, without labels.
struct OpenedTexts {
  std::vector<TextRow> rows;  // their texts are empty: they are tokens now
  std::shared_ptr<const TextTokens> tokens;
  TokenizerIdentity tokenizer;
};
// The rows of data.train.file or data.test.file that can be used; null tokens if the split names
// none. Calls take(row) for each row, which may set row.wrong. By data.on_damaged, a wrong row ends
// the job (kUsage at its place) or is left out and counted in a line. kUsage if no row is left.
OpenedTexts open_texts(const Settings& split, const SourceContext& context,
                       const std::function<void(TextRow& row)>& take);

// Rows as samples of a source: the columns of an encoder; derived classes append theirs.
class TextSamples : public Source {
 public:
  TextSamples(OpenedTexts texts, int64_t length) : texts_(std::move(texts)), length_(length) {}
  int64_t size() const override { return texts_.tokens->size(); }
  std::vector<Column> columns() const override { return encoder_columns(length_); }
  void fill(int64_t index, uint64_t key, std::span<void* const> to) const override;
  std::string name(int64_t index) const override { return texts_.rows[index].where; }
  TokenizerIdentity tokenizer() const override { return texts_.tokenizer; }
  int64_t length(int64_t index) const override { return texts_.tokens->length(index); }

 protected:
  const OpenedTexts texts_;
  const int64_t length_;
};

// SourceType's parts that sources of such rows share.
Schema text_file_keys();
// The samples of predict.input (SourceType::unlabelled).
UnlabelledSamples unlabelled_texts(const std::vector<std::string>& words,
                                   const SourceContext& context);

// The keys that make tokens of rows: tokenizer, sequence_length, truncation and the columns.
Schema text_row_keys();

}  // namespace fleet::data
