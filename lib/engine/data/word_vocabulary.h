// The words of texts, and texts as numbers of words. ASCII's white space separates words, which
// are taken as they are. Internal to data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/token_files.h"
#include "text/corpus.h"

namespace fleet::data {

// By number: the most frequent word first; words of equal counts by their bytes.
struct WordVocabulary {
  std::vector<std::string> words;
  std::vector<int64_t> counts;
  int64_t left_out = 0;  // occurrences of words that are not in it
  int64_t size() const { return std::ssize(words); }
};

struct WordRules {
  int64_t min_count = 1;  // rarer words are left out
  int64_t most = 0;       // the most frequent ones only; 0: all
};

// Texts, and the folder of their caches.
struct WordTexts {
  std::vector<text::CorpusFile> files;
  std::string text_key = "text";  // key of a text in JSON lines
  std::string folder;             // "": ~/.cache/fleetrun
  std::string name;               // in messages; safe to print on a terminal
};

// Counts the words of the texts once on this machine: others wait for the result, and find it in
// the folder. Errors of text/corpus.h; kUsage without a folder, or if no word is left.
WordVocabulary count_words(const WordTexts& texts, const WordRules& rules);

// The numbers of the texts' words, without those that the vocabulary lacks. Each line ends with the
// number vocabulary.size(); lines with fewer than two words are left out. Made once, as above.
std::shared_ptr<const TokenSequence> word_numbers(const WordTexts& texts,
                                                  const WordVocabulary& vocabulary);

// A file with "word", tab, its count on each line.
std::string text_of(const WordVocabulary& vocabulary);
// kUsage at the line for another form, or a word that comes twice. kNotFound, kIo.
WordVocabulary read_vocabulary(const std::string& path);

}  // namespace fleet::data
