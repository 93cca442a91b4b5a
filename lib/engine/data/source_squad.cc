// Questions and texts that answer them, in SQuAD's format. A row is a question and a window of the
// text; windows of a long text overlap. The answer is a span of the row's tokens, or the first
// token if the window does not have it, as in transformers' example
// (examples/pytorch/question-answering/run_qa.py).
#include <algorithm>
#include <memory>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "data/encoder_row.h"
#include "data/squad_file.h"

namespace fleet::data {
namespace {

struct Window {
  int64_t question = 0, part = 0;
  size_t begin = 0, count = 0;  // tokens of the context
};

struct QuestionRows {
  SquadFile file;
  std::vector<text::Encoding> contexts, questions;  // without special tokens
  std::vector<Window> windows;
};

constexpr size_t kColumns = 10;

// Tokens of a window's row.
int64_t length_of(const QuestionRows& rows, const Window& window, const JobTokenizer& opened) {
  return static_cast<int64_t>(rows.questions[window.question].size() + window.count +
                              opened.tokenizer->special_tokens(true));
}

class Squad : public Source {
 public:
  // windows: those of the samples.
  Squad(std::shared_ptr<const QuestionRows> rows, std::vector<Window> windows, JobTokenizer opened,
        int64_t length)
      : rows_(std::move(rows)),
        windows_(std::move(windows)),
        opened_(std::move(opened)),
        length_(length),
        padding_(padding_token(opened_)) {}

  static std::vector<Column> columns_of(int64_t length) {
    std::vector<Column> columns = encoder_columns(length);
    for (const char* name : {"start_position", "end_position", "question", "part"}) {
      columns.push_back({name, DType::kInt64, {}});
    }
    for (const char* name : {"token_begin", "token_end"}) {
      columns.push_back(
          {.name = name, .dtype = DType::kInt64, .shape = {length}, .by_length = true});
    }
    return columns;
  }
  std::vector<Column> columns() const override { return columns_of(length_); }
  int64_t size() const override { return std::ssize(windows_); }
  TokenizerIdentity tokenizer() const override { return opened_.identity(); }
  std::string name(int64_t index) const override {
    return "question " + shown_name(question_of(index).id, 60);
  }
  std::vector<std::string> texts(int64_t index, const std::string& what) const override {
    const SquadQuestion& question = question_of(index);
    if (what == "context") return {rows_->file.contexts[question.context]};
    if (what != "answers") return Source::texts(index, what);
    std::vector<std::string> answers;
    for (const SquadAnswer& answer : question.answers) answers.push_back(answer.text);
    return answers;
  }

  int64_t length(int64_t index) const override {
    return length_of(*rows_, windows_[index], opened_);
  }
  void fill(int64_t index, uint64_t /*key*/, std::span<void* const> to) const override {
    FLEET_CHECK(to.size() == kColumns, "the columns of a question");
    const Window& window = windows_[index];
    const SquadQuestion& question = question_of(index);
    const text::Encoding context =
        part_of(rows_->contexts[question.context], window.begin, window.count);
    const text::Encoding whole =
        opened_.tokenizer->joined(rows_->questions[window.question], &context);
    fill_encoder_row(whole, length_, padding_, to.first(4));
    const auto column = [&](int i) {
      return std::span(static_cast<int64_t*>(to[i]), static_cast<size_t>(length_));
    };
    const std::span<int64_t> begins = column(8), ends = column(9);
    std::ranges::fill(begins, -1);
    std::ranges::fill(ends, -1);
    for (size_t i = 0; i < whole.size(); ++i) {
      if (whole.texts[i] != 1) continue;
      begins[i] = whole.offsets[i].begin;
      ends[i] = whole.offsets[i].end;
    }
    const auto [first, last] = answer_tokens(question, begins, ends);
    const int64_t values[] = {first, last, window.question, window.part};
    for (int i = 0; i < 4; ++i) *static_cast<int64_t*>(to[4 + i]) = values[i];
  }

 private:
  const SquadQuestion& question_of(int64_t index) const {
    return rows_->file.questions[windows_[index].question];
  }

