// Texts whose words have labels, such as names of persons and places: JSON lines, or columns as
// CoNLL's. The first token of a word has its label, its other tokens have none. Tokens are made
// when the source is opened.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/encoder_row.h"
#include "data/label_rows.h"
#include "data/tagged_texts.h"

namespace fleet::data {
namespace {

class TokenLabels : public Source {
 public:
  TokenLabels(std::vector<LabelledRow> rows, JobTokenizer opened, int64_t length,
              std::vector<std::string> names)
      : rows_(std::move(rows)),
        opened_(std::move(opened)),
        length_(length),
        padding_(padding_token(opened_)),
        names_(std::move(names)) {}

  static std::vector<Column> columns_of(int64_t length) {
    std::vector<Column> columns = encoder_columns(length);
    columns.push_back(
        {.name = "token_labels", .dtype = DType::kInt64, .shape = {length}, .by_length = true});
    columns.push_back(
        {.name = "loss_weight", .dtype = DType::kFloat32, .shape = {length}, .by_length = true});
    columns.push_back({"text", DType::kInt64, {}});
    columns.push_back({"part", DType::kInt64, {}});
    return columns;
  }

  int64_t size() const override { return std::ssize(rows_); }
  std::vector<Column> columns() const override { return columns_of(length_); }
  TokenizerIdentity tokenizer() const override { return opened_.identity(); }
  std::string name(int64_t index) const override { return rows_[index].where; }
  std::vector<std::string> class_names() const override { return names_; }
  double weight(int64_t index, uint64_t /*key*/) const override {
    return static_cast<double>(std::ranges::count_if(
        rows_[index].labels, [](int64_t label) { return label != kNoTokenLabel; }));
  }

  int64_t length(int64_t index) const override {
    return static_cast<int64_t>(rows_[index].tokens.size() +
                                opened_.tokenizer->special_tokens(false));
  }
  void fill(int64_t index, uint64_t /*key*/, std::span<void* const> to) const override {
    const LabelledRow& row = rows_[index];
    const text::Encoding whole = opened_.tokenizer->joined(row.tokens, nullptr);
    fill_encoder_row(whole, length_, padding_, to.first(4));
    const std::span labels(static_cast<int64_t*>(to[4]), static_cast<size_t>(length_));
    const std::span weights(static_cast<float*>(to[5]), static_cast<size_t>(length_));
    std::ranges::fill(labels, kNoTokenLabel);
    std::ranges::fill(weights, 0.0f);
    int32_t last = -1;
    for (size_t i = 0; i < whole.size(); ++i) {
      if (whole.texts[i] < 0 || whole.words[i] == last) continue;
      last = whole.words[i];
      labels[i] = row.labels[static_cast<size_t>(last)];
      weights[i] = labels[i] == kNoTokenLabel ? 0.0f : 1.0f;
    }
    *static_cast<int64_t*>(to[6]) = row.text;
    *static_cast<int64_t*>(to[7]) = row.part;
  }

