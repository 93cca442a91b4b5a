// Files of lines of numbers: plain, compressed by gzip, or in tar files (also .tar.gz). Internal to
// data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleet::data {

// Lines in bytes [begin, begin + size) of a file that is not compressed.
struct LineFile {
  std::string path;
  std::string shown;  // for messages, safe to print on a terminal: "a.tar.gz:part-0"
  uint64_t begin = 0, size = 0;
};

struct LineFileRequest {
  std::vector<std::string> words;  // files, folders, and patterns as of shard_names()
  std::string root;                // data.root
  std::string key;                 // for messages: "data.train.file"
  std::string cache;               // folder for decompressed files; "": ~/.cache/fleetrun
};

// In the order of the words. The files of a folder and of a pattern are sorted by name; the members
// of a tar file keep their order. Files of a folder, and members, whose names begin with '.' or '_'
// are left out. Compressed files are decompressed into the cache by one process of the machine,
// once for each content. kUsage naming the word for one that names nothing, a folder without files,
// another kind of compression; kIo for a damaged tar file.
std::vector<LineFile> find_line_files(const LineFileRequest& request);

// Checks the words as far as that opens no file: kUsage at the key for a path that does not exist.
void check_line_files(const LineFileRequest& request);

}  // namespace fleet::data
