// fleet-worker tokenize: `fleetrun tokenize`.
#include <unistd.h>

#include <cstdio>

#include "base/commands.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "observe/progress.h"
#include "store/text_commands.h"
#include "text/tokenize_corpus.h"
#include "text/unigram.h"
#include "text_command.h"

namespace fleet {
namespace {

text::TokenizeOptions tokenize_options(const Settings& given) {
  text::TokenizeOptions options{.tokenizer = required_path(given, "tokenizer", "tokenize"),
                                .output = required_path(given, "output", "tokenize"),
                                .format = text::token_format(given.text("format")),
                                .text_key = given.text("text_key"),
                                .eos_token = given.text("eos_token"),
                                .parse_special = given.boolean("parse_special"),
                                .validation = given.number("validation"),
                                .seed = static_cast<uint64_t>(given.integer("seed")),
                                .skip_damaged = given.text("on_damaged") == "skip",
                                .threads = static_cast<int>(given.integer("threads"))};
  const std::string eos = given.text("eos"), type = given.text("type");
  if (eos == "prepend") options.eos = text::EosPlace::kPrepend;
  if (eos == "none") options.eos = text::EosPlace::kNone;
  if (eos == "none" && !options.eos_token.empty()) {
    throw Error(ErrorCode::kUsage, "--eos none and --eos_token contradict each other", "tokenize",
                "give only one of them");
  }
  if (type == "uint16") options.width = text::TokenWidth::kUint16;
  if (type == "uint32") options.width = text::TokenWidth::kUint32;
  return options;
}

void print_result(const text::TokenizeOptions& options, const text::TokenizeResult& result) {
  const char* type = result.width == text::TokenWidth::kUint16 ? "uint16" : "uint32";
  std::string line = counted(result.tokens, "token") + " (" + type + ")";
  if (result.damaged > 0) line += ", " + counted(result.damaged, "line") + " left out";
  if (result.found_parts > 0) {
    line += "; " + std::to_string(result.found_parts) + " of " + counted(result.parts, "part") +
            (result.found_parts == 1 ? " was" : " were") + " there already";
  }
  std::printf("%s: %s\n", shown_path(options.output).c_str(), line.c_str());
  if (options.validation <= 0) return;
  const std::string validation = text::validation_path(options.output);
  std::printf("%s: %s (%s)\n", shown_path(validation).c_str(),
              counted(result.validation_tokens, "token").c_str(), type);
  if (result.validation_tokens == 0) return;
  // A model that has learned anything has a lower loss than this one.
  const text::TokenFile trained(options.output, result.width);
  const text::TokenFile evaluated(validation, result.width);
  std::printf("loss of a unigram model on %s: %.4f\n", shown_path(validation).c_str(),
              text::unigram_loss(trained, evaluated));
}

int run_tokenize(const CommandLine& line) {
  const text::TokenizeOptions options = tokenize_options(line.settings);
  const std::vector<text::CorpusFile> files = text::find_corpus(line.words);
  Progress progress({.width = terminal_width(STDERR_FILENO), .write = write_progress});
  bool started = false;
  const text::TokenizeResult result =
      text::tokenize_corpus(files, options, [&](const text::TokenizeProgress& now) {
        if (!started) progress.start("tokenize (MiB)", in_mib(now.total), in_mib(now.found));
        started = true;
        std::string note = count_text(now.tokens) + " tokens";
        if (now.damaged > 0) note += ", " + counted(now.damaged, "line") + " left out";
        progress.update(in_mib(now.bytes), note);
      });
  progress.finish();
  std::printf("%s of %s\n", counted(result.documents, "document").c_str(),
              counted(std::ssize(files), "file").c_str());
  print_result(options, result);
  return 0;
}

}  // namespace

FLEET_COMMAND(tokenize) {
  def.syntax = tokenize_syntax();
  def.run = run_tokenize;
}

}  // namespace fleet
