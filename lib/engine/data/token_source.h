// The common part of the sources `tokens` and `text`: their keys, and rows of tokens as samples.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/source.h"
#include "data/token_rows.h"

namespace fleet::data {

// The keys of data.* for rows of tokens.
Schema token_row_keys();

// The columns of a row: input_ids, position_ids, document_ids and labels, int64, and loss_weight,
// float32, each of data.sequence_length values. labels[i] is the token to predict at i, -100 where
// there is none; a document of padding is -1.
std::vector<Column> token_row_columns(const Settings& data);

// kUsage if settings of these keys contradict each other. Opens no data.
void check_token_row_keys(const Settings& data);

// The id of a token by its text; nullopt if the vocabulary has none of this text.
using TokenIds = std::function<std::optional<uint32_t>(const std::string& token)>;

// The value of a key that names a token: a number, or a text that token_ids knows (null: numbers
// only); nullopt for "none". kUsage for anything else.
std::optional<uint32_t> named_token(const Settings& data, const std::string& key,
                                    const TokenIds& token_ids);

// kUsage naming the key of data.* unless the token is one of the model's (vocabulary 0: any).
void check_named_token(std::optional<uint32_t> token, const std::string& key, int64_t vocabulary);

// kUsage naming the key if there is nothing at this path; a pattern is not checked.
void check_named_path(const std::string& path, const std::string& key);

struct TokenSourceParts {
  std::shared_ptr<const TokenSequence> tokens;
  DocumentMark mark;
  TokenIds token_ids;  // may be null
  std::string name;    // name of the data in messages; safe to print on a terminal
  TokenizerIdentity tokenizer = {};
};

// Rows for training, or for evaluation (data.evaluation.*), from the whole sequence or from
// the part that context.validation selects. kUsage if the sequence is too short for a row.
std::unique_ptr<Source> make_token_source(const TokenSourceParts& parts,
                                          const SourceContext& context);

}  // namespace fleet::data
