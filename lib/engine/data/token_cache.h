// The tokens of a corpus of texts, made once and kept in a file. Internal to data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/corpus.h"
#include "text/sentences.h"
#include "text/token_file.h"
#include "text/tokenizer.h"

namespace fleet::data {

struct TokenCacheRequest {
  std::vector<text::CorpusFile> files;
  std::string tokenizer_path;
  uint64_t tokenizer_hash = 0;    // part of the cache's key
  std::string text_key = "text";  // key of a text in JSON lines
  std::optional<uint32_t> mark;   // token after each document
  bool parse_special = false;     // special tokens in a text are tokens; else ordinary text
  // Not kNone: the tokens of sentences, with text::sentence_marks(); without `mark`.
  text::SentenceForm sentences = text::SentenceForm::kNone;
  std::string folder;  // where the caches are; "": ~/.cache/fleetrun
  std::string name;    // name of the corpus in messages; safe to print on a terminal
  size_t threads = 1;
};

// The width of the ids of a cache; it has no header.
text::TokenWidth cached_width(const text::Tokenizer& tokenizer,
                              text::SentenceForm sentences = text::SentenceForm::kNone);

// The path of a file with the tokens of all documents, in order, in nanoGPT's format. If it does
// not exist yet for these files, this tokenizer and these settings, one process makes it, with a
// line of progress every 10 s. The other processes wait for it, and log that. The file gets its
// name when it is complete; the parts of an interrupted process are used by the next one. A text
// file counts as unchanged if its size, its time and some pieces of its content are unchanged.
// kUsage if no folder for the cache is known; errors of text/corpus.h and text/tokenize_corpus.h.
std::string cached_tokens(const TokenCacheRequest& request, const text::Tokenizer& tokenizer);

}  // namespace fleet::data
