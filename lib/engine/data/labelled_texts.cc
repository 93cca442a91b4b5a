#include "data/labelled_texts.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/table_file.h"
#include "data/tar_files.h"
#include "text/part_workers.h"
#include "text/utf8.h"

namespace fleet::data {
namespace {

constexpr size_t kRowsOfAPart = 512;
constexpr std::chrono::seconds kBetweenLines{10};

text::EncodeOptions options_of(const Settings& data) {
  text::EncodeOptions options;
  text::TruncateTo to{.most = static_cast<size_t>(data.integer("sequence_length"))};
  const auto rule = text::truncation_rule(data.text("truncation"));
  if (rule) to.rule = *rule;
  options.truncation = to;
  return options;
}

// Encodes rows; one object for all threads.
class RowEncoder {
 public:
  RowEncoder(const text::Tokenizer& tokenizer, const Settings& data)
      : tokenizer_(tokenizer),
        options_(options_of(data)),
        refuses_(data.text("truncation") == "error"),
        pairs_(!data.text("text_pair_column").empty()) {
    const size_t special = tokenizer.special_tokens(pairs_);
    if (options_.truncation->most > special) return;
    throw Error(ErrorCode::kUsage,
                "the tokenizer adds " + std::to_string(special) + " tokens to a row",
                "data.sequence_length", "use a larger number");
  }

  // Sets row->wrong if it cannot be used.
  text::Encoding encode(TextRow* row) const {
    text::Encoding tokens;
    try {
      tokens = pairs_ ? tokenizer_.encode(row->first, row->second, options_)
                      : tokenizer_.encode(row->first, options_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUsage) throw;
      row->wrong = error.failure();
      return {};
    }
    if (refuses_ && tokens.removed > 0) {
      throw Error(ErrorCode::kUsage,
                  "the row has " + std::to_string(tokens.size() + tokens.removed) +
                      " tokens, more than data.sequence_length",
                  row->where,
                  "set data.sequence_length to a larger number, or data.truncation to "
                  "longest_first");
    }
    if (tokens.size() == tokenizer_.special_tokens(pairs_)) {
      row->wrong = "the tokenizer makes no token of the text";
      return {};
    }
    return tokens;
  }

 private:
  const text::Tokenizer& tokenizer_;
  const text::EncodeOptions options_;
  const bool refuses_, pairs_;
};

}  // namespace

Schema text_row_keys() {
  return row_keys(128, "Tokens of a row, with those of the tokenizer's own")
      .text("text_column", "text", "Column of the texts, or key of them in JSON lines")
      .text("text_pair_column", "", "Column of a second text; default: rows have one text")
      .boolean("header", true,
               "The first line of .tsv and .csv files names the columns; false: they are numbered "
               "from 1, as \"data.text_column\": \"4\"")
      .choice("truncation", "longest_first",
              {"longest_first", "only_first", "only_second", "error"},
              "Treatment of texts that are longer than a row: cut the longer one of the two, the "
              "first, or the second at its end; error: end the job");
}

TextColumns text_columns(const Settings& data, bool labelled) {
  TextColumns columns{.first = data.text("text_column"),
                      .second = data.text("text_pair_column"),
                      .labels = {},
                      .header = data.boolean("header")};
  if (labelled) columns.labels = data.texts("label_column");
  return columns;
}

std::vector<TextRow> read_text_rows(const std::vector<std::string>& words, const std::string& root,
                                    const TextColumns& columns, const std::string& key) {
  TableRequest request{.columns = {columns.first},
                       .header = columns.header,
                       .keys = "data.text_column, data.text_pair_column or data.label_column"};
  const bool pairs = !columns.second.empty();
  if (pairs) request.columns.push_back(columns.second);
  request.columns.insert(request.columns.end(), columns.labels.begin(), columns.labels.end());
  std::vector<TextRow> rows;
  for (const std::string& word : words) {
    check_named_path(under_root(root, word), key);
    for (const std::string& path : shard_names(word, root)) {
      read_table(path, request, [&](TableRow fields) {
        TextRow row;
        row.where = shown_path(path) + ":" + std::to_string(fields.line);
        row.wrong = std::move(fields.wrong);
        if (row.wrong.empty()) {
          row.first = std::move(fields.fields[0]);
          if (pairs) row.second = std::move(fields.fields[1]);
          row.labels.assign(std::make_move_iterator(fields.fields.begin() + (pairs ? 2 : 1)),
                            std::make_move_iterator(fields.fields.end()));
          if (trim(row.first).empty()) row.wrong = "the text is empty";
          if (pairs && trim(row.second).empty()) row.wrong = "the second text is empty";
          if (!text::is_valid_utf8(row.first) || !text::is_valid_utf8(row.second)) {
            row.wrong = "the text is not UTF-8";
          }
        }
        rows.push_back(std::move(row));
      });
    }
  }
  return rows;
}

TextTokens::TextTokens(std::vector<TextRow>* rows, const JobTokenizer& opened,
                       const SourceContext& context)
    : rows_(rows->size()),
      longest_(context.data->integer("sequence_length")),
      padding_(padding_token(opened)) {
  const RowEncoder encoder(*opened.tokenizer, *context.data);
  std::atomic<int64_t> cut{0}, done{0};
  const auto work = [&](size_t part) {
    const size_t begin = part * kRowsOfAPart, end = std::min(begin + kRowsOfAPart, rows->size());
    for (size_t i = begin; i < end; ++i) {
      TextRow& row = (*rows)[i];
      if (!row.wrong.empty()) continue;
      const text::Encoding tokens = encoder.encode(&row);
      rows_[i].ids = tokens.ids;
      rows_[i].types.assign(tokens.type_ids.begin(), tokens.type_ids.end());
      cut += tokens.removed > 0 ? 1 : 0;
    }
    done += static_cast<int64_t>(end - begin);
  };
  auto next = std::chrono::steady_clock::now() + kBetweenLines;
  text::PartWorkers::run((rows->size() + kRowsOfAPart - 1) / kRowsOfAPart,
                         static_cast<int>(available_cores().size()), [&] { return work; },
                         [&] {
                           if (!context.verbose || std::chrono::steady_clock::now() < next) return;
                           next += kBetweenLines;
                           spdlog::info("tokenized {} of {} texts", done.load(), rows->size());
                         });
  cut_ = cut;
}

void TextTokens::fill(int64_t row, int64_t length, std::span<void* const> to) const {
  text::Encoding tokens;
  tokens.ids = rows_[row].ids;
  tokens.type_ids.assign(rows_[row].types.begin(), rows_[row].types.end());
  fill_encoder_row(tokens, length, padding_, to);
}

void TextTokens::keep(const std::vector<bool>& kept) {
  size_t count = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!kept[i]) continue;
    if (count != i) rows_[count] = std::move(rows_[i]);
    ++count;
  }
  rows_.resize(count);
}

