// Files of texts whose words have labels. Internal to data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "text/corpus.h"

namespace fleet::data {

struct TaggedText {
  std::vector<std::string> words, labels;  // as many of each; a label may be a number
  std::string path;                        // safe to print on a terminal
  int64_t line = 0;                        // where the text begins, from 1
  std::vector<int64_t> lines = {};         // by word; empty: all words are in `line`

  std::string where() const;             // "train.jsonl:12"
  std::string where(size_t word) const;  // the word's own line
};

// Keys of a JSON line; "" for the usual ones.
struct TaggedKeys {
  bool labelled = true;          // false: texts have no labels, and those in a file do not count
  std::string words = "tokens";  // JSON lines: the array of words
  std::string labels;            // JSON lines: the array of labels; "": labels, or ner_tags
};

// Calls `take` with each text of a file. JSON lines have an array of words and one of labels, texts
// or numbers. Any other file has columns as CoNLL's: a word and its label in each line, the first
// and the last of the columns that blanks or tabs separate; an empty line ends a text, and lines
// that begin with -DOCSTART- are skipped. Without labels, JSON lines may also have a text in place
// of the array of words, which blanks divide, and a line with columns is a word. kUsage naming file
// and line for other content; errors of text::LineReader.
void read_tagged_texts(const text::CorpusFile& file, const TaggedKeys& keys,
                       const std::function<void(TaggedText)>& take);

}  // namespace fleet::data