  // The tokens that the first answer begins and ends in; the first token of the row, twice, if the
  // window does not have the whole answer.
  static std::pair<int64_t, int64_t> answer_tokens(const SquadQuestion& question,
                                                   std::span<const int64_t> begins,
                                                   std::span<const int64_t> ends) {
    if (question.answers.empty()) return {0, 0};
    const SquadAnswer& answer = question.answers[0];
    const auto begin = static_cast<int64_t>(answer.begin);
    const auto end = begin + static_cast<int64_t>(answer.text.size());
    int64_t first = -1, last = -1;
    bool covers = false;  // a token reaches the end
    for (int64_t i = 0; i < std::ssize(begins); ++i) {
      if (begins[i] < 0) continue;
      if (begins[i] <= begin) first = i;
      covers = covers || ends[i] >= end;
      if (last < 0 && ends[i] >= end) last = i;
    }
    if (first < 0 || !covers) return {0, 0};
    return {first, last};
  }

  const std::shared_ptr<const QuestionRows> rows_;
  const std::vector<Window> windows_;
  const JobTokenizer opened_;
  const int64_t length_;
  const uint32_t padding_;
};

struct SquadCounts {
  int64_t long_texts = 0;      // questions whose text needs several windows
  int64_t cut_questions = 0;   // longer than data.question_length
  int64_t without_tokens = 0;  // the tokenizer makes no token of the context
};

// Windows as those of Hugging Face's tokenizers with a stride: each begins `capacity - stride`
// tokens after the previous one; the last one ends with the text.
void add_windows(int64_t question, size_t tokens, size_t capacity, size_t stride,
                 std::vector<Window>* windows) {
  Window window{.question = question, .part = 0, .begin = 0, .count = 0};
  for (;; window.begin += capacity - stride, ++window.part) {
    window.count = std::min(capacity, tokens - window.begin);
    windows->push_back(window);
    if (window.begin + window.count == tokens) break;
  }
}

SquadCounts make_windows(const SourceContext& context, const JobTokenizer& opened,
                         QuestionRows* rows) {
  const Settings& data = *context.data;
  const text::Tokenizer& tokenizer = *opened.tokenizer;
  const auto length = static_cast<size_t>(data.integer("sequence_length")),
             stride = static_cast<size_t>(data.integer("stride")),
             longest = static_cast<size_t>(data.integer("question_length"));
  const size_t special = tokenizer.special_tokens(true);
  text::EncodeOptions options = without_special_tokens();
  options.offsets = true;
  SquadCounts counts;
  for (const std::string& text : rows->file.contexts) {
    rows->contexts.push_back(tokenizer.encode(text, options));
  }
  for (const SquadQuestion& question : rows->file.questions) {
    text::Encoding encoded = tokenizer.encode(question.question, options);
    if (encoded.size() > longest) {
      ++counts.cut_questions;
      encoded = part_of(encoded, 0, longest);
    }
    const size_t taken = encoded.size() + special;
    if (length <= taken + stride) {
      throw Error(ErrorCode::kUsage,
                  "a row of " + std::to_string(length) + " tokens has no place for the question (" +
                      std::to_string(taken) +
                      " tokens with the tokenizer's own) and windows that "
                      "overlap by " +
                      std::to_string(stride),
                  "question " + shown_name(question.id, 60),
                  "set data.sequence_length to a larger number, or data.stride or "
                  "data.question_length to a smaller one");
    }
    const size_t tokens = rows->contexts[question.context].size();
    if (tokens == 0) ++counts.without_tokens;
    if (tokens > length - taken) ++counts.long_texts;
    if (tokens > 0) {
      add_windows(std::ssize(rows->questions), tokens, length - taken, stride, &rows->windows);
    }
    rows->questions.push_back(std::move(encoded));
  }
  return counts;
}

// what: begins the lines.
void log_counts(const SquadCounts& counts, const QuestionRows& rows, const SourceContext& context,
                const std::string& what) {
  if (!context.verbose) return;
  if (counts.long_texts > 0) {
    spdlog::info("{}: {} of {} with a text longer than a row: {}", what, counts.long_texts,
                 counted(std::ssize(rows.questions), "question"),
                 counted(std::ssize(rows.windows), "window"));
  }
  if (counts.cut_questions > 0) {
    spdlog::warn("{}: {} cut to data.question_length, {}", what,
                 counted(counts.cut_questions, "question"),
                 counted(context.data->integer("question_length"), "token"));
  }
  if (counts.without_tokens > 0) {
    spdlog::warn("{}: {} left out: the tokenizer makes no token of the text", what,
                 counted(counts.without_tokens, "question"));
  }
}

std::unique_ptr<Source> open_questions(const Settings& split, const SourceContext& context) {
  const std::string key = context.train ? "data.train.file" : "data.test.file";
  const std::vector<std::string> words = split.texts("file");
  if (words.empty()) return no_test_data(context, key);
  check_text_paths(split, context);
  JobTokenizer opened = open_job_tokenizer(context);
  QuestionRows rows;
  for (const std::string& word : words) {
    read_squad_file(under_root(context.root, word), &rows.file);
  }
  const std::vector<bool> chosen =
      texts_of_part(std::ssize(rows.file.contexts), context.validation);
  std::erase_if(rows.file.questions,
                [&](const SquadQuestion& question) { return !chosen[question.context]; });
  const SquadCounts counts = make_windows(context, opened, &rows);
  if (rows.windows.empty()) {
    throw Error(ErrorCode::kUsage, "the files have no question", key, "name files with questions");
  }
  log_counts(counts, rows, context, context.train ? "data.train" : "data.test");
  std::vector<Window> windows = std::move(rows.windows);
  return std::make_unique<Squad>(std::make_shared<const QuestionRows>(std::move(rows)),
                                 std::move(windows), std::move(opened),
                                 context.data->integer("sequence_length"));
}

UnlabelledSamples unlabelled_questions(const std::vector<std::string>& words,
                                       const SourceContext& context) {
  const JobTokenizer opened = open_job_tokenizer(context);
  const auto rows = std::make_shared<QuestionRows>();
  for (const std::string& word : words) {
    check_named_path(word, "predict.input");
    read_unanswered(word, &rows->file);
  }
  log_counts(make_windows(context, opened, rows.get()), *rows, context, "predict.input");
  UnlabelledSamples all{.unit = "question"};
  for (const SquadQuestion& question : rows->file.questions) {
    all.names.push_back(question.id);
    all.failures.emplace_back(rows->contexts[question.context].size() > 0
                                  ? ""
                                  : "the tokenizer makes no token of the text");
  }
  std::vector<int64_t> sizes;
  for (const Window& window : rows->windows) sizes.push_back(length_of(*rows, window, opened));
  for (const RowGroup& group : rows_by_length(sizes, context.data->integer("sequence_length"))) {
    std::vector<int64_t> samples;
    std::vector<Window> windows;
    for (const int64_t row : group.rows) {
      samples.push_back(rows->windows[row].question);
      windows.push_back(rows->windows[row]);
    }
    all.groups.push_back({std::move(samples),
                          std::make_unique<Squad>(rows, std::move(windows), opened, group.length)});
  }
  all.texts = [rows](int64_t sample, const std::string& what) -> std::vector<std::string> {
    FLEET_CHECK(what == "context", "texts of a question: " + what);
    return {rows->file.contexts[rows->file.questions[sample].context]};
  };
  return all;
}

}  // namespace

FLEET_SOURCE(squad) {
  def.schema = [](bool) {
    return text_files_key("Files of SQuAD's format (JSON): version 1.1, or 2.0 with is_impossible");
  };
  def.shared = [] {
    return row_keys(384, "Tokens of a row: the question, and a window of the text")
        .integer("stride", 128, 0, 1e7, "Tokens that two windows of a text have in common")
        .integer("question_length", 64, 1, 1e7, "Tokens of a question; a longer one is cut");
  };
  def.divides = true;
  declare_text_files(&def);
  def.columns = [](const Settings&, const SourceContext& context) {
    return Squad::columns_of(context.data->integer("sequence_length"));
  };
  def.open = open_questions;
  def.unlabelled = unlabelled_questions;
}

}  // namespace fleet::data
