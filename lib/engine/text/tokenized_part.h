// Encodes one part of a corpus, and keeps the result in files.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "text/corpus.h"
#include "text/token_file.h"
#include "text/tokenize_corpus.h"
#include "text/tokenizer.h"

namespace fleet::text {

// The result of a part; stored as NUMBER.json when its tokens are on the disk.
struct PartSummary {
  int64_t documents = 0, tokens = 0, validation_tokens = 0, damaged = 0;
  std::optional<Error> first_damage = std::nullopt;  // not stored
};

// The files of a part: FOLDER/NUMBER.json, .train, .val. A file of tokens exists if it has any.
class PartFiles {
 public:
  PartFiles(const std::string& folder, size_t number);
  std::string summary() const { return stem_ + ".json"; }
  std::string tokens(bool validation) const { return stem_ + (validation ? ".val" : ".train"); }

  // nullopt if the part is not finished, or was made from another file or another state of it.
  std::optional<PartSummary> find(const CorpusFile& file, const CorpusPart& part,
                                  TokenWidth width) const;
  // Removes what is there of the part.
  void remove() const;
  // Writes the summary, atomically: the part is finished.
  void finish(const CorpusFile& file, const CorpusPart& part, const PartSummary& summary) const;

 private:
  std::string stem_;
};

struct PartCounters {
  std::atomic<int64_t> bytes = 0, found = 0, tokens = 0, damaged = 0;
  std::atomic<int64_t> named = 0;  // damaged lines that the log names
};

// One for each thread.
class PartEncoder {
 public:
  // eos: the id of the end-of-text token. The referents must live.
  PartEncoder(const Tokenizer& tokenizer, const TokenizeOptions& options, uint32_t eos,
              TokenWidth width, PartCounters* counters)
      : tokenizer_(tokenizer), options_(options), eos_(eos), width_(width), counters_(counters) {}

  PartSummary encode(const CorpusFile& file, const CorpusPart& part, const PartFiles& files);

 private:
  class Output;

  void encode_lines(const CorpusFile& file, const CorpusPart& part, Output* output);
  void encode_text(const CorpusFile& file, const CorpusPart& part, Output* output);
  // Likewise for texts that are divided into sentences.
  void encode_sentences(const CorpusFile& file, const CorpusPart& part, Output* output);
  void encode_paragraphs(std::string_view text, bool starts, bool ends, Output* output);
  void write_ids(Output* output);
  // The text from `begin` to `end` without damaged lines, which `kept` holds if there are any.
  std::string_view without_damage(const CorpusFile& file, std::string_view text, size_t begin,
                                  size_t end, std::string* kept);
  size_t validation_begin(std::string_view text, size_t first) const;
  void add_text(std::string_view text);
  // Ends the part, or says what is left out.
  void damaged(const std::string& what, const std::string& where, const std::string& next);

  const Tokenizer& tokenizer_;
  const TokenizeOptions& options_;
  const uint32_t eos_;
  const TokenWidth width_;
  PartCounters* counters_;
  std::vector<uint32_t> ids_;
  PartSummary summary_;
};

}  // namespace fleet::text
