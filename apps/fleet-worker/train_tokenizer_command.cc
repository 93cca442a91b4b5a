// fleet-worker train_tokenizer: `fleetrun train_tokenizer`.
#include <unistd.h>

#include <cstdio>

#include "base/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "observe/progress.h"
#include "store/text_commands.h"
#include "text/bpe_trainer.h"
#include "text/output_file.h"
#include "text/train_corpus.h"
#include "text_command.h"

namespace fleet {
namespace {

text::BpeTrainerSettings trainer_settings(const Settings& given) {
  text::BpeTrainerSettings settings{
      .vocabulary_size = static_cast<size_t>(given.integer("vocabulary_size")),
      .min_frequency = static_cast<uint64_t>(given.integer("min_frequency")),
      .cls_token = given.text("cls_token"),
      .sep_token = given.text("sep_token")};
  if (given.given("special_token")) settings.special_tokens = given.texts("special_token");
  return settings;
}

int run_train_tokenizer(const CommandLine& line) {
  const Settings& given = line.settings;
  const std::string output = required_path(given, "output", "train_tokenizer");
  const text::BpeTrainerSettings settings = trainer_settings(given);
  text::train_bpe({}, settings);  // refuses wrong settings before the texts are read
  const text::SplitStyle style = text::split_style(given.text("split"));
  const text::TextSplitter splitter(Json::parse(style.normalizer), Json::parse(style.pre_tokenizer),
                                    "--split");
  const std::vector<text::CorpusFile> files = text::find_corpus(line.words);
  int64_t bytes = 0;
  std::vector<std::string> inputs;
  for (const text::CorpusFile& file : files) inputs.push_back(file.path);
  text::check_output_file(output, inputs);
  for (const text::CorpusFile& file : files) bytes += file.bytes;

  Progress progress({.width = terminal_width(STDERR_FILENO), .write = write_progress});
  progress.start("count words (MiB)", in_mib(bytes));
  text::WordCounts counts;
  text::count_corpus(
      files, splitter,
      {.text_key = given.text("text_key"), .threads = static_cast<int>(given.integer("threads"))},
      &counts, [&](int64_t done) { progress.update(in_mib(done), ""); });
  const std::vector<text::WordCount> words = counts.words();
  progress.start("merge", static_cast<int64_t>(settings.vocabulary_size));
  const text::TrainedBpe bpe = text::train_bpe(
      words, settings, [&](size_t tokens) { progress.update(static_cast<int64_t>(tokens), ""); });
  progress.finish();
  write_file_atomically(output, text::tokenizer_json(bpe, settings, style));
  if (bpe.tokens.size() < settings.vocabulary_size) {
    spdlog::warn("the texts give only {} tokens: no other pair occurs {} times", bpe.tokens.size(),
                 settings.min_frequency);
  }
  std::printf("%s: %zu tokens, from %zu different words\n", shown_path(output).c_str(),
              bpe.tokens.size(), words.size());
  return 0;
}

}  // namespace

FLEET_COMMAND(train_tokenizer) {
  def.syntax = train_tokenizer_syntax();
  def.run = run_train_tokenizer;
}

}  // namespace fleet
