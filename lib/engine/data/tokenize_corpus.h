// The tokens of all documents of a corpus, made on several threads. Internal to data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "text/corpus.h"
#include "text/token_file.h"
#include "text/tokenizer.h"

namespace fleet::data {

// Bytes of the files that are done, and of all.
using CorpusProgress = std::function<void(int64_t done, int64_t all)>;

struct TokenizeOptions {
  std::string text_key = "text";  // of JSON lines
  std::optional<uint32_t> mark;   // behind each document, unless it ends with it already
  size_t threads = 1;
  CorpusProgress progress;  // called by the calling thread after each part; may be null
};

// Appends the documents to the writer in the order of the files: the same for any number of
// threads. Each has the special tokens of the tokenizer's post-processor. Empty documents are left
// out. Returns the number of documents. Errors of text/corpus.h and the writer.
int64_t tokenize_corpus(std::span<const text::CorpusFile> files, const text::Tokenizer& tokenizer,
                        const TokenizeOptions& options, text::TokenWriter& writer);

}  // namespace fleet::data
