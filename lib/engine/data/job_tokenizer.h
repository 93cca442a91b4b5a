// The tokenizer of a job whose data are texts. Internal to data.
#pragma once

#include <memory>
#include <string>

#include "data/source.h"
#include "data/token_cache.h"
#include "data/token_source.h"
#include "text/tokenizer.h"

namespace fleet::data {

// The keys of data.* of sources that tokenize texts into a cache: tokenizer, text_key, token_cache.
Schema tokenizer_keys();

struct JobTokenizer {
  std::string path;   // the tokenizer's file
  uint64_t hash = 0;  // the file's
  std::shared_ptr<const text::Tokenizer> tokenizer;
  TokenIds ids;
  TokenizerIdentity identity() const;
};

// Opens data.tokenizer. kUsage if it is not given, or if the model lacks tokens of it; errors of
// Tokenizer::load().
JobTokenizer open_job_tokenizer(const SourceContext& context);

// The text of a token that the tokenizer_config.json next to the tokenizer names ("eos_token"); ""
// if it names none.
std::string configured_token(const std::string& tokenizer, const std::string& name);

// kUsage unless all words of data.train.file or data.test.file exist, or are patterns.
void check_text_paths(const Settings& split, const SourceContext& context);

// The parts of SourceType that sources of texts share: the key `file` of a split, names_data() by
// it, and describe(), which checks the paths and opens the tokenizer. help: what the files are.
Schema text_files_key(const std::string& help);
void declare_text_files(SourceType* def);
void describe_text_files(const Settings& split, SourceContext* context);
// The keys sequence_length and tokenizer of sources whose tokens are made when they are opened.
// length: by default; help: what a row is.
Schema row_keys(int64_t length, const std::string& help);

// The request for the tokens of a split's files, by its keys of tokenizer_keys(); what the source
// decides besides, such as marks, is not set.
TokenCacheRequest cache_request(const Settings& split, const SourceContext& context,
                                const JobTokenizer& opened);

}  // namespace fleet::data
