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
  std::string text_key = "text";  // of JSON lines
  int threads = 0;                // 0: one for each core
  int64_t part_bytes = 16 << 20;  // what a thread counts at a time; the result is the same
};

// Adds the pieces of all texts. Of a text file each line counts for itself, with its line end, as
// for Hugging Face's Tokenizer.train(files); of JSON lines each text as a whole, as for its
// train_from_iterator(). kUsage naming file and line for what is not UTF-8 or no JSON with that
// key. progress: bytes read so far, from the calling thread, several times a second.
void count_corpus(std::span<const CorpusFile> files, const TextSplitter& splitter,
                  const CountOptions& options, WordCounts* counts,
                  const std::function<void(int64_t bytes)>& progress);

}  // namespace fleet::text
