// The tokens of a corpus of texts, made once and kept in a file. Internal to data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/corpus.h"
#include "text/token_file.h"
#include "text/tokenizer.h"

namespace fleet::data {

struct TokenCacheRequest {
  std::vector<text::CorpusFile> files;
  std::string tokenizer_path;     // its content is a part of the cache's key
  std::string text_key = "text";  // of JSON lines
  std::optional<uint32_t> mark;   // behind each document
  std::string folder;             // of the cache; "": ~/.cache/fleetrun
  std::string name;               // of the corpus, for messages; safe to print on a terminal
  size_t threads = 1;
};

// The width of the ids of a cache; it has no header.
text::TokenWidth cached_width(const text::Tokenizer& tokenizer);

// The path of a file with the tokens of all documents, in order, in nanoGPT's format. If there is
// none of these files, this tokenizer and these settings, one process makes it, with a line of
// progress every 10 s; others that ask for it meanwhile wait, and log what for. The file appears
// under its name when it is complete. A file counts as the same if its size, its time and some
// pieces of its content are. kUsage if no folder for the cache is known; errors of text/corpus.h
// and text::TokenWriter.
std::string cached_tokens(const TokenCacheRequest& request, const text::Tokenizer& tokenizer);

}  // namespace fleet::data
