// tiktoken's rank files: a line a token, "aGVsbG8= 42": base64 and the rank.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace fleet::text {

// Whether the first line looks like one of a rank file.
bool is_rank_file(std::string_view content);
// Tokens by rank; ranks without a token are "". kUsage naming the line.
std::vector<std::string> read_ranks(std::string_view content, const std::string& where);

// The settings of a public file with so many ranks; nullopt if none is known.
std::optional<RankFileSettings> known_settings(size_t ranks);

}  // namespace fleet::text
