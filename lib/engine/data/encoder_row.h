// Rows of tokens for encoders: the columns that their models take. Internal to data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/job_tokenizer.h"
#include "text/encoding.h"

namespace fleet::data {

// input_ids, position_ids, document_ids and token_type_ids, int64 [length].
std::vector<Column> encoder_columns(int64_t length);

// Writes them: one text, or one pair, is document 0; behind it are padding tokens of document -1.
// to: the addresses of the four columns. length: at least the tokens of the encoding.
void fill_encoder_row(const text::Encoding& encoding, int64_t length, uint32_t padding,
                      std::span<void* const> to);

// The tokenizer's pad_token: that of tokenizer_config.json, [PAD] or <pad>; 0 if it has none.
uint32_t padding_token(const JobTokenizer& opened);

// For texts that are joined later (Tokenizer::joined()): whole, whatever truncation the tokenizer's
// file asks for.
text::EncodeOptions without_special_tokens();

// Which of so many texts belong to the part that data.validation_split selects; all without one.
// kUsage for a single text.
std::vector<bool> texts_of_part(int64_t count, const ValidationPart& validation);

// Rows of one length.
struct RowGroup {
  int64_t length = 0;
  std::vector<int64_t> rows;
};
// Rows in groups of a few lengths, so that a short text does not cost as much as the longest: the
// shortest first; the order of equal ones stays. sizes: tokens by row; 0: leave it out.
std::vector<RowGroup> rows_by_length(const std::vector<int64_t>& sizes, int64_t longest);

// Tokens [begin, begin + count) of an encoding without special tokens.
text::Encoding part_of(const text::Encoding& encoding, size_t begin, size_t count);

}  // namespace fleet::data
