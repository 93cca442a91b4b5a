// Expands the names of WebDataset shards.
#pragma once

#include <string>
#include <vector>

namespace fleet::data {

// "train-{000..146}.tar" names 147 files, "{a,b}.tar" two; braces do not nest. A pattern of the
// shell (*, ?, [...]) names the files that match, sorted. kUsage naming the pattern if no file
// matches, the braces are wrong, or they stand for more than a million names. Relative names are
// those of `root`, a folder with any name.
std::vector<std::string> shard_names(const std::string& pattern, const std::string& root = "");

}  // namespace fleet::data
