#include "data/label_rows.h"

#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet::data {
namespace {

void append(const text::Encoding& word, int64_t label, LabelledRow* row) {
  const auto number = static_cast<int32_t>(row->labels.size());
  text::Encoding& all = row->tokens;
  all.ids.insert(all.ids.end(), word.ids.begin(), word.ids.end());
  all.type_ids.insert(all.type_ids.end(), word.size(), 0);
  all.words.insert(all.words.end(), word.size(), number);
  all.texts.insert(all.texts.end(), word.size(), 0);
  row->labels.push_back(label);
}

}  // namespace

LabelledRows::LabelledRows(const JobTokenizer& opened, const SourceContext& context,
                           const std::vector<std::string>& names)
    : tokenizer_(*opened.tokenizer),
      context_(context),
      truncation_(context.data->text("truncation")),
      capacity_(static_cast<size_t>(context.data->integer("sequence_length"))) {
  const size_t special = tokenizer_.special_tokens(false);
  if (capacity_ <= special) {
    throw Error(ErrorCode::kUsage,
                "the tokenizer adds " + counted(static_cast<int64_t>(special), "token"),
                "data.sequence_length", "use a larger number");
  }
  capacity_ -= special;
  for (size_t i = 0; i < names.size(); ++i) labels_[names[i]] = static_cast<int64_t>(i);
}

std::vector<WordPlace> LabelledRows::add(const TaggedText& text) {
  std::vector<WordPlace> places(text.words.size(), WordPlace::kCutOff);
  LabelledRow row{.text = counts_.texts++, .part = 0, .where = text.where()};
  bool cut = false;
  for (size_t w = 0; w < text.words.size(); ++w) {
    text::Encoding word = tokenizer_.encode(text.words[w], without_special_tokens());
    if (word.size() == 0) {
      ++counts_.empty_words;
      places[w] = WordPlace::kNoToken;
      continue;
    }
    if (word.size() > capacity_) {
      ++counts_.cut_words;
      word = part_of(word, 0, capacity_);
    }
    if (row.tokens.size() + word.size() > capacity_) {
      cut = true;
      if (truncation_ == "error") refuse_long(text);
      if (truncation_ == "cut") {
        counts_.lost_words += static_cast<int64_t>(text.words.size() - w);
        break;
      }
      rows_.push_back(row);
      row = {.text = row.text, .part = row.part + 1, .where = text.where()};
    }
    append(word, label_of(text, w), &row);
    places[w] = WordPlace::kRow;
  }
  counts_.cut_texts += cut ? 1 : 0;
  if (!row.labels.empty()) rows_.push_back(std::move(row));
  return places;
}

void LabelledRows::refuse_long(const TaggedText& text) const {
  throw Error(ErrorCode::kUsage, "the text has more tokens than a row", text.where(),
              "set data.sequence_length to a larger number, or data.truncation to windows");
}

int64_t LabelledRows::label_of(const TaggedText& text, size_t word) {
  if (text.labels.empty()) return 0;
  const std::string& label = text.labels[word];
  long long number = 0;  // NOLINT(runtime/int): type of parse_int()
  if (const auto found = labels_.find(label); found != labels_.end()) return found->second;
  const bool numbered = parse_int(label, &number);
  if (numbered && number == kNoTokenLabel) return kNoTokenLabel;
  if (numbered && (labels_.empty() || number < std::ssize(labels_))) {
    if (number < 0 || (context_.classes > 0 && number >= context_.classes)) {
      check_label(number, context_, text.where(word));
    }
    return number;
  }
  if (!context_.train) {
    if (counts_.unknown_labels++ == 0) {
      counts_.unknown = shown_name(label, 100) + " (" + text.where(word) + ")";
    }
    return kNoTokenLabel;
  }
  throw Error(ErrorCode::kUsage, "the label '" + shown_name(label, 100) + "' is not a class",
              text.where(word), "add it to data.class_names, or correct it");
}

void log_counts(const LabelledRowCounts& counts, size_t rows, const std::string& what) {
  if (counts.cut_texts > 0) {
    const std::string longer = std::to_string(counts.cut_texts) + " of " +
                               counted(counts.texts, "text") +
                               " longer than data.sequence_length: ";
    if (counts.lost_words > 0) {
      spdlog::warn("{}: {}{} cut off", what, longer, counted(counts.lost_words, "word"));
    } else {
      spdlog::info("{}: {}{}", what, longer, counted(static_cast<int64_t>(rows), "row"));
    }
  }
  if (counts.empty_words > 0) {
    spdlog::warn("{}: left out, because the tokenizer makes no token of it: {}", what,
                 counted(counts.empty_words, "word"));
  }
  if (counts.cut_words > 0) {
    spdlog::warn("{}: {} longer than a row: the last tokens are cut off", what,
                 counted(counts.cut_words, "word"));
  }
  if (counts.unknown_labels > 0) {
    spdlog::warn(
        "{}: {} with a label that training does not have, first {}: not counted in metrics", what,
        counted(counts.unknown_labels, "word"), counts.unknown);
  }
}

}  // namespace fleet::data