// Leaves out wrong rows, or ends the job.
static void drop_wrong(OpenedTexts* opened, TextTokens* tokens, const SourceContext& context) {
  constexpr int64_t kShown = 3;
  std::vector<bool> kept;
  std::vector<TextRow> rows;
  int64_t wrong = 0;
  for (TextRow& row : opened->rows) {
    kept.push_back(row.wrong.empty());
    if (kept.back()) {
      row.first.clear();
      row.second.clear();
      rows.push_back(std::move(row));
      continue;
    }
    if (!context.replaces_damaged) {
      throw Error(ErrorCode::kUsage, row.wrong, row.where,
                  "correct or remove the row, or set data.on_damaged to skip");
    }
    if (context.verbose && wrong++ < kShown) spdlog::warn("{}: {}", row.where, row.wrong);
  }
  if (wrong > 0) {
    spdlog::warn("{}: {} of {} rows are left out (data.on_damaged)",
                 context.train ? "data.train" : "data.test", wrong, kept.size());
  }
  tokens->keep(kept);
  opened->rows = std::move(rows);
}

OpenedTexts open_texts(const Settings& split, const SourceContext& context,
                       const std::function<void(TextRow& row)>& take) {
  const std::string key = context.train ? "data.train.file" : "data.test.file";
  const Settings& data = *context.data;
  OpenedTexts opened;
  if (split.texts("file").empty()) {
    no_test_data(context, key);
    return opened;
  }
  const JobTokenizer tokenizer = open_job_tokenizer(context);
  opened.rows = read_text_rows(split.texts("file"), context.root, text_columns(data, true), key);
  for (TextRow& row : opened.rows) {
    if (row.wrong.empty()) take(row);
  }
  const auto tokens = std::make_shared<TextTokens>(&opened.rows, tokenizer, context);
  drop_wrong(&opened, tokens.get(), context);
  if (opened.rows.empty()) {
    throw Error(ErrorCode::kUsage, "the files have no row that can be used", key,
                "correct the rows, or name other files");
  }
  if (context.verbose && tokens->cut() > 0) {
    spdlog::warn("{}: {} of {} rows have more than {} tokens and are cut (data.truncation={})",
                 context.train ? "data.train" : "data.test", tokens->cut(), tokens->size(),
                 data.integer("sequence_length"), data.text("truncation"));
  }
  opened.tokens = tokens;
  opened.tokenizer = tokenizer.identity();
  return opened;
}

void TextSamples::fill(int64_t index, uint64_t /*key*/, std::span<void* const> to) const {
  texts_.tokens->fill(index, length_, to);
}

Schema text_file_keys() {
  return text_files_key(
      "Files or patterns: tables with a first line (.tsv, .csv) or JSON lines (.jsonl)");
}

namespace {

// Samples of a part of the rows, in rows of another length.
class TextPart : public TextSamples {
 public:
  TextPart(OpenedTexts texts, std::vector<int64_t> rows, int64_t length)
      : TextSamples(std::move(texts), length), rows_(std::move(rows)) {}
  int64_t size() const override { return std::ssize(rows_); }
  std::string name(int64_t index) const override { return TextSamples::name(rows_[index]); }
  int64_t length(int64_t index) const { return TextSamples::length(rows_[index]); }
  void fill(int64_t index, uint64_t key, std::span<void* const> to) const override {
    TextSamples::fill(rows_[index], key, to);
  }

 private:
  const std::vector<int64_t> rows_;
};

}  // namespace

UnlabelledSamples unlabelled_texts(const std::vector<std::string>& words,
                                   const SourceContext& context) {
  const JobTokenizer tokenizer = open_job_tokenizer(context);
  OpenedTexts opened;
  opened.rows = read_text_rows(words, "", text_columns(*context.data, false), "predict.input");
  const auto tokens = std::make_shared<TextTokens>(&opened.rows, tokenizer, context);
  opened.tokens = tokens;
  UnlabelledSamples all{.unit = "text"};
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < tokens->size(); ++i) {
    all.names.push_back(opened.rows[i].where);
    all.failures.push_back(opened.rows[i].wrong);
    sizes.push_back(opened.rows[i].wrong.empty() ? tokens->length(i) : 0);
  }
  for (RowGroup& group : rows_by_length(sizes, tokens->longest())) {
    auto part = std::make_unique<TextPart>(opened, group.rows, group.length);
    all.groups.push_back({std::move(group.rows), std::move(part)});
  }
  return all;
}

}  // namespace fleet::data