 private:
  const std::vector<LabelledRow> rows_;
  const JobTokenizer opened_;
  const int64_t length_;
  const uint32_t padding_;
  const std::vector<std::string> names_;
};

TaggedKeys keys_of(const Settings& data) {
  return {.words = data.text("words_key"), .labels = data.text("labels_key")};
}

std::vector<TaggedText> read_texts(const std::vector<std::string>& paths, const TaggedKeys& keys) {
  std::vector<TaggedText> texts;
  for (const text::CorpusFile& file : text::find_corpus(paths)) {
    read_tagged_texts(file, keys, [&](TaggedText text) { texts.push_back(std::move(text)); });
  }
  return texts;
}

std::vector<TaggedText> read_split(const Settings& split, const SourceContext& context) {
  std::vector<std::string> paths;
  for (const std::string& word : split.texts("file")) {
    paths.push_back(under_root(context.root, word));
  }
  return read_texts(paths, keys_of(*context.data));
}

bool is_number(const std::string& label) {
  long long number = 0;  // NOLINT(runtime/int): type of parse_int()
  return parse_int(label, &number);
}

// The names of the classes by label: data.class_names, or the labels of the training data, sorted.
// Empty if these are numbers. texts: those of the split.
std::vector<std::string> label_names(const std::vector<TaggedText>& texts,
                                     const SourceContext& context) {
  const std::vector<std::string> given = context.data->texts("class_names");
  if (!given.empty()) return given;
  std::set<std::string> found;
  const auto add = [&](const std::vector<TaggedText>& all) {
    for (const TaggedText& text : all) found.insert(text.labels.begin(), text.labels.end());
  };
  const bool other = context.train_split && !context.train_split->texts("file").empty();
  add(other ? read_split(*context.train_split, context) : texts);
  if (std::ranges::all_of(found, is_number)) return {};
  if (context.classes > 0 && std::ssize(found) != context.classes) {
    throw Error(ErrorCode::kUsage,
                "the training data have " + counted(std::ssize(found), "label") +
                    ", and model.num_classes is " + std::to_string(context.classes),
                "model.num_classes",
                "set it to the number of labels, or name all labels in data.class_names");
  }
  return {found.begin(), found.end()};
}

std::unique_ptr<Source> open_labels(const Settings& split, const SourceContext& context) {
  const std::string key = context.train ? "data.train.file" : "data.test.file";
  if (split.texts("file").empty()) return no_test_data(context, key);
  check_text_paths(split, context);
  JobTokenizer opened = open_job_tokenizer(context);
  const std::vector<TaggedText> texts = read_split(split, context);
  std::vector<std::string> names = label_names(texts, context);
  LabelledRows builder(opened, context, names);
  const std::vector<bool> chosen = texts_of_part(std::ssize(texts), context.validation);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (chosen[i]) builder.add(texts[i]);
  }
  std::vector<LabelledRow> rows = builder.take();
  if (rows.empty()) {
    throw Error(ErrorCode::kUsage, "the files have no text with labels", key,
                "name files with texts, or remove it");
  }
  if (context.verbose) {
    log_counts(builder.counts(), rows.size(), context.train ? "data.train" : "data.test");
  }
  return std::make_unique<TokenLabels>(std::move(rows), std::move(opened),
                                       context.data->integer("sequence_length"), std::move(names));
}

// By word: why it has no prediction.
std::vector<std::string> reasons(const std::vector<WordPlace>& places) {
  std::vector<std::string> reasons;
  for (const WordPlace place : places) {
    reasons.push_back(place == WordPlace::kRow       ? ""
                      : place == WordPlace::kNoToken ? "the tokenizer makes no token of it"
                                                     : "cut off (data.truncation)");
  }
  return reasons;
}

UnlabelledSamples unlabelled_words(const std::vector<std::string>& words,
                                   const SourceContext& context) {
  for (const std::string& word : words) check_named_path(word, "predict.input");
  const JobTokenizer opened = open_job_tokenizer(context);
  TaggedKeys keys = keys_of(*context.data);
  keys.labelled = false;
  struct Texts {
    std::vector<TaggedText> all;
    std::vector<std::vector<WordPlace>> places;
  };
  const auto texts = std::make_shared<Texts>();
  texts->all = read_texts(words, keys);
  LabelledRows builder(opened, context, {});
  UnlabelledSamples all{.unit = "text"};
  for (const TaggedText& text : texts->all) {
    const auto& places = texts->places.emplace_back(builder.add(text));
    all.names.push_back(text.where());
    all.failures.emplace_back(std::ranges::count(places, WordPlace::kRow) > 0
                                  ? ""
                                  : "the tokenizer makes no token of the text");
  }
  std::vector<LabelledRow> rows = builder.take();
  if (context.verbose) log_counts(builder.counts(), rows.size(), "predict.input");
  std::vector<int64_t> sizes;
  for (const LabelledRow& row : rows) {
    sizes.push_back(
        static_cast<int64_t>(row.tokens.size() + opened.tokenizer->special_tokens(false)));
  }
  for (const RowGroup& group : rows_by_length(sizes, context.data->integer("sequence_length"))) {
    auto& [samples, source] = all.groups.emplace_back();
    std::vector<LabelledRow> own;
    for (const int64_t row : group.rows) {
      samples.push_back(rows[row].text);
      own.push_back(std::move(rows[row]));
    }
    source = std::make_unique<TokenLabels>(std::move(own), opened, group.length,
                                           std::vector<std::string>());
  }
  all.texts = [texts](int64_t sample, const std::string& what) {
    return what == "words" ? texts->all[sample].words : reasons(texts->places[sample]);
  };
  return all;
}

}  // namespace

FLEET_SOURCE(token_labels) {
  def.schema = [](bool) {
    return text_files_key(
        "Files, folders or patterns: JSON lines (.jsonl) with words and labels, or columns as "
        "CoNLL's, the word first and its label last, and an empty line between texts");
  };
  def.shared = [] {
    return row_keys(128, "Tokens of a row")
        .text("words_key", "tokens", "Key of the words in JSON lines")
        .text("labels_key", "",
              "Key of the labels in JSON lines, texts or numbers; default: labels, or ner_tags")
        .choice("truncation", "windows", {"windows", "cut", "error"},
                "Treatment of a text that is longer than a row: windows: several rows, cut between "
                "words; cut: its first tokens; error: end the job");
  };
  def.has_classes = true;
  def.divides = true;
  declare_text_files(&def);
  def.columns = [](const Settings&, const SourceContext& context) {
    return TokenLabels::columns_of(context.data->integer("sequence_length"));
  };
  def.open = open_labels;
  def.unlabelled = unlabelled_words;
}

}  // namespace fleet::data
