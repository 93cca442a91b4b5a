// Texts for embeddings of words (word2vec): a sample is a word, a word near it, and words drawn at
// random. Columns: "center", int64 [1]; "context", int64 [1 + data.negatives], the neighbour first.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_status.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "data/job_tokenizer.h"
#include "data/word_pairs.h"
#include "data/word_vocabulary.h"

namespace fleet::data {
namespace {

std::vector<Column> word_columns(const Settings& data) {
  return {{"center", DType::kInt64, {1}},
          {"context", DType::kInt64, {1 + data.integer("negatives")}}};
}

class SkipGram : public Source {
 public:
  SkipGram(WordPairs pairs, std::vector<Column> columns, std::string name,
           TokenizerIdentity vocabulary)
      : pairs_(std::move(pairs)),
        columns_(std::move(columns)),
        name_(std::move(name)),
        vocabulary_(std::move(vocabulary)) {}
  int64_t size() const override { return pairs_.size(); }
  std::vector<Column> columns() const override { return columns_; }
  TokenizerIdentity tokenizer() const override { return vocabulary_; }
  std::string name(int64_t index) const override {
    return name_ + ", pair " + std::to_string(index);
  }
  void fill(int64_t index, uint64_t key, std::span<void* const> to) const override {
    const auto context = static_cast<size_t>(columns_[1].shape[0]);
    pairs_.fill(index, key, static_cast<int64_t*>(to[0]), {static_cast<int64_t*>(to[1]), context});
  }

 private:
  const WordPairs pairs_;
  const std::vector<Column> columns_;
  const std::string name_;
  const TokenizerIdentity vocabulary_;
};

// Rows of tables belong to words by their numbers.
TokenizerIdentity identity_of(const WordVocabulary& words, const std::string& name) {
  uint64_t hash = 0;
  for (const std::string& word : words.words) hash = hash_text(word, hash + word.size());
  return {.file = name, .hash = hash, .words = true};
}

WordTexts word_texts(const std::vector<std::string>& words, const SourceContext& context) {
  std::vector<std::string> paths;
  for (const std::string& word : words) paths.push_back(under_root(context.root, word));
  return {.files = text::find_corpus(paths),
          .text_key = context.data->text("text_key"),
          .folder = context.data->text("token_cache"),
          .name = shown_path(words[0]) + (words.size() > 1 ? ", ..." : "")};
}

std::string vocabulary_path(const SourceContext& context) {
  const std::string& named = context.data->text("vocabulary_file");
  return named.empty() ? "" : under_root(context.root, named);
}

// The file for the words, before the texts are counted.
void check_vocabulary_file(const SourceContext& context) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kUsage, what, "data.vocabulary_file",
                "name a file of words, or one that can be written");
  };
  const std::string path = vocabulary_path(context);
  if (path.empty()) return;
  if (is_folder(path)) refuse(shown_path(path) + " is a folder");
  if (path_exists(path)) return;
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  if (!is_folder(folder)) refuse("the folder " + shown_path(folder) + " does not exist");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    refuse("the folder " + shown_path(folder) + " cannot be written: " + std::strerror(errno));
  }
}

// The words of data.vocabulary_file; without it, those of the training texts.
WordVocabulary words_of_job(const std::vector<std::string>& train, const SourceContext& context) {
  const Settings& data = *context.data;
  const std::string path = vocabulary_path(context);
  std::error_code unknown;
  if (!path.empty() && std::filesystem::exists(path, unknown)) {
    if (context.verbose) {
      spdlog::info("{} gives the words; data.min_count and data.max_words have no effect",
                   shown_path(path));
    }
    return read_vocabulary(path);
  }
  WordVocabulary words =
      count_words(word_texts(train, context),
                  {.min_count = data.integer("min_count"), .most = data.integer("max_words")});
  // All ranks write the same content.
  if (!path.empty()) write_file_atomically(path, text_of(words));
  return words;
}

void check_words(const WordVocabulary& words, const SourceContext& context) {
  if (context.vocabulary == 0 || words.size() <= context.vocabulary) return;
  throw Error(ErrorCode::kUsage,
              "the texts have " + counted(words.size(), "word") + ", but model.ids is " +
                  std::to_string(context.vocabulary),
              "data.train.file",
              "set model.ids to " + std::to_string(words.size()) +
                  ", or data.max_words to the number of rows, or raise data.min_count");
}

std::unique_ptr<Source> open_skip_gram(const Settings& split, const SourceContext& context) {
  const std::vector<std::string> files = split.texts("file");
  if (files.empty()) {
    return no_test_data(context, context.train ? "data.train.file" : "data.test.file");
  }
  check_text_paths(split, context);
  const Settings& data = *context.data;
  const bool other = context.train_split && !context.train_split->texts("file").empty();
  const WordVocabulary words =
      words_of_job(other ? context.train_split->texts("file") : files, context);
  check_words(words, context);
  const WordTexts texts = word_texts(files, context);
  WordPairs pairs(word_numbers(texts, words), words.counts,
                  {.window = data.integer("window"),
                   .negatives = data.integer("negatives"),
                   .exponent = data.number("negative_exponent"),
                   .subsample = data.number("subsample")});
  if (context.verbose) {
    spdlog::info("{}: {}, of which {:.0f} occurrences are kept; {} an epoch", texts.name,
                 counted(words.size(), "word"), pairs.kept(), counted(pairs.size(), "pair"));
  }
  return std::make_unique<SkipGram>(std::move(pairs), word_columns(data), texts.name,
                                    identity_of(words, texts.name));
}

Schema skip_gram_keys() {
  return Schema()
      .integer("window", 5, 1, 1000, "Largest distance of a word's neighbour, in words")
      .integer("negatives", 5, 1, 10'000, "Words drawn at random for each neighbour")
      .number("negative_exponent", 0.75, 0, 10,
              "These words are drawn in proportion to their count to this power")
      .number("subsample", 1e-3, 0, 1,
              "Frequent words are left out at random: a word of the fraction f of all words stays "
              "with probability sqrt(x / f) + x / f; 0: all stay")
      .integer("min_count", 5, 1, 1e15, "Words that occur less often are left out")
      .integer("max_words", 0, 0, (1LL << 31) - 2, "Only so many words, the most frequent; 0: all")
      .text("vocabulary_file", "",
            "File of the words in the order of their rows, each with a tab and its count: it is "
            "read if it exists, else written; \"\": the words are only counted")
      .as_path()
      .text("text_key", "text", "Key of the text in JSON lines")
      .text("token_cache", "",
            "Folder for the numbers of the words, which are made once; default: ~/.cache/fleetrun")
      .as_path();
}

}  // namespace

FLEET_SOURCE(skip_gram) {
  def.schema = [](bool) {
    return text_files_key(
        "Files, folders or patterns: plain text, or JSON lines (.jsonl); with .gz, compressed. "
        "White space separates words; neighbours are of one line");
  };
  def.shared = skip_gram_keys;
  def.names_data = [](const Settings& split) { return !split.texts("file").empty(); };
  def.describe = [](const Settings& split, SourceContext* context) {
    check_text_paths(split, *context);
    if (context->train) check_vocabulary_file(*context);
  };
  def.columns = [](const Settings&, const SourceContext& context) {
    return word_columns(*context.data);
  };
  def.open = open_skip_gram;
}

}  // namespace fleet::data
