// The known data sets of `fleetrun data get`: where their files are, and their checksums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fleet {

struct DataFile {
  std::string name, url;
  int64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
};

enum class DataUnpacking {
  kNone,
  kTar,       // a tar file, unpacked into the folder
  kCifar10,   // CIFAR-10's binary version, written as IDX files
  kCifar100,  // CIFAR-100's: fine labels
};

struct DataSet {
  std::string name, about;
  std::vector<DataFile> files;
  DataUnpacking unpacking = DataUnpacking::kNone;
  std::string folder;  // below the folder of the user: data.root of a job
  std::string use;     // further settings of a job
};

const std::vector<DataSet>& known_data_sets();

// The sets in a file of JSON: {"NAME": {"about": "...", "files": [{"name": ..., "url": ...,
// "bytes":
// ..., "sha256": ...}], "unpack": true}}. kUsage naming the path if it is not that.
std::vector<DataSet> read_data_sets(const std::string& path);

// Writes the binary version of CIFAR-10 and CIFAR-100 as IDX files. Each record of `parts` has
// `labels` bytes of labels (only the last is kept), then 3 planes of 32x32 pixels. Writes images
// (count x 32 x 32 x 3) and labels. kIo if a part is damaged.
void cifar_to_idx(const std::vector<std::string>& parts, int labels, const std::string& images,
                  const std::string& label_file);

}  // namespace fleet
