// Encodes the texts of a corpus into a token file: the work of `fleetrun tokenize`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "text/corpus.h"
#include "text/sentences.h"
#include "text/token_file.h"

namespace fleet::text {

enum class EosPlace { kAppend, kPrepend, kNone };  // place of a document's end-of-text token

struct TokenizeOptions {
  std::string tokenizer;  // tokenizer.json, or a rank file
  std::string output;     // the token file
  TokenFormat format = TokenFormat::kNanoGpt;
  std::optional<TokenWidth> width;  // without it: the narrower that fits the vocabulary
  std::string text_key = "text";    // key of a text in JSON lines
  EosPlace eos = EosPlace::kAppend;
  std::string eos_token;       // "": the tokenizer's <|endoftext|>, </s> or the like
  bool parse_special = false;  // special tokens in a text are tokens; otherwise ordinary text
  // Not kNone: sentence_marks() are behind each sentence and each document. Only with eos kNone,
  // without parse_special and validation.
  SentenceForm sentences = SentenceForm::kNone;
  // The share that goes to validation_path(output): documents of JSON lines by chance, and the end
  // of each text file. 0: no such file.
  double validation = 0;
  uint64_t seed = 0;  // decides which documents
  // Leave out damaged lines, with a warning; otherwise the first is an error.
  bool skip_damaged = false;
  // The advice in the error of a damaged line: how to skip it.
  std::string skip_advice = "give --on_damaged skip";
  int threads = 0;                // 0: one for each core
  int64_t part_bytes = 16 << 20;  // bytes per thread at a time; does not change the tokens
};

struct TokenizeProgress {
  int64_t bytes = 0, total = 0;  // bytes of the corpus
  int64_t found = 0;             // bytes in parts of an earlier run
  int64_t tokens = 0, damaged = 0;
};

struct TokenizeResult {
  int64_t documents = 0, tokens = 0, validation_tokens = 0, damaged = 0;
  int64_t parts = 0, found_parts = 0;
  TokenWidth width = TokenWidth::kUint16;
};

// "data/train.bin" -> "data/val.bin"; "x.bin" -> "x_val.bin".
std::string validation_path(const std::string& output);

// Finished parts are kept in the folder "<output>.parts" until the end, so that the same call
// continues after an interruption. Other options or another tokenizer make them again. A call that
// fails leaves the folder only if a part in it is finished. The tokens do not depend on it, nor on
// the number of threads.
//
// kUsage naming file and line for a damaged line (text that is not UTF-8, no JSON, no text at the
// key); for a tokenizer without an end-of-text token; for a vocabulary that the width cannot hold;
// if the folder of parts is in use. Errors of Tokenizer::load(), and, before anything is written,
// of check_output_file(). progress: from the calling thread, several times a second.
TokenizeResult tokenize_corpus(std::span<const CorpusFile> files, const TokenizeOptions& options,
                               const std::function<void(const TokenizeProgress&)>& progress);

}  // namespace fleet::text
