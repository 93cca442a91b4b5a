// Counts the pieces of a corpus, to train a tokenizer on them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "text/corpus.h"
#include "text/text_splitter.h"
#include "text/word_counts.h"

namespace fleet::text {

struct CountOptions {
  std::string text_key = "text";  // key of a text in JSON lines
  int threads = 0;                // 0: one for each core
  int64_t part_bytes = 16 << 20;  // bytes per thread at a time; does not change the result
};

// Adds the pieces of all texts. Each line of a text file is a text of its own, with its line end,
// as in Hugging Face's Tokenizer.train(files). Each text of JSON lines is counted as a whole, as in
// its train_from_iterator(). kUsage naming file and line for text that is not UTF-8, or JSON
// without that key, and for a corpus without a word. progress: bytes read so far, from the calling
// thread, several times a second.
void count_corpus(std::span<const CorpusFile> files, const TextSplitter& splitter,
                  const CountOptions& options, WordCounts* counts,
                  const std::function<void(int64_t bytes)>& progress);

}  // namespace fleet::text
