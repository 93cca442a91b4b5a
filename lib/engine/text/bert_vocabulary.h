// Old folders of BERT have no tokenizer.json, but a vocab.txt with one token a line.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace fleet::text {

// The tokenizer.json that transformers' BertTokenizer makes of them. config: the content of
// tokenizer_config.json (do_lower_case, strip_accents, tokenize_chinese_chars and the names of the
// special tokens), or null for its defaults. kUsage if [UNK], [CLS] or [SEP] has no line.
// where: what messages call the vocabulary.
Json bert_tokenizer(std::string_view vocabulary, const Json& config, const std::string& where);

}  // namespace fleet::text
