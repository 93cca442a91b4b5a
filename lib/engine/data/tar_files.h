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
  int archive = 0;                // number of its archive in the file, from 0
};

// How a tar file differs from the usual form.
struct TarLayout {
  int archives = 0;            // 2 or more: archives that were joined with cat
  bool has_end_mark = false;   // false: the file ends after the last byte of a member
  uint64_t ignored_at = 0;     // where its ignored bytes begin
  uint64_t ignored_bytes = 0;  // after the end mark, neither zeros nor an archive
};

// Calls body for each regular file, in order, also for those after an end mark (zeros), as
// `tar --ignore-zeros` reads them. kIo naming the path if the file is damaged, is empty or ends
// within a member, kUsage if it is compressed or no tar file.
TarLayout for_each_tar_member(const std::string& path,
                              const std::function<void(const TarMember&)>& body);

// Reads `bytes` at `offset` of the file into `to`. kIo naming the path if it ends early.
void read_part(const std::string& path, void* to, uint64_t bytes, uint64_t offset);

// "train-{000..146}.tar" names 147 files, "{a,b}.tar" two; braces do not nest. A pattern of the
// shell (*, ?, [...]) names the files that match, sorted. kUsage naming the pattern if no file
// matches, the braces are wrong, or they stand for more than a million names. Relative names start
// at `root`, a folder with any name.
std::vector<std::string> shard_names(const std::string& pattern, const std::string& root = "");

}  // namespace fleet::data
