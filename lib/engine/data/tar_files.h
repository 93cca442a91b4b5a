// Tar files (ustar, GNU and pax headers) and the names of WebDataset shards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fleet::data {

struct TarMember {
  std::string name;
  uint64_t offset = 0, size = 0;  // its content in the file
};

// Calls body for each regular file, in order. kIo naming the path if the file is damaged or ends
// early, kUsage if it is compressed or no tar file.
void for_each_tar_member(const std::string& path,
                         const std::function<void(const TarMember&)>& body);

// Reads `bytes` at `offset` of the file into `to`. kIo naming the path if it ends early.
void read_part(const std::string& path, void* to, uint64_t bytes, uint64_t offset);

// "train-{000..146}.tar" names 147 files, "{a,b}.tar" two; braces do not nest. A pattern of the
// shell (*, ?, [...]) names the files that match, sorted. kUsage naming the pattern if no file
// matches, the braces are wrong, or they stand for more than a million names. Relative names start
// at `root`, a folder with any name.
std::vector<std::string> shard_names(const std::string& pattern, const std::string& root = "");

}  // namespace fleet::data
